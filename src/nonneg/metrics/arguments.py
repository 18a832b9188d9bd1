"""Arguments of scores: tables of numbers and sequences, or an error that says what came instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import checked_indices, to_numpy
from nonneg.exceptions import DataTypeError, ShapeError


def table(values: Any, name: str, shape: str, *, as_float: bool = True, hint: str = "") -> Any:
    """Return real numbers as an array of NumPy's, of float64 or of the type they have."""
    expected = f"Expected `{name}` as an array of numbers of shape {shape}, got {type(values).__name__}"
    try:
        array = to_numpy(values.toarray() if sp.issparse(values) else values)
        if array.dtype.kind == "O" or (array.dtype.kind in "biuf" and as_float):
            array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataTypeError(f"{expected}: {error}. {hint}".rstrip()) from error
    if array.ndim != shape.count(",") + (",)" not in shape) or array.dtype.kind not in "biuf":
        raise ShapeError(f"{expected} of shape {array.shape} and type {array.dtype}. {hint}".rstrip())
    return array


def sparse_table(values: Any, name: str, shape: str) -> Any:
    """Return a table of real numbers as a sparse array by rows."""
    if sp.issparse(values) and values.ndim == 2 and values.dtype.kind in "biuf":
        return sp.csr_array(checked_indices(values, name), dtype=np.float64)
    return sp.csr_array(table(values, name, shape))


def sequences(values: Any, name: str, parts: str) -> list[list[Any]]:
    """Return a sequence of sequences as lists."""
    try:
        lists = [_listed(each) for each in _listed(values)]
        hash(tuple(part for each in lists for part in each))
    except TypeError as error:
        raise DataTypeError(f"Expected `{name}` as a sequence of sequences of {parts}: {error}.") from error
    return lists


def _listed(values: Any) -> list[Any]:
    if isinstance(values, str | bytes):
        raise TypeError("got a text, which `str.split` splits")
    return list(values)
