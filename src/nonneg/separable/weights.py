"""The weights of the anchors in every sample: exact, all samples at once, in Gram form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.certificates.svd_lower_bound import relative_frobenius_error
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.result import SelectionResult

# Tolerance of a sum of features to one: rounding in single precision.
SUM_TOL = 1e-6


@dataclass(frozen=True)
class AnchorFactors:
    """The factorization X ~ W H that anchors give."""

    W: SampleArray
    H: Array
    sum_to_one: bool  # whether the weights of a sample sum to one
    error: float  # the Frobenius norm of X - W H


def vertices_of(data: DataMatrix, result: SelectionResult) -> Array:
    """Return the vertices, one per row, in the array type of the data: anchors, or averages of samples."""
    return data.take_rows(result.anchors) if result.components is None else data.to_device(result.components)


def anchor_factors(data: DataMatrix, H: Array, sum_to_one: bool | str) -> AnchorFactors:
    """Return the factors with the vertices as rows of H; "auto" decides from the sums of the features."""
    simplex = rows_sum_to_one(data) if sum_to_one == "auto" else bool(sum_to_one)
    W = anchor_weights(data, H, sum_to_one=simplex)
    error = relative_frobenius_error(data, W, data.to_device(H).T) * math.sqrt(data.squared_norm())
    return AnchorFactors(W, H, simplex, error)


def anchor_weights(data: DataMatrix, components: Any, *, sum_to_one: bool) -> SampleArray:
    """Return the W >= 0 that minimizes the Frobenius norm of X - W H."""
    host = to_float64(components)
    if not sum_to_one:
        return data.map_rows(_nonnegative, right=data.to_device(host.T))
    # Relative to their mean, anchors far from the origin keep their digits.
    mean = host.mean(axis=0)
    shifted = host - mean
    return data.map_rows(
        _on_simplex,
        right=data.to_device(shifted.T),
        offset=data.to_device((shifted @ mean)[None, :]),
        gram=shifted @ shifted.T,
    )


def _nonnegative(block: LocalMatrix, *, right: Array) -> Array:
    return nonnegative_least_squares(SharedGram(right.T @ right), block.times(right))


def _on_simplex(block: LocalMatrix, *, right: Array, offset: Array, gram: Any) -> Array:
    return simplex_least_squares(gram, block.times(right) - offset)


def squared_residuals(data: DataMatrix, vertices: Any) -> FloatArray:
    """Return the squared distances of all samples from the convex hull of some vertices."""
    mixtures = anchor_weights(data, vertices, sum_to_one=True)
    right = data.to_device(to_float64(vertices))
    parts = data.reduce_rows(_squares, mixtures, right=right)
    return np.concatenate(parts)


def _squares(block: LocalMatrix, mixtures: Array, *, right: Array) -> list[FloatArray]:
    xp, parts = block.xp, []
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        rows = rows - xp.astype(mixtures[start:stop, :], xp.float64) @ xp.astype(right, xp.float64)
        parts.append(to_float64(xp.sum(rows * rows, axis=1)))
    return parts


def rows_sum_to_one(data: DataMatrix) -> bool:
    """Tell whether the features of every sample sum to one."""
    sums = to_float64(data.times(data.to_device(np.ones((data.shape[1], 1)))))
    return bool(np.abs(sums - 1.0).max() <= SUM_TOL)
