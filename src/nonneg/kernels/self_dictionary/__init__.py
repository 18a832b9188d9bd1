"""Which data point every column of a self-dictionary problem moves to: product and minimum in one pass.

The scores of column l are x_n'r_l + base_n (+ something at the few listed entries of the column), over all
data points n. They are made block by block in float32, centred and scaled so that none exceeds 1, and never
kept. A bound on the error of such a product says which columns are too close to call; those are decided in
float64, the lowest index first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import is_cuda_tensor, numpy_view
from nonneg._blas import single_threaded_products
from nonneg._threads import parallel_for
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.self_dictionary import array_api as portable
from nonneg.kernels.self_dictionary.grouped_scan import FEWEST_POINTS, MOST_FEATURES, GroupedScan, PointGroups

if TYPE_CHECKING:
    from nonneg.kernels.self_dictionary.torch_slope import TensorSlope

# A block of scores (256 KB) and the points and residuals that make it stay in a core's second-level cache.
ROWS = 256
COLUMNS = 256
# Products in one call of a compiled scan, which takes two milliseconds then: where other processes use the
# cores too, threads that never meet were seen to stay on the same one.
ONE_CALL = 1 << 25
# Roundings in one score beside those of its sum: of the point, of the residual, of the scales, of what is
# added at listed entries.
ROUNDINGS = 8


@dataclass(frozen=True)
class PenaltySlope:
    """The slope of a penalty on the coefficients.

    Attributes
    ----------
    base : array of float64 of shape (n_points,)
        At entries that are not listed; not negative.
    indptr, rows : array
        The listed entries, column by column.
    extra : array of float64
        What the slope is at a listed entry beyond the base of its row; not negative.
    """

    base: FloatArray
    indptr: IntArray
    rows: IntArray
    extra: FloatArray

    @property
    def base_scale(self) -> float:
        """The largest base; 0 where its inverse would overflow, which float64 scores alone can tell."""
        largest = float(self.base.max(initial=0.0))
        return largest if largest > 1e-290 else 0.0


@dataclass(frozen=True)
class Dictionary:
    """Data points with what the scan needs to know of them.

    Attributes
    ----------
    points : array or scipy.sparse CSR array of shape (n_points, n_features)
        One data point a row.
    centre : array of shape (n_features,)
        Taken from every point before it is rounded to float32; the choice does not depend on it.
    radius : float
        The largest distance of a point from the centre.
    """

    points: Any
    centre: Array
    radius: float

    @property
    def on_host(self) -> bool:
        """Whether the compiled kernels see the points."""
        return isinstance(self.points, np.ndarray) or sp.issparse(self.points)

    @property
    def inverse(self) -> float:
        """What brings the centred points into the unit ball."""
        return 1.0 / self.radius if self.radius > 0 else 0.0

    @cached_property
    def rounded(self) -> Any:
        """Dense points in float32, centred and scaled, with room for the penalty's share; made once."""
        from nonneg.kernels.self_dictionary.numba import fill_dense

        n_points, m = self.points.shape
        out = np.empty((n_points, m + 1), dtype=np.float32)

        def work(start: int, stop: int) -> None:
            fill_dense(self.points, self.centre, self.inverse, start, stop, out)

        parallel_for(work, n_points, chunk_size=ROWS, operations=float(out.size))
        return out

    @cached_property
    def rounded_tensor(self) -> Any:
        """The same of PyTorch tensors, in the types of the products there."""
        from nonneg.kernels.self_dictionary.torch_scan import RoundedPoints

        return RoundedPoints(self.points, self.centre, self.inverse)

    @cached_property
    def groups(self) -> PointGroups | None:
        """Dense points put together by nearness, where that makes the scan faster; made once."""
        n_points, m = self.points.shape
        if sp.issparse(self.points) or n_points < FEWEST_POINTS or m > MOST_FEATURES or self.radius == 0:
            return None
        return PointGroups(self.rounded)


