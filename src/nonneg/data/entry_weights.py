"""Weights of entries as a user gives them: checks that name the place, and those that are of rank one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj

from nonneg._arrays import is_dask, is_sparse_array, to_float64, to_numpy
from nonneg._typing import FloatArray
from nonneg.data.matrix import rows_per_block
from nonneg.data.observed import EntryWeights
from nonneg.exceptions import DataTypeError, InvalidParameterError, NonFiniteDataError, ShapeError

# Entries that are looked at at once.
BLOCK_ENTRIES = 1 << 20


def checked_entry_weights(given: Any, shape: tuple[int, int], name: str) -> EntryWeights | None:
    """Return weights for the entries of X, or say what is wrong with them; None if all are 1.

    `name` is "entry_weight", or "uncertainty" if `given` are standard deviations.
    """
    values, absent = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if hasattr(values, "iloc"):
        values = values.to_numpy()
    if is_sparse_array(values):
        raise DataTypeError(
            f"{name} must not be a sparse tensor. Pass a SciPy sparse matrix or a dense array."
        )
    if not (sp.issparse(values) or is_dask(values) or is_array_api_obj(values)):
        values = np.asarray(values)
    if tuple(values.shape) != tuple(shape):
        raise ShapeError(
            f"Expected {name} of the same shape as X, {tuple(shape)}, got {tuple(values.shape)}."
        )
    if isinstance(values.dtype, np.dtype) and values.dtype.kind not in "biuf":
        raise DataTypeError(f"Expected {name} to contain real numbers, got dtype {values.dtype}.")
    deviations = name == "uncertainty"
    if absent is None:
        absent = np.inf if deviations else 0.0
    elif not sp.issparse(values):
        raise InvalidParameterError(
            f"{name} is a pair, whose second part is for the entries that the first does not store; but the "
            f"first is no sparse matrix, it stores all entries. Pass it alone."
        )
    absent = float(absent)
    if absent != absent or absent < 0 or (absent == 0 if deviations else absent == np.inf):
        raise InvalidParameterError(f"{name} of entries that are not stored is {absent}. {_rule(deviations)}")
    if sp.issparse(values):
        values = sp.csr_array(values, dtype=np.float64, copy=True)
        values.sum_duplicates()
    found = EntryWeights(values, absent)
    low, high = _check(found, name, deviations)
    if low == high == 1:
        return None
    return _inverse_squares(found) if deviations else found


def _rule(deviations: bool) -> str:
    if deviations:
        return (
            "Uncertainties are standard deviations: they must be positive; infinity marks a missing entry. "
            "Use the detection limit, or a share of the value, where none is known."
        )
    return "Weights must be finite and not negative; 0 marks a missing entry."


def _check(weights: EntryWeights, name: str, deviations: bool) -> tuple[float, float]:
    """Return the smallest and the largest, after all entries were looked at."""
    n_rows, n_columns = weights.shape
    low, high, columns = np.inf, -np.inf, np.zeros(n_columns, dtype=bool)
    step = rows_per_block(n_columns, BLOCK_ENTRIES)
    for start in range(0, n_rows, step):
        part = weights[start : min(start + step, n_rows)].dense()
        part = to_float64(part.compute() if is_dask(part) else part)
        good = (part > 0) if deviations else (part >= 0) & (part < np.inf)
        if not good.all():
            i, j = np.argwhere(~good)[0]
            kind = NonFiniteDataError if np.isnan(part[i, j]) else InvalidParameterError
            raise kind(f"{name}[{start + i}, {j}] is {part[i, j]}. {_rule(deviations)}")
        counts = part < np.inf if deviations else part > 0
        low, high, columns = min(low, part.min()), max(high, part.max()), columns | counts.any(axis=0)
        if not (of_rows := counts.any(axis=1)).all():
            raise _nothing_observed(name, "row", start + int(np.argmin(of_rows)), deviations)
    if not columns.all():
        raise _nothing_observed(name, "column", int(np.argmin(columns)), deviations)
    return float(low), float(high)


def _nothing_observed(name: str, side: str, at: int, deviations: bool) -> InvalidParameterError:
    value = "infinite" if deviations else "0"
    return InvalidParameterError(
        f"{name} is {value} in all of {side} {at}: nothing was observed there. Leave that {side} out of X "
        f"and of {name}."
    )


def _inverse_squares(deviations: EntryWeights) -> EntryWeights:
    values, absent = deviations.values, deviations.absent
    if sp.issparse(values):
        values = values.copy()
        values.data = values.data**-2.0
    elif is_dask(values):
        values = values.astype(np.float64) ** -2
    else:
        xp = array_namespace(values)
        values = xp.astype(values, xp.float64) ** -2
    return EntryWeights(values, 0.0 if absent == np.inf else absent**-2.0)


def rank_one_weights(weights: Any) -> tuple[FloatArray, FloatArray] | None:
    """Return weights of rows (of mean 1) and of columns whose products they are; None if there are none."""
    first = to_float64(weights[0, :])
    j = int(np.argmax(first))
    if not first[j] > 0:
        return None
    rows = to_float64(weights[:, j]) / first[j]
    if not (rows.min() > 0 and first.min() > 0):
        return None
    # What two products in the dtype of the weights may differ by.
    digits = 4 * float(array_namespace(weights).finfo(weights.dtype).eps)
    step = rows_per_block(len(first), BLOCK_ENTRIES)
    for start in range(0, len(rows), step):
        part = to_numpy(weights[start : min(start + step, len(rows)), :])
        product = rows[start : start + step, None] * first
        if not np.all(np.abs(part - product) <= digits * product):
            return None
    mean = float(rows.mean())
    return rows / mean, first * mean
