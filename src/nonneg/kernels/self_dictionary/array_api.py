"""The scan for the best data point of every column, for arrays of any namespace (portable)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_cupy_namespace, is_numpy_namespace, is_torch_namespace

from nonneg._arrays import to_numpy
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.self_dictionary.types import Dictionary, PenaltyGradient, near_tie

# Scores that exist at a time: 256 MB in float32.
ENTRIES = 1 << 26


def center_and_radius(points: Array) -> tuple[Array, float]:
    """Return the mean of the points and the largest distance from it."""
    xp = array_namespace(points)
    center = xp.mean(xp.astype(points, xp.float64), axis=0)
    apart = xp.astype(points, xp.float64) - center[None, :]
    return center, float(xp.sqrt(xp.max(xp.sum(apart * apart, axis=1)))) * (1.0 + 1e-12)


def minimizing_vertices(
    dictionary: Dictionary, residual: Array, slope: PenaltyGradient, columns: IntArray | None = None
) -> IntArray:
    """Return the best data point of every column; see `kernels.self_dictionary.minimizing_vertices`."""
    scan = Scan(dictionary, residual, slope)
    wanted = np.arange(len(slope.base)) if columns is None else np.asarray(columns, dtype=np.int64)
    step = max(1, ENTRIES // len(slope.base))
    parts = []
    for start in range(0, len(wanted), step):
        part = wanted[start : start + step]
        index, close = scan.in_float32(part)
        doubtful = np.flatnonzero(close)
        if len(doubtful):
            index[doubtful] = scan.in_float64(part[doubtful])
        parts.append(index)
    return np.concatenate(parts)


class Scan:
    """One scan, with the points and the penalty brought where they are needed."""

    def __init__(self, dictionary: Dictionary, residual: Array, slope: PenaltyGradient) -> None:
        self.xp: Any = array_namespace(residual)
        self.dictionary = dictionary
        self.points, self.center, self.radius = dictionary.points, dictionary.center, dictionary.radius
        self.residual, self.slope = residual, slope
        self.base_scale = slope.base_scale
        self.base = self.on_device(slope.base)

    @cached_property
    def centered(self) -> Array:
        """The points less their center, in float64."""
        return self.xp.astype(self.points, self.xp.float64) - self.center[None, :]

    def on_device(self, array: Any, kind: Any = None) -> Array:
        """Bring a NumPy array to the residuals."""
        return self.xp.asarray(np.ascontiguousarray(array), dtype=kind, device=self.residual.device)

    def scaled_columns(self, wanted: IntArray) -> tuple[Array, Array]:
        """Return residuals scaled so that no score exceeds 1, and the scales."""
        xp = self.xp
        rows = xp.take(self.residual, self.on_device(wanted), axis=0)
        sizes = self.radius * xp.sqrt(xp.sum(rows * rows, axis=1)) + self.base_scale
        sizes = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        factor = xp.full_like(sizes, self.base_scale) / sizes
        return xp.concat([rows * (self.radius / sizes)[:, None], factor[:, None]], axis=1), sizes

    @cached_property
    def scaled_points(self) -> Array:
        """The centered points within the unit ball, in float64, the scaled base of the penalty last."""
        xp = self.xp
        scaled = self.centered * (1.0 / self.radius if self.radius > 0 else 0.0)
        base = self.base * (1.0 / self.base_scale if self.base_scale > 0 else 0.0)
        return xp.concat([scaled, base[:, None]], axis=1)

    @cached_property
    def quick_points(self) -> Array:
        """The scaled points in the type of the quick products."""
        return self.xp.astype(self.scaled_points, self.product_type()[0])

    def in_float32(self, wanted: IntArray) -> tuple[IntArray, Any]:
        """Return the best points by float32 scores, and which of them are too close to call."""
        xp = self.xp
        kind, unit = self.product_type()
        right, sizes = self.scaled_columns(wanted)
        scores = self.quick_points @ xp.astype(right, kind).T
        scores = self._with_listed(scores, wanted, sizes)
        lowest = xp.min(scores, axis=0)
        tol = near_tie(self.residual.shape[1], unit)
        near = xp.sum(xp.astype(scores <= (lowest + tol)[None, :], xp.int64), axis=0)
        return to_numpy(xp.argmin(scores, axis=0)), to_numpy(near) > 1

    def in_float64(self, wanted: IntArray) -> IntArray:
        """Return the best points by float64 scores."""
        xp = self.xp
        parts = []
        step = max(1, ENTRIES // len(self.slope.base))
        for start in range(0, len(wanted), step):
            part = wanted[start : start + step]
            rows = xp.take(self.residual, self.on_device(part), axis=0)
            scores = self.centered @ rows.T + self.base[:, None]
            scores = self._with_listed(scores, part, xp.ones_like(rows[:, 0]))
            parts.append(to_numpy(xp.argmin(scores, axis=0)))
        return np.concatenate(parts).astype(np.int64)

    def product_type(self) -> tuple[Any, float]:
        """Return the type of the quick products and its rounding unit."""
        if is_torch_namespace(self.xp):
            import torch

            if torch.get_float32_matmul_precision() != "highest":
                return self.xp.float64, 2.0**-53
        return self.xp.float32, 2.0**-24

    def listed(self, wanted: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the listed entries of some columns."""
        slope = self.slope
        if len(wanted) == len(slope.base):
            column = np.repeat(np.arange(len(wanted)), np.diff(slope.indptr))
            return slope.rows.astype(np.int64), column, slope.extra
        counts = slope.indptr[wanted + 1] - slope.indptr[wanted]
        column = np.repeat(np.arange(len(wanted)), counts)
        begin = np.repeat(slope.indptr[wanted] - np.cumsum(counts) + counts, counts)
        place = begin + np.arange(len(column))
        return slope.rows[place].astype(np.int64), column, slope.extra[place]

    def _with_listed(self, scores: Array, wanted: IntArray, sizes: Array) -> Array:
        xp = self.xp
        row, column, extra = self.listed(wanted)
        if not len(row):
            return scores
        if not (is_torch_namespace(xp) or is_cupy_namespace(xp) or is_numpy_namespace(xp)):
            # The standard has no assignment to listed places.
            dense = to_numpy(scores).copy()
            dense[row, column] += (extra / to_numpy(sizes)[column]).astype(dense.dtype)
            return self.on_device(dense)
        at, of = self.on_device(row), self.on_device(column)
        scores[at, of] += xp.astype(self.on_device(extra) / sizes[of], scores.dtype)
        return scores
