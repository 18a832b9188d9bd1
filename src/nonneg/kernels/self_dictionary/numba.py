"""The vertex of every column for points in host memory (compiled).

A block of scores is made by one float32 product and read once while it is in the cache; what is too close to
call is decided in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import numpy_view
from nonneg._blas import single_threaded_products
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.self_dictionary.grouped_scan import FEWEST_POINTS, MOST_FEATURES, GroupedScan, PointGroups
from nonneg.kernels.self_dictionary.numba_kernels import (
    add_listed,
    decide_sparse,
    fill_columns,
    fill_dense,
    fill_sparse_tile,
    scan_dense,
    take_block,
)
from nonneg.kernels.self_dictionary.types import Dictionary, PenaltyGradient, near_tie

# Points and columns in a block of the scan: the scores (256 KB) and the points and residuals that make them
# stay in a core's second-level cache.
ROWS, COLUMNS = 256, 256
# Products in one call of a compiled scan, about two milliseconds: with longer calls, on machines whose cores
# are shared with other processes, threads were seen to stay on the same core.
ONE_CALL = 1 << 25


def is_supported(points: Any) -> bool:
    """Tell whether the compiled loops accept an array."""
    return isinstance(points, np.ndarray) or sp.issparse(points)


def minimizing_vertices(
    dictionary: Dictionary, residual: Array, gradient: PenaltyGradient, columns: IntArray | None = None
) -> IntArray:
    """Return the vertex of every column; see `kernels.self_dictionary.minimizing_vertices`."""
    wanted = np.arange(len(gradient.base)) if columns is None else np.asarray(columns, dtype=np.int64)
    residual = np.ascontiguousarray(numpy_view(residual))
    scan = _HostScan(dictionary, residual, gradient)
    groups = point_groups(dictionary) if len(wanted) > FEWEST_POINTS else None
    if groups is None:
        return scan.columns(wanted)
    if not len(groups.leaders):
        groups.follow(scan.columns(wanted[:: max(1, len(wanted) // COLUMNS)]))
    find = scan.grouped(groups)
    found = np.concatenate(scan.over(lambda start, stop: find(wanted[start:stop]), len(wanted)))
    groups.follow(found)
    return found


def rounded_points(dictionary: Dictionary) -> Any:
    """Return dense points in float32, centered and scaled, with room for the penalty; computed once."""
    if "rounded" not in dictionary.cache:
        n_points, m = dictionary.points.shape
        out = np.empty((n_points, m + 1), dtype=np.float32)

        def work(start: int, stop: int) -> None:
            fill_dense(dictionary.points, dictionary.center, dictionary.inverse, start, stop, out)

        parallel_for(work, n_points, chunk_size=ROWS, operations=float(out.size))
        dictionary.cache["rounded"] = out
    return dictionary.cache["rounded"]


def point_groups(dictionary: Dictionary) -> PointGroups | None:
    """Return dense points grouped by nearness, where that makes the scan faster; computed once."""
    points = dictionary.points
    if "groups" not in dictionary.cache:
        n_points, m = points.shape
        plain = sp.issparse(points) or n_points < FEWEST_POINTS or m > MOST_FEATURES or dictionary.radius == 0
        dictionary.cache["groups"] = None if plain else PointGroups(rounded_points(dictionary))
    groups: PointGroups | None = dictionary.cache["groups"]
    return groups


class _HostScan:
    """One scan of the compiled kernels over dense or sparse points."""

    def __init__(self, dictionary: Dictionary, residual: FloatArray, gradient: PenaltyGradient) -> None:
        self.points, self.center, self.radius = dictionary.points, dictionary.center, dictionary.radius
        self.residual, self.gradient = residual, gradient
        self.base_scale = gradient.base_scale
        base_inverse = 1.0 / self.base_scale if self.base_scale > 0 else 0.0
        self.scaling = (self.center, dictionary.inverse, gradient.base, base_inverse)
        self.listed = (gradient.indptr, gradient.rows, gradient.extra)
        self.tol: Any = np.float32(near_tie(residual.shape[1]))
        self.rounded: Any = None if sp.issparse(self.points) else rounded_points(dictionary)
        if self.rounded is not None:
            np.multiply(gradient.base, base_inverse, out=self.rounded[:, -1], casting="same_kind")

    def over(self, work: Callable[[int, int], Any], n_columns: int) -> list[Any]:
        """Call `work(start, stop)` on ranges that cover some columns."""
        n_points, m = self.residual.shape
        return parallel_for(
            work,
            n_columns,
            chunk_size=COLUMNS if n_columns > 4 * COLUMNS else 64,
            operations=0.2 * 2.0 * n_points * m * n_columns,
        )

    def columns(self, wanted: IntArray) -> IntArray:
        """Return the vertices of some columns."""
        found = np.empty(len(wanted), dtype=np.int64)
        take = self._dense(wanted, found) if self.rounded is not None else self._sparse(wanted, found)
        with single_threaded_products():
            self.over(take, len(wanted))
        return found

    def _dense(self, wanted: IntArray, found: IntArray) -> Callable[[int, int], None]:
        # Few calls with little Python between them: threads that need the GIL wait for each other.
        named = np.ascontiguousarray(wanted)
        points = (self.rounded, self.points, self.center)
        columns = (self.residual, named, self.radius, self.base_scale, self.gradient.base, *self.listed)
        scales = (self.tol, ROWS, COLUMNS)
        step = COLUMNS * max(1, ONE_CALL // (COLUMNS * self.rounded.size))

        def take(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                scan_dense(*points, *columns, *scales, found, first, min(first + step, stop))

        return take

    def _sparse(self, wanted: IntArray, found: IntArray) -> Callable[[int, int], None]:
        def take(start: int, stop: int) -> None:
            for first in range(start, stop, COLUMNS):
                part = slice(first, min(first + COLUMNS, stop))
                found[part] = self._sparse_block(wanted[part])

        return take

    def _sparse_block(self, wanted: IntArray) -> IntArray:
        index = np.zeros(len(wanted), dtype=np.int64)
        best = np.full(len(wanted), np.inf, dtype=np.float32)
        second = best.copy()
        right, sizes = self._right(wanted)
        for first, scores in self._blocks(right):
            take_block(scores, first, wanted, *self.listed, sizes, best, second, index)
        close = np.flatnonzero(~(second - best > self.tol))
        if len(close):
            index[close] = self._decided(wanted[close], best[close] + self.tol)
        return index

    def grouped(self, groups: PointGroups) -> Callable[[IntArray], IntArray]:
        """Return the same search, which skips groups of points that a bound rules out."""
        facts = (self.points, self.center, self.residual, self.gradient.base, *self.listed)
        return GroupedScan(groups, self.rounded, facts, self.tol, self._scaled, self.columns).columns

    def _right(self, wanted: IntArray) -> tuple[Any, FloatArray]:
        right, sizes = self._scaled(wanted)
        return right.T, sizes

    def _scaled(self, wanted: IntArray) -> tuple[Any, FloatArray]:
        right = np.empty((len(wanted), self.residual.shape[1] + 1), dtype=np.float32)
        sizes = np.empty(len(wanted))
        fill_columns(self.residual, wanted, self.radius, self.base_scale, right, sizes)
        return right, sizes

    def _blocks(self, right: Any) -> Any:
        # Sparse points become dense one tile at a time.
        csr, n_points = self.points, self.residual.shape[0]
        room = np.empty((ROWS, right.shape[1]), dtype=np.float32)
        tile = np.empty((ROWS, len(right)), dtype=np.float32)
        for start in range(0, n_points, ROWS):
            stop = min(start + ROWS, n_points)
            fill_sparse_tile(csr.indptr, csr.indices, csr.data, *self.scaling, start, stop, tile)
            scores = room[: stop - start]
            np.matmul(tile[: stop - start], right, out=scores)
            yield start, scores

    def _decided(self, wanted: IntArray, threshold: Any) -> IntArray:
        csr = self.points
        exact = np.full(len(wanted), np.inf)
        index = np.zeros(len(wanted), dtype=np.int64)
        facts = (self.residual, wanted, self.gradient.base, *self.listed, exact, index)
        right, sizes = self._right(wanted)
        for first, scores in self._blocks(right):
            add_listed(scores, first, len(scores), wanted, *self.listed, sizes)
            decide_sparse(scores, first, threshold, csr.indptr, csr.indices, csr.data, *facts)
        return index