def dictionary_of(points: Any) -> Dictionary:
    """Find the centre and the radius of data points.

    Parameters
    ----------
    points : array or scipy.sparse CSR array of shape (n_points, n_features)
        One data point a row; host tensors are seen as NumPy arrays.

    Returns
    -------
    Dictionary
        Ready for `best_atoms`.
    """
    points = numpy_view(points)
    if sp.issparse(points):
        points = sp.csr_array(points)
        centre = np.asarray(points.sum(axis=0), dtype=np.float64).reshape(-1) / points.shape[0]
        squares = points.copy()
        squares.data = squares.data.astype(np.float64) ** 2
        norms = np.asarray(squares.sum(axis=1)).reshape(-1) - 2.0 * (points @ centre) + centre @ centre
        # A difference of squares: what rounding took off is given back.
        slack = 1e-12 * float(np.max(np.abs(norms)) + centre @ centre)
        return Dictionary(points, centre, float(np.sqrt(max(norms.max() + slack, 0.0))))
    if not isinstance(points, np.ndarray):
        return Dictionary(points, *portable.centre_and_radius(points))
    points = np.ascontiguousarray(points)
    centre = points.mean(axis=0, dtype=np.float64)
    furthest = 0.0
    for start in range(0, len(points), 1 << 12):
        apart = points[start : start + (1 << 12)] - centre
        furthest = max(furthest, float(np.einsum("ij,ij->i", apart, apart).max()))
    return Dictionary(points, centre, float(np.sqrt(furthest)) * (1.0 + 1e-12))


def near_tie(n_features: int, unit: float = 2.0**-24) -> float:
    """Return the distance within which two scaled float32 scores may be in the wrong order."""
    return 2.02 * (n_features + 1 + ROUNDINGS) * unit


def fused_at(residual: Array) -> bool:
    """Tell whether one kernel makes products and minima where the residuals are.

    Parameters
    ----------
    residual : array
        Of any namespace.

    Returns
    -------
    bool
        True on a GPU that `kernels.triton_scan` serves.
    """
    if not is_cuda_tensor(residual):
        return False
    from nonneg.kernels.self_dictionary import triton as triton_scan

    return triton_scan.serves(residual)


