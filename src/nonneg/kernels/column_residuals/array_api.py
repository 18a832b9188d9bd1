"""Residuals of a self-dictionary problem, for arrays of any namespace (portable)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_numpy
from nonneg._typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from nonneg.kernels.sparse_columns import SparseColumns


def _rows(points: Array, index: Any) -> Array:
    xp = array_namespace(points)
    if isinstance(index, np.ndarray):
        index = to_device(index.astype(np.int64, copy=False), points)
    return xp.astype(xp.take(points, index, axis=0), xp.float64)


def column_products(points: Array, residual: Array, vertices: Any) -> tuple[Array, Array]:
    """Return r'(r + x - a) and r'r of every column; see `kernels.column_residuals.column_products`."""
    xp = array_namespace(points)
    apart = xp.astype(points, xp.float64) - _rows(points, vertices)
    fit, squares = xp.sum(residual * (residual + apart), axis=1), xp.sum(residual * residual, axis=1)
    return (to_numpy(fit), to_numpy(squares)) if isinstance(vertices, np.ndarray) else (fit, squares)


def advance_residuals(
    points: Array,
    residual: Array,
    entering: Any,
    leaving: IntArray | None,
    keep: Any,
    gain: Any,
    cut: Any,
) -> Array:
    """Return the residuals after a step; see `kernels.column_residuals.advance_residuals`."""
    xp = array_namespace(points)
    own = xp.astype(points, xp.float64)
    share = [
        to_device(np.asarray(value, dtype=np.float64), points)[:, None] if np.ndim(value) else float(value)
        for value in (keep, gain, cut)
    ]
    out = share[0] * residual + share[1] * (_rows(points, entering) - own)
    if leaving is not None:
        out = out - share[2] * (_rows(points, np.maximum(leaving, 0)) - own)
    return out


def row_products(points: Array, rows: IntArray, residual: Array) -> FloatArray:
    """Return the inner product of a named point with the residual of every column."""
    xp = array_namespace(points)
    return to_numpy(xp.sum(_rows(points, rows) * residual, axis=1))


def residuals_of(points: Array, columns: SparseColumns) -> Array:
    """Compute the residuals from the coefficients; see `kernels.column_residuals.residuals_of`."""
    xp = array_namespace(points)
    out = -xp.astype(points, xp.float64)
    # One position of all lists at a time: as many passes as the longest list has entries.
    for place in range(int(columns.counts.max(initial=0))):
        used = columns.counts > place
        share = np.where(used, columns.weights[:, place], 0) / (columns.total or 1.0)
        rows = np.where(used, columns.rows[:, place], 0)
        out = out + to_device(share, points)[:, None] * _rows(points, rows)
    return out
