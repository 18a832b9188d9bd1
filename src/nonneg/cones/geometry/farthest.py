"""A pass over clustered data: the points farthest from the axes of their clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray, Namespace, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.sparse import SparseMatrix
from nonneg.kernels.sparse_products import sparse_times

ROUNDING = 4e-15
"""Angles are accurate to about this many radians."""

# A squared chord that comes from a cosine has lost more than ten digits here: take the difference instead.
_NEAR_AXIS = 1e-5


@dataclass(frozen=True)
class FarthestPoints:
    """The points of each cluster that are farthest from its axis."""

    rows: list[IntArray]  # for each cluster the rows of these points, the farthest first
    # The distance of the farthest one to the axis, both of unit length; -1 for a cluster without points.
    chords: FloatArray
    counts: FloatArray  # how many points a cluster has
    # Weighted sums of the squared lengths of the points, and of their squared distances to the axes' lines.
    sums: FloatArray


def farthest_points(
    data: DataMatrix, labels: SampleArray, axes: FloatArray, clusters: Any, n_points: int
) -> FarthestPoints:
    """Find the points that are farthest from the axes of their clusters, in one pass over the data."""
    parts, counts, sums = data.reduce_rows(
        _farthest_of_block, labels, axes=axes, clusters=np.asarray(clusters), n_points=n_points
    )
    chords = np.full(len(axes), -1.0)
    rows: list[IntArray] = [np.zeros(0, dtype=np.intp)] * len(axes)
    for c in np.flatnonzero(clusters):
        index, squares, start = [], [], 0
        for n_rows, farthest in parts:
            local, values = farthest[c]
            index.append(local + start)
            squares.append(values)
            start += n_rows
        together = np.concatenate(squares)
        order = np.argsort(-together, kind="stable")[:n_points]
        rows[c] = np.concatenate(index)[order].astype(np.intp)
        if len(order):
            chords[c] = np.sqrt(together[order[0]])
    return FarthestPoints(rows, chords, counts, sums)


def _farthest_of_block(
    block: LocalMatrix, labels: Array, *, axes: FloatArray, clusters: Any, n_points: int
) -> tuple[list[Any], FloatArray, FloatArray]:
    own = to_float64(labels)[:, 0].astype(np.intp)
    valid = own >= 0
    if block.weights is not None:
        valid &= to_float64(block.weights) > 0
    index = np.flatnonzero(valid)
    index = index[np.asarray(clusters)[own[index]]]
    own = own[index]
    chords, lengths = _squared_chords(block, index, own, axes)
    nonzero = lengths > 0
    index, own, chords, lengths = index[nonzero], own[nonzero], chords[nonzero], lengths[nonzero]
    weights = lengths if block.weights is None else lengths * to_float64(block.weights)[index]
    k = len(axes)
    counts = np.bincount(own, minlength=k).astype(np.float64)
    outside = np.bincount(own, weights * (chords * (1.0 - chords / 4.0)), minlength=k)
    norms = np.bincount(own, weights, minlength=k)
    sums = np.stack([norms, outside]).astype(np.float64)
    # The farthest points first within each cluster, and the clusters one after another.
    order = np.lexsort((index, -chords, own))
    edges = np.searchsorted(own[order], np.arange(k + 1))
    farthest = []
    for c in range(k):
        first = order[edges[c] : min(edges[c + 1], edges[c] + n_points)]
        farthest.append((index[first], chords[first]))
    return [(block.shape[0], farthest)], counts, sums


def _squared_chords(
    block: LocalMatrix, index: IntArray, own: IntArray, axes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the squared distances of rows of unit length to their axes, and the rows' squared lengths."""
    if isinstance(block, SparseMatrix):
        return _sparse_chords(block, index, own, axes)
    chords, lengths = np.zeros(len(index)), np.zeros(len(index))
    # Rows that stay in a core's cache; a GPU is given more at a time.
    step = max(1, (1 << (16 if block.container == "dense" else 22)) // max(1, block.shape[1]))
    moved_axes = axes if block.container == "dense" else _to_float64_device(block, axes)

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, step):
            part = slice(first, min(first + step, stop))
            rows = block.take_rows(index[part])
            chords[part], lengths[part] = _differences(block.xp, rows, moved_axes, own[part])

    if block.container == "dense":
        parallel_for(work, len(index), chunk_size=64, operations=4.0 * len(index) * block.shape[1])
    else:
        work(0, len(index))
    return chords, lengths


def _to_float64_device(block: LocalMatrix, array: FloatArray) -> Array:
    return block.xp.astype(block.xp.asarray(array, device=block.take_rows([]).device), block.xp.float64)


def _differences(xp: Namespace, rows: Array, axes: Array, own: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the squared chords and lengths of rows, which are overwritten."""
    if isinstance(rows, np.ndarray):
        far = rows.astype(np.float64, copy=False)
        squares = np.einsum("ij,ij->i", far, far)
        far /= np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
        far -= axes[own]
        return np.einsum("ij,ij->i", far, far), squares
    rows = xp.astype(rows, xp.float64)
    squares = xp.sum(rows * rows, axis=1)
    norms = xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))
    far = rows / norms[:, None] - xp.take(axes, xp.asarray(own, device=rows.device), axis=0)
    return to_float64(xp.sum(far * far, axis=1)), to_float64(squares)


def _sparse_chords(
    block: SparseMatrix, index: IntArray, own: IntArray, axes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    csr = block.csr
    exact = csr.astype(np.float64)
    lengths = np.asarray(exact.multiply(exact).sum(axis=1), dtype=np.float64).ravel()[index]
    products = sparse_times(csr.indptr, csr.indices, exact.data, np.ascontiguousarray(axes.T))[index, own]
    chords = np.maximum(2.0 - 2.0 * products / np.sqrt(np.where(lengths > 0, lengths, 1.0)), 0.0)
    near = np.flatnonzero(chords < _NEAR_AXIS)
    step = max(1, (1 << 18) // max(1, block.shape[1]))
    for first in range(0, len(near), step):
        part = near[first : first + step]
        chords[part], lengths[part] = _differences(np, block.take_rows(index[part]), axes, own[part])
    return chords, lengths
