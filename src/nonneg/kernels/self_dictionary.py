"""Scans of a self-dictionary problem: products of all points with residuals, reduced block by block.

Two reductions are needed. The linear minimization oracle of Frank-Wolfe asks each residual for the point with
the lowest score; the dual of the problem asks each point for a sum over the residuals. Blocks of scores are
products in float32 that are never stored, by NumPy on threads or by the library of the array on its device.
An error bound says which scores are too close to call; those are decided in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_namespace
from array_api_compat import device as device_of
from array_api_compat import numpy as array_api_numpy

from nonneg._arrays import clipped, numpy_view, to_device, to_numpy
from nonneg._compiled import core
from nonneg._lazy import cached_property
from nonneg._threads import parallel_for, single_threaded_blas, team_size
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.rows import ranges

# Scores that exist at a time: 1 MB per thread stays in a core's cache, 256 MB on another device.
HOST_SCORES, DEVICE_SCORES = 1 << 18, 1 << 26
# Points of one product; blocks of residuals follow from it.
POINTS = 1 << 11
# Residuals that are scaled at a time for the compiled scan, which shares them among threads.
RESIDUALS = 1 << 14
# Entries of sparse points that are dense at a time.
ENTRIES = 1 << 22
# Rounding errors in one score besides those of its sum: of the point, of the residual, of the scales, of the
# addition at listed entries.
ROUNDINGS = 8


def near_tie(n_features: int, unit: float = 2.0**-24) -> float:
    """Return the distance within which two scores of size one may be in the wrong order."""
    return 2.02 * (n_features + 1 + ROUNDINGS) * unit


@dataclass(frozen=True)
class Dictionary:
    """Data points relative to their center, read in blocks.

    Attributes
    ----------
    points : array or scipy.sparse CSR array of shape (n_points, n_features)
        One data point per row.
    center : array of shape (n_features,)
        Subtracted from every point; mixtures whose weights sum to one do not depend on it.
    radius : float
        The largest distance of a point from the center.
    """

    points: Any
    center: Array
    radius: float
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, points: Any) -> Dictionary:
        """Compute the center and the radius of data points; CPU tensors are viewed as NumPy arrays."""
        points = numpy_view(points)
        if sp.issparse(points):
            points = sp.csr_array(points)
            center = np.asarray(points.sum(axis=0), dtype=np.float64).reshape(-1) / points.shape[0]
        else:
            xp = array_namespace(points)
            center = xp.mean(xp.astype(points, xp.float64), axis=0)
        whole = cls(points, center, 0.0)
        squares = [float(whole.xp.max(whole.xp.sum(part * part, axis=1))) for part in whole.tiles()]
        return cls(points, center, float(np.sqrt(max(squares))) * (1.0 + 1e-12))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points and of features."""
        return tuple(self.points.shape)

    @cached_property
    def sparse(self) -> bool:
        """Whether the points are a sparse matrix."""
        return bool(sp.issparse(self.points))

    @cached_property
    def xp(self) -> Any:
        """The namespace of dense blocks."""
        return array_api_numpy if self.sparse else array_namespace(self.points)

    @cached_property
    def device(self) -> Any:
        """The device of dense blocks."""
        return None if self.sparse else device_of(self.points)

    def to_device(self, array: Any) -> Array:
        """Move an array to the device of the points."""
        return array if self.sparse else to_device(array, self.points)

    def tile(self, start: int, stop: int) -> Array:
        """Return a range of points, dense in float64."""
        part = self.points[start:stop].toarray() if self.sparse else self.points[start:stop, ...]
        return self.xp.astype(part, self.xp.float64, copy=False) - self.center

    def tiles(self) -> Any:
        """Yield all points, a range at a time."""
        return (self.tile(part.start, part.stop) for part in self.blocks(self.shape[1]))

    def rows(self, index: IntArray) -> Array:
        """Return some points, dense in float64."""
        if self.sparse:
            return self.points[index].toarray().astype(np.float64) - self.center
        part = self.xp.take(self.points, to_device(np.asarray(index, dtype=np.int64), self.points), axis=0)
        return self.xp.astype(part, self.xp.float64, copy=False) - self.center

    def steps(self, part: slice, vertices: IntArray) -> Array:
        """Return the way from a range of points to their vertices, dense in float64; the center drops out."""
        if self.sparse:
            return self.rows(vertices) - self.tile(part.start, part.stop)
        ends = self.xp.take(self.points, to_device(vertices, self.points), axis=0)
        wide, starts = self.xp.float64, self.points[part, ...]
        return self.xp.astype(ends, wide, copy=False) - self.xp.astype(starts, wide, copy=False)

    def blocks(self, width: int) -> list[slice]:
        """Return ranges of the points, given how many numbers each of them needs at a time."""
        return list(ranges(0, self.shape[0], max(1, ENTRIES // max(1, width))))

    def rounded(self, start: int, stop: int, dtype: Any) -> Array:
        """Return a range of points scaled into the unit ball in a dtype; dense points are scaled once."""
        scale = 1.0 / self.radius if self.radius > 0 else 0.0
        if self.sparse:
            return self.xp.astype(self.tile(start, stop) * scale, dtype)
        if dtype not in self.cache:
            parts = [self.xp.astype(part * scale, dtype) for part in self.tiles()]
            self.cache[dtype] = self.xp.concat(parts, axis=0)
        return self.cache[dtype][start:stop, ...]


@dataclass(frozen=True)
class PenaltyGradient:
    """The gradient of a penalty on the coefficients: a number per row, and more at a few entries.

    Attributes
    ----------
    base : array of float64 of shape (n_points,)
        Its value at entries that are not listed; nonnegative.
    rows, columns : array of int
        The listed entries, in the order of their columns.
    extra : array of float64
        Its value at a listed entry minus the base of the row; nonnegative.
    """

    base: FloatArray
    rows: IntArray
    columns: IntArray
    extra: FloatArray

    def between(self, start: int, stop: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the listed entries of a range of columns, which are counted from its start."""
        span = slice(*np.searchsorted(self.columns, [start, stop]))
        return self.rows[span], self.columns[span] - start, self.extra[span]


def minimizing_vertices(dictionary: Dictionary, residual: Array, gradient: PenaltyGradient) -> IntArray:
    """Return, for every residual r_l, the point n that minimizes x_n'r_l + gradient_nl.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_columns, n_features)
        The rows r_l, on the device of the points.
    gradient : PenaltyGradient
        The gradient of the penalty, in NumPy.

    Returns
    -------
    array of int64 of shape (n_columns,)
        A NumPy array. Of scores that are equal in float64, the lowest index wins.

    Notes
    -----
    Costs 2 n_points n_columns n_features operations; the memory is that of the points in float32 and of one
    block of scores per thread.
    """
    scan = _Scan(dictionary, residual, gradient)
    n = residual.shape[0]
    vertices, close = np.zeros(n, dtype=np.int64), np.empty(n, dtype=bool)

    def work(start: int, stop: int) -> None:
        for part in ranges(start, stop, scan.n_columns):
            vertices[part], close[part] = scan.lowest(part)

    operations = 2.0 * n * dictionary.shape[0] * dictionary.shape[1]
    if scan.on_host and scan.points is not None and core() is not None:
        close = scan.compiled(vertices, team_size(operations))
    elif scan.on_host:
        with single_threaded_blas():
            parallel_for(work, n, chunk_size=scan.n_columns, operations=operations)
    else:
        work(0, n)
    if close.any():
        vertices[close] = scan.exact(np.flatnonzero(close))
    return vertices


class _Scan:
    """One call of the oracle."""

    def __init__(self, dictionary: Dictionary, residual: Array, gradient: PenaltyGradient) -> None:
        self.dictionary, self.gradient = dictionary, gradient
        self.on_host = isinstance(residual, np.ndarray)
        self.xp: Any = array_namespace(residual)
        self.residual = residual
        n = dictionary.shape[0]
        room = HOST_SCORES if self.on_host else DEVICE_SCORES
        self.n_points = min(n, POINTS) if self.on_host else n
        self.n_columns = max(1, min(residual.shape[0], room // self.n_points))
        self.dtype, unit = self.xp.float32, 2.0**-24
        if is_torch_namespace(self.xp):
            import torch

            if torch.get_float32_matmul_precision() != "highest":
                self.dtype, unit = self.xp.float64, 2.0**-53
        self.tol = near_tie(residual.shape[1], unit)
        largest = float(gradient.base.max(initial=0.0))
        # Where its inverse would overflow, float64 scores decide.
        self.base_scale = largest if largest > 1e-290 else 0.0
        base = gradient.base / self.base_scale if self.base_scale > 0 else np.zeros(n)
        self.base = self.xp.astype(dictionary.to_device(base), self.dtype)[:, None]
        # The base is one more feature: adding it to the scores would take longer than their product.
        self.points = None if dictionary.sparse else self._with_base(0, n)

    def _with_base(self, start: int, stop: int) -> Array:
        points = self.dictionary.rounded(start, stop, self.dtype)
        return self.xp.concat([points, self.base[start:stop, ...]], axis=1)

    def prepared(self, part: slice) -> tuple[Array, IntArray, IntArray, FloatArray]:
        """Return the residuals of a range of columns and the listed entries, so that no score exceeds 1."""
        xp = self.xp
        rows = self.residual[part, ...]
        sizes = self.dictionary.radius * xp.sqrt(xp.vecdot(rows, rows)) + self.base_scale
        sizes = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        right = xp.empty((rows.shape[0], rows.shape[1] + 1), dtype=self.dtype, device=device_of(rows))
        right[:, :-1] = rows * (self.dictionary.radius / sizes)[:, None]
        right[:, -1] = self.base_scale / sizes
        listed, columns, extra = self.gradient.between(part.start, part.stop)
        return right, listed, columns, extra / to_numpy(sizes)[columns]

    def compiled(self, vertices: IntArray, n_threads: int) -> Any:
        """Write the vertices of all columns, and return which are too close to others to call."""
        close = np.empty(len(vertices), dtype=bool)
        for part in ranges(0, len(vertices), RESIDUALS):
            right, listed, columns, extra = self.prepared(part)
            n = len(right)
            starts = np.zeros(n + 1, dtype=np.int64)
            np.cumsum(np.bincount(columns, minlength=n), out=starts[1:])
            lowest, second = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
            with single_threaded_blas():
                arrays = (self.points, right, starts, listed, extra.astype(np.float32))
                core().lowest_scores(*arrays, vertices[part], lowest, second, n_threads)
            close[part] = ~(second - lowest > self.tol)
        return close

    def lowest(self, part: slice) -> tuple[IntArray, Any]:
        """Return the vertices of a range of columns, and which of them are too close to others to call."""
        xp = self.xp
        right, listed, columns, extra = self.prepared(part)
        every = xp.arange(right.shape[0], device=device_of(right))
        best = second = xp.full_like(right[:, 0], float("inf"))
        index = xp.zeros_like(every)
        for start in range(0, self.dictionary.shape[0], self.n_points):
            stop = min(start + self.n_points, self.dictionary.shape[0])
            points = self._with_base(start, stop) if self.points is None else self.points[start:stop, ...]
            scores: Any = None  # frees the last block before the next is made
            scores = right @ points.T
            inside = np.flatnonzero((listed >= start) & (listed < stop))
            if len(inside):
                at, of = (self.dictionary.to_device(array[inside]) for array in (columns, listed - start))
                scores[at, of] += xp.astype(self.dictionary.to_device(extra[inside]), self.dtype)
            place = xp.argmin(scores, axis=1)
            low = scores[every, place]
            scores[every, place] = float("inf")
            next_low = xp.min(scores, axis=1)
            second = xp.minimum(xp.maximum(best, low), xp.minimum(second, next_low))
            index = xp.where(low < best, place + start, index)
            best = xp.minimum(best, low)
        return to_numpy(index).astype(np.int64), ~to_numpy(second - best > self.tol)

    def exact(self, columns: IntArray) -> IntArray:
        """Return the vertices of some columns by scores in float64."""
        # Strictly lower scores alone replace an earlier one.
        xp = self.xp
        rows = xp.take(self.residual, self.dictionary.to_device(columns), axis=0)
        entries = [self.gradient.between(column, column + 1) for column in columns]
        index, best = np.zeros(len(columns), dtype=np.int64), np.full(len(columns), np.inf)
        for part in self.dictionary.blocks(self.dictionary.shape[1] + len(columns)):
            scores = to_numpy(rows @ self.dictionary.tile(part.start, part.stop).T)
            scores = scores + self.gradient.base[part]
            for place, (listed, _, extra) in enumerate(entries):
                inside = (listed >= part.start) & (listed < part.stop)
                scores[place, listed[inside] - part.start] += extra[inside]
            low = scores.argmin(axis=1)
            value = scores[np.arange(len(columns)), low]
            index, best = np.where(value < best, low + part.start, index), np.minimum(value, best)
        return index


def constraint_sums(dictionary: Dictionary, residual: Array, levels: Array) -> FloatArray:
    """Return sum_l max(0, t_l - x_n'r_l) for every data point n, or slightly more.

    Parameters
    ----------
    dictionary : Dictionary
        The data points.
    residual : array of float64 of shape (n_columns, n_features)
        The rows r_l, on the device of the points.
    levels : array of float64 of shape (n_columns,)
        The numbers t_l, relative to the center.

    Returns
    -------
    array of float64 of shape (n_points,)
        A NumPy array; upper bounds that differ from the sums by rounding errors of float32.

    Notes
    -----
    Costs 2 n_points n_columns n_features operations. The error bound of a score is added to its level, so
    that no sum is too small.
    """
    xp = array_namespace(residual)
    n_points, (n_columns, m) = dictionary.shape[0], residual.shape
    # One score has half the error of a difference of two.
    sizes = dictionary.radius * xp.sqrt(xp.sum(residual * residual, axis=1)) + xp.abs(levels)
    # In units in which no score exceeds 1, so that none overflows in float32.
    unit = float(xp.max(sizes))
    unit = unit if unit > 0 else 1.0
    raised = (levels + 0.5 * near_tie(m) * sizes) / unit
    scaled = residual * (-dictionary.radius / unit)
    right = xp.astype(xp.concat([scaled, raised[:, None]], axis=1), xp.float32).T
    host = isinstance(residual, np.ndarray)
    rows = 256 if host else max(1, min(n_points, DEVICE_SCORES // 8192))
    columns = min(n_columns, max(1, (HOST_SCORES if host else DEVICE_SCORES) // rows))
    sums = np.empty(n_points)

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, rows):
            last = min(first + rows, stop)
            points = dictionary.rounded(first, last, xp.float32)
            ones = xp.ones((points.shape[0], 1), dtype=xp.float32, device=device_of(residual))
            points = xp.concat([points, ones], axis=1)
            total = xp.zeros(points.shape[0], dtype=xp.float64, device=device_of(points))
            for span in ranges(0, n_columns, columns):
                scores = points @ right[:, span]
                # NumPy would convert all scores before it adds them in float64, which takes as long as the
                # product.
                total += xp.sum(clipped(scores, 0.0), axis=1, dtype=None if host else xp.float64)
            sums[first:last] = to_numpy(total)

    dictionary.rounded(0, 1, xp.float32)  # before threads ask for it
    if host:
        with single_threaded_blas():
            parallel_for(work, n_points, chunk_size=rows, operations=2.0 * n_points * n_columns * m)
    else:
        work(0, n_points)
    # Sums in float32 lose this share at most; those of other devices are in float64.
    return sums * (unit * (1.0 + (columns if host else 1) * 2.0**-24))
