"""The vertex of every column for arrays of any namespace (portable)."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_cupy_namespace, is_numpy_namespace, is_torch_namespace

from nonneg._arrays import to_numpy
from nonneg._lazy import cached_property
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
    dictionary: Dictionary, residual: Array, gradient: PenaltyGradient, columns: IntArray | None = None
) -> IntArray:
    """Return the vertex of every column; see `kernels.self_dictionary.minimizing_vertices`."""
    scan = Scan(dictionary, residual, gradient)
    wanted = np.arange(len(gradient.base)) if columns is None else np.asarray(columns, dtype=np.int64)
    step = max(1, ENTRIES // len(gradient.base))
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
    """One scan on the device of the residuals."""

    def __init__(self, dictionary: Dictionary, residual: Array, gradient: PenaltyGradient) -> None:
        self.xp: Any = array_namespace(residual)
        self.dictionary = dictionary
        self.points, self.center, self.radius = dictionary.points, dictionary.center, dictionary.radius
        self.residual, self.gradient = residual, gradient
        self.base_scale = gradient.base_scale
        self.base = self.to_device(gradient.base)

    @cached_property
    def centered(self) -> Array:
        """The points minus their center, in float64."""
        return self.xp.astype(self.points, self.xp.float64) - self.center[None, :]

    def to_device(self, array: Any, dtype: Any = None) -> Array:
        """Copy a NumPy array to the device of the residuals."""
        return self.xp.asarray(np.ascontiguousarray(array), dtype=dtype, device=self.residual.device)

    def scaled_columns(self, wanted: IntArray) -> tuple[Array, Array]:
        """Return residuals scaled so that no score exceeds 1, and the scales."""
        xp = self.xp
        rows = xp.take(self.residual, self.to_device(wanted), axis=0)
        sizes = self.radius * xp.sqrt(xp.sum(rows * rows, axis=1)) + self.base_scale
        sizes = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        factor = xp.full_like(sizes, self.base_scale) / sizes
        return xp.concat([rows * (self.radius / sizes)[:, None], factor[:, None]], axis=1), sizes

    @cached_property
    def scaled_points(self) -> Array:
        """The points, centered and scaled into the unit ball, in float64, the scaled base last."""
        xp = self.xp
        scaled = self.centered * (1.0 / self.radius if self.radius > 0 else 0.0)
        base = self.base * (1.0 / self.base_scale if self.base_scale > 0 else 0.0)
        return xp.concat([scaled, base[:, None]], axis=1)

    @cached_property
    def fast_points(self) -> Array:
        """The scaled points in the dtype of the fast products."""
        return self.xp.astype(self.scaled_points, self.product_dtype()[0])

    def in_float32(self, wanted: IntArray) -> tuple[IntArray, Any]:
        """Return the vertices by float32 scores, and which of them are too close to call."""
        xp = self.xp
        dtype, unit = self.product_dtype()
        right, sizes = self.scaled_columns(wanted)
        scores = self.fast_points @ xp.astype(right, dtype).T
        scores = self._with_listed(scores, wanted, sizes)
        lowest = xp.min(scores, axis=0)
        tol = near_tie(self.residual.shape[1], unit)
        near = xp.sum(xp.astype(scores <= (lowest + tol)[None, :], xp.int64), axis=0)
        return to_numpy(xp.argmin(scores, axis=0)), to_numpy(near) > 1

    def in_float64(self, wanted: IntArray) -> IntArray:
        """Return the vertices by float64 scores."""
        xp = self.xp
        parts = []
        step = max(1, ENTRIES // len(self.gradient.base))
        for start in range(0, len(wanted), step):
            part = wanted[start : start + step]
            rows = xp.take(self.residual, self.to_device(part), axis=0)
            scores = self.centered @ rows.T + self.base[:, None]
            scores = self._with_listed(scores, part, xp.ones_like(rows[:, 0]))
            parts.append(to_numpy(xp.argmin(scores, axis=0)))
        return np.concatenate(parts).astype(np.int64)

    def product_dtype(self) -> tuple[Any, float]:
        """Return the dtype of the fast products and its unit roundoff."""
        if is_torch_namespace(self.xp):
            import torch

            if torch.get_float32_matmul_precision() != "highest":
                return self.xp.float64, 2.0**-53
        return self.xp.float32, 2.0**-24

    def listed(self, wanted: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the listed entries of some columns."""
        gradient = self.gradient
        counts = gradient.indptr[wanted + 1] - gradient.indptr[wanted]
        column = np.repeat(np.arange(len(wanted)), counts)
        begin = np.repeat(gradient.indptr[wanted] - np.cumsum(counts) + counts, counts)
        place = begin + np.arange(len(column))
        return gradient.rows[place].astype(np.int64), column, gradient.extra[place]

    def _with_listed(self, scores: Array, wanted: IntArray, sizes: Array) -> Array:
        xp = self.xp
        row, column, extra = self.listed(wanted)
        if not len(row):
            return scores
        if not (is_torch_namespace(xp) or is_cupy_namespace(xp) or is_numpy_namespace(xp)):
            # The array API standard has no assignment to listed entries.
            dense = to_numpy(scores).copy()
            dense[row, column] += (extra / to_numpy(sizes)[column]).astype(dense.dtype)
            return self.to_device(dense)
        at, of = self.to_device(row), self.to_device(column)
        scores[at, of] += xp.astype(self.to_device(extra) / sizes[of], scores.dtype)
        return scores
