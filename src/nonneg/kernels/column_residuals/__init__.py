"""Residuals (XC - X)' of a self-dictionary problem, one row per column of C, updated with every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import numpy_view
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.column_residuals import array_api as portable
from nonneg.kernels.self_dictionary.types import Dictionary
from nonneg.kernels.sparse_columns import SparseColumns

CHUNK_SIZE = 256
# Rows of a sparse matrix that are dense at a time: about a million entries.
ENTRIES = 1 << 20


def column_products(dictionary: Dictionary, residual: Array, vertices: IntArray) -> tuple[Array, Array]:
    """Return r'(r + x - a) and r'r for every column, with x its data point and a its vertex.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_points, n_features)
        The rows r.
    vertices : array of int of shape (n_points,)
        The index of a.

    Returns
    -------
    fit : array of float64 of shape (n_points,)
        The gradient of 0.5 r'r in the direction from the vertex to the column: its part of the duality gap.
    square : array of float64 of shape (n_points,)
        The squared norms.
    """
    from nonneg.kernels.column_residuals import numba as compiled

    if not compiled.is_supported(dictionary.points):
        return portable.column_products(dictionary.points, residual, vertices)

    residual = _on_host(residual)
    fit, square = np.empty(len(vertices)), np.empty(len(vertices))
    _over_columns(compiled.column_products, dictionary, (vertices,), (), (residual, fit, square))
    return fit, square


def advance_residuals(
    dictionary: Dictionary,
    residual: Array,
    entering: IntArray,
    *,
    keep: Any,
    gain: Any,
    leaving: IntArray | None = None,
    cut: Any = 0.0,
) -> Array:
    """Return the residuals after a step of every column.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_points, n_features)
        The residuals before; not modified.
    entering : array of int of shape (n_points,)
        The vertices that gain weight.
    keep, gain : number or array of shape (n_points,)
        The factor of the old column and the weight gained; keep + gain - cut is 1.
    leaving : array of int of shape (n_points,), optional
        The vertices that lose weight; -1 for none.
    cut : number or array of shape (n_points,), default 0.0
        The weight lost.

    Returns
    -------
    array of float64 of shape (n_points, n_features)
        keep r + gain (x_entering - x) - cut (x_leaving - x).
    """
    from nonneg.kernels.column_residuals import numba as compiled

    if not compiled.is_supported(dictionary.points):
        return portable.advance_residuals(dictionary.points, residual, entering, leaving, keep, gain, cut)

    residual = _on_host(residual)
    out = np.empty_like(residual)
    if leaving is None and isinstance(keep, float) and isinstance(gain, float):
        _over_columns(compiled.step_residuals, dictionary, (entering,), (keep, gain), (residual, out))
        return out
    n = len(entering)
    shares = [
        np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))) for value in (keep, gain, cut)
    ]
    leaves = np.full(n, -1, dtype=np.int64) if leaving is None else leaving
    _over_columns(compiled.advance_residuals, dictionary, (entering, leaves), (), (*shares, residual, out))
    return out


def entry_products(dictionary: Dictionary, residual: Array, columns: SparseColumns) -> FloatArray:
    """Return x_n'r_l for every stored entry (n, l).

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_points, n_features)
        The rows r_l.
    columns : SparseColumns
        The entries.

    Returns
    -------
    array of float64 of shape (n_points, capacity)
        A NumPy array, laid out as the lists.
    """
    from nonneg.kernels.column_residuals import numba as compiled

    out = np.zeros(columns.rows.shape)
    points = dictionary.points
    compiles = compiled.is_supported(points)
    if compiles and not sp.issparse(points):

        def work(start: int, stop: int) -> None:
            compiled.entry_products(points, columns.rows, columns.counts, residual, out, start, stop)

        residual = _on_host(residual)
        parallel_for(work, len(out), chunk_size=CHUNK_SIZE, operations=2.0 * columns.nnz * points.shape[1])
        return out
    # One position of all lists at a time.
    for place in range(int(columns.counts.max(initial=0))):
        rows = np.where(columns.counts > place, columns.rows[:, place], 0)
        if compiles:
            out[:, place] = points[rows].multiply(residual).sum(axis=1)
        else:
            out[:, place] = portable.row_products(points, rows, residual)
    return out


def residuals_of(dictionary: Dictionary, columns: SparseColumns) -> Array:
    """Compute the residuals from the coefficients.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    columns : SparseColumns
        The coefficients C.

    Returns
    -------
    array of float64 of shape (n_points, n_features)
        The rows of (XC - X)', on the device of the points.
    """
    from nonneg.kernels.column_residuals import numba as compiled

    points = dictionary.points
    if not compiled.is_supported(points):
        return portable.residuals_of(points, columns)
    if not columns.nnz:
        return -(points.toarray() if sp.issparse(points) else points).astype(np.float64)
    turned = columns.as_csc().T.tocsr()
    if not sp.issparse(points):
        return turned @ points.astype(np.float64, copy=False) - points
    out = np.empty(points.shape)
    for part in _dense_parts(points, 0, len(out)):
        out[part] = (turned[part] @ points).toarray() - points[part].toarray()
    return out


def _on_host(residual: Array) -> FloatArray:
    return np.ascontiguousarray(numpy_view(residual))


def _dense_parts(points: Any, start: int, stop: int) -> Iterator[slice]:
    # Ranges of sparse points that are made dense.
    step = max(1, ENTRIES // points.shape[1])
    return (slice(first, min(first + step, stop)) for first in range(start, stop, step))


def _over_columns(
    kernel: Any,
    dictionary: Dictionary,
    indices: tuple[IntArray, ...],
    numbers: tuple[float, ...],
    arrays: tuple[Any, ...],
) -> None:
    # `kernel` is given the points of the columns, those that the indices name, and ranges of the columns.
    points = dictionary.points
    indices = tuple(np.ascontiguousarray(index, dtype=np.int64) for index in indices)

    def work(start: int, stop: int) -> None:
        if not sp.issparse(points):
            kernel(points, points, *indices, *numbers, *arrays, start, stop)
            return
        for part in _dense_parts(points, start, stop):
            wanted = [index[part] for index in indices]
            named = np.unique(np.concatenate([index[index >= 0] for index in wanted]))
            places = [np.where(index >= 0, np.searchsorted(named, index), index) for index in wanted]
            own, source, views = points[part].toarray(), points[named].toarray(), [of[part] for of in arrays]
            kernel(own, source, *places, *numbers, *views, 0, len(own))

    parallel_for(
        work, len(indices[0]), chunk_size=CHUNK_SIZE, operations=4.0 * points.shape[0] * points.shape[1]
    )