def best_atoms(
    dictionary: Dictionary,
    residual: Array,
    slope: PenaltySlope | TensorSlope,
    columns: IntArray | None = None,
) -> Any:
    """Return, for every column l, the data point n with the lowest x_n'r_l + slope.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_points, n_features)
        The rows r_l, where the points are.
    slope : PenaltySlope or TensorSlope
        The penalty's part.
    columns : array of int, optional
        The columns wanted; all by default.

    Returns
    -------
    array of int64 of shape (n_columns,)
        In NumPy; a tensor where the slope is one of tensors. Of equal scores, in float64, the lowest index
        wins.

    Notes
    -----
    Costs 2 n_points n_features operations a column; the memory is that of the points in float32 (of sparse
    ones, of a tile) and of one block of scores a thread.
    """
    if not isinstance(slope, PenaltySlope):
        from nonneg.kernels.self_dictionary import torch_scan as tensor_scan

        return tensor_scan.best_atoms(dictionary, residual, slope, columns)
    if not dictionary.on_host:
        if fused_at(residual):
            from nonneg.kernels.self_dictionary import torch_scan as tensor_scan

            return tensor_scan.best_atoms_of_host(dictionary, residual, slope, columns)
        return portable.best_atoms(dictionary, residual, slope, columns)
    wanted = np.arange(len(slope.base)) if columns is None else np.asarray(columns, dtype=np.int64)
    residual = np.ascontiguousarray(numpy_view(residual))
    scan = _HostScan(dictionary, residual, slope)
    groups = dictionary.groups if len(wanted) > FEWEST_POINTS else None
    if groups is None:
        return scan.columns(wanted)
    if not len(groups.leaders):
        groups.follow(scan.columns(wanted[:: max(1, len(wanted) // COLUMNS)]))
    find = scan.grouped(groups)
    found = np.concatenate(scan.over(lambda start, stop: find(wanted[start:stop]), len(wanted)))
    groups.follow(found)
    return found


class _HostScan:
    """One scan of the compiled kernels over dense or sparse points."""

    def __init__(self, dictionary: Dictionary, residual: FloatArray, slope: PenaltySlope) -> None:
        self.points, self.centre, self.radius = dictionary.points, dictionary.centre, dictionary.radius
        self.residual, self.slope = residual, slope
        self.base_scale = slope.base_scale
        base_inverse = 1.0 / self.base_scale if self.base_scale > 0 else 0.0
        self.scaling = (self.centre, dictionary.inverse, slope.base, base_inverse)
        self.listed = (slope.indptr, slope.rows, slope.extra)
        self.tol: Any = np.float32(near_tie(residual.shape[1]))
        self.rounded: Any = None if sp.issparse(self.points) else dictionary.rounded
        if self.rounded is not None:
            np.multiply(slope.base, base_inverse, out=self.rounded[:, -1], casting="same_kind")

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
        """Return the best points of some columns."""
        found = np.empty(len(wanted), dtype=np.int64)
        take = self._dense(wanted, found) if self.rounded is not None else self._sparse(wanted, found)
        with single_threaded_products():
            self.over(take, len(wanted))
        return found

    def _dense(self, wanted: IntArray, found: IntArray) -> Callable[[int, int], None]:
        # Few calls, with little before them: threads that meet at the GIL wait for each other.
        from nonneg.kernels.self_dictionary.numba import scan_dense

        named = np.ascontiguousarray(wanted)
        points = (self.rounded, self.points, self.centre)
        columns = (self.residual, named, self.radius, self.base_scale, self.slope.base, *self.listed)
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
        from nonneg.kernels.self_dictionary.numba import take_block

        index = np.zeros(len(wanted), dtype=np.int64)
        best = np.full(len(wanted), np.inf, dtype=np.float32)
        second = best.copy()
        right, sizes = self._right(wanted)
        for first, scores in self._blocks(right):
            take_block(scores, first, wanted, *self.listed, sizes, best, second, index)
        close = np.flatnonzero(~(second - best > self.tol))
        if len(close):
            index[close] = self._settled(wanted[close], best[close] + self.tol)
        return index

    def grouped(self, groups: PointGroups) -> Callable[[IntArray], IntArray]:
        """Return the same search with groups of points that a bound rules out left out."""
        facts = (self.points, self.centre, self.residual, self.slope.base, *self.listed)
        return GroupedScan(groups, self.rounded, facts, self.tol, self._scaled, self.columns).columns

    def _right(self, wanted: IntArray) -> tuple[Any, FloatArray]:
        right, sizes = self._scaled(wanted)
        return right.T, sizes

    def _scaled(self, wanted: IntArray) -> tuple[Any, FloatArray]:
        from nonneg.kernels.self_dictionary.numba import fill_columns

        right = np.empty((len(wanted), self.residual.shape[1] + 1), dtype=np.float32)
        sizes = np.empty(len(wanted))
        fill_columns(self.residual, wanted, self.radius, self.base_scale, right, sizes)
        return right, sizes

    def _blocks(self, right: Any) -> Any:
        # Sparse points become dense one tile at a time.
        from nonneg.kernels.self_dictionary.numba import fill_sparse_tile

        csr, n_points = self.points, self.residual.shape[0]
        room = np.empty((ROWS, right.shape[1]), dtype=np.float32)
        tile = np.empty((ROWS, len(right)), dtype=np.float32)
        for start in range(0, n_points, ROWS):
            stop = min(start + ROWS, n_points)
            fill_sparse_tile(csr.indptr, csr.indices, csr.data, *self.scaling, start, stop, tile)
            scores = room[: stop - start]
            np.matmul(tile[: stop - start], right, out=scores)
            yield start, scores

    def _settled(self, wanted: IntArray, threshold: Any) -> IntArray:
        from nonneg.kernels.self_dictionary.numba import add_listed, settle_sparse

        csr = self.points
        exact = np.full(len(wanted), np.inf)
        index = np.zeros(len(wanted), dtype=np.int64)
        facts = (self.residual, wanted, self.slope.base, *self.listed, exact, index)
        right, sizes = self._right(wanted)
        for first, scores in self._blocks(right):
            add_listed(scores, first, len(scores), wanted, *self.listed, sizes)
            settle_sparse(scores, first, threshold, csr.indptr, csr.indices, csr.data, *facts)
        return index
