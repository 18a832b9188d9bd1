"""Columns with few entries, each a short list of rows and weights, in plain NumPy (portable)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray


def step_columns(
    rows: IntArray,
    weights: Any,
    counts: IntArray,
    entering: IntArray,
    leaving: IntArray,
    keep: Any,
    gain: Any,
    cut: Any,
    floor: float,
    new_rows: IntArray,
    new_weights: Any,
    new_counts: IntArray,
    reached: Any,
    start: int,
    stop: int,
) -> None:
    """Write columns start to stop after a move; see `kernels.sparse_columns.step_columns`."""
    part = slice(start, stop)
    room = new_rows.shape[1] + 1
    old = np.zeros((stop - start, room), dtype=weights.dtype)
    place = np.full((stop - start, room), -2, dtype=np.int64)
    old[:, : rows.shape[1]], place[:, : rows.shape[1]] = weights[part] * keep[part, None], rows[part]
    place[np.arange(room) >= counts[part, None]] = -2
    here = place == entering[part, None]
    missing = ~here.any(axis=1) & (gain[part] > 0)
    place[missing, counts[part][missing]] = entering[part][missing]
    old[missing, counts[part][missing]] = 0
    here = place == entering[part, None]
    old = np.where(here, old + gain[part, None], old)
    reached[part] = np.where(here.any(axis=1), np.where(here, old, 0).sum(axis=1), 0)
    old = np.where(place == leaving[part, None], old - cut[part, None], old)
    used = (place >= 0) & (old > floor)
    order = np.argsort(~used, axis=1, kind="stable")[:, : new_rows.shape[1]]
    new_counts[part] = used.sum(axis=1)
    new_rows[part] = np.where(np.take_along_axis(used, order, 1), np.take_along_axis(place, order, 1), 0)
    new_weights[part] = np.where(np.take_along_axis(used, order, 1), np.take_along_axis(old, order, 1), 0)


def row_facts(rows: IntArray, weights: Any, counts: IntArray, row_max: Any, row_count: IntArray) -> None:
    """Find the largest weight and the number of entries of every row."""
    used = np.arange(rows.shape[1]) < counts[:, None]
    np.maximum.at(row_max, rows[used], weights[used])
    row_count += np.bincount(rows[used], minlength=len(row_count)).astype(row_count.dtype)


def row_slopes(
    row_max: Any,
    row_count: IntArray,
    sums: FloatArray,
    scale: float,
    total: float,
    mu: float,
    base: FloatArray,
) -> float:
    """Complete the sums of the rows and find the slope of the smoothed row sparsity at zero entries."""
    n, filled = len(row_max), row_count > 0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        at_zero = np.where(row_max > 0, np.exp(-(row_max / scale)), 1.0)
    sums += (n - row_count) * at_zero
    base[:] = at_zero / sums
    return float(np.sum(row_max[filled] / total) + mu * np.sum(np.log(sums[filled] / n)))


def entry_slopes(
    indptr: IntArray,
    rows: IntArray,
    weights: Any,
    values: FloatArray,
    sums: FloatArray,
    total: float,
    shares: FloatArray,
    inner: FloatArray,
) -> None:
    """Find the slope at the listed entries, and slope times entry summed over each column."""
    shares[:] = values / sums[rows]
    column = np.repeat(np.arange(len(inner)), np.diff(indptr))
    inner[:] = np.bincount(column, weights=shares * (weights / total), minlength=len(inner))


def near_maxima(
    rows: IntArray, weights: Any, counts: IntArray, row_max: Any, reach: float, inverse: float
) -> tuple[IntArray, IntArray, Any, FloatArray]:
    """List the entries within `reach` of their row's largest; see `kernels.sparse_columns.near_maxima`."""
    below = row_max[rows] - weights
    near = (np.arange(rows.shape[1]) < counts[:, None]) & (below <= reach)
    indptr = np.concatenate([[0], np.cumsum(near.sum(axis=1))]).astype(np.int64)
    return indptr, rows[near], weights[near], np.where(below[near] == 0, 1.0, np.exp(-below[near] * inverse))
