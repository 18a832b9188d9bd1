"""Rows of a block of data as the compiled core reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core


def core_rows(block: Any) -> tuple[Any, ...] | None:
    """Return the rows of a LocalMatrix: an array, or indptr, indices and data; None without the core."""
    rows = block.raw_rows() if core() is not None else None
    if rows is None:
        return None
    if isinstance(rows, np.ndarray):
        return (rows,) if is_float_array(rows) else None
    indptr, indices, data = rows
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    return (indptr, indices, np.ascontiguousarray(data)) if is_float_array(data) else None
