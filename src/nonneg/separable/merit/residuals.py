"""Distances of samples from the hull of anchors, and which of them noise explains."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainccinv, gammaincinv

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.separable.weights import anchor_weights

# Beyond this number of points residuals are those of this many of them, evenly spaced: an error of one
# percent is small enough for a balance, and the mixtures of all points would cost as much as iterations.
MOST_POINTS = 20_000
# The probability that noise moves any of the samples beyond its limit.
LEVEL = 0.05
# The standard deviation of normal variables over their median absolute deviation.
DEVIATION = 1.4826
# Without the anchors that noise explains, no sample may be this much farther out than noise was with them, or
# the other anchors explain too little to know the noise. On choosing draws it was up to 1.2 times as much.
SLACK = 1.25
# Below this share of the squared norm of a typical sample, distances are rounding errors.
ROUNDING = 1e-12


def evenly_spaced(n: int, most: int) -> IntArray:
    """Return all indices up to a number, or evenly spaced ones."""
    return np.arange(0, n, -(-n // most))


def squared_residuals(
    data: DataMatrix, anchors: IntArray, rows: IntArray, *, standardized: bool = False
) -> FloatArray:
    """Return the squared distances of some points from the hull of the anchors."""
    points = to_float64(data.take_rows(anchors))
    if len(rows) < data.shape[0]:
        data = as_data_matrix(data.take_rows(rows))
    mixtures = anchor_weights(data, points, sum_to_one=True)
    _, (parts,) = data.map_reduce_rows(_squares, mixtures, n_out=0, right=data.to_device(points))
    squares = np.concatenate(parts)
    return squares / _noise_factors(to_float64(mixtures)) if standardized else squares


def hull_distances(points: FloatArray, vertices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distances of points from a hull, and the standardized ones."""
    mixtures = to_float64(anchor_weights(as_data_matrix(points), vertices, sum_to_one=True))
    distances = np.asarray(np.linalg.norm(points - mixtures @ vertices, axis=1))
    return distances, distances / np.sqrt(_noise_factors(mixtures))


def _noise_factors(mixtures: Array) -> FloatArray:
    # Anchors are samples and carry noise as well: that of a sample minus its mixture w has 1 + ||w||^2 times
    # the variance, twice as much for a copy of an anchor as for a sample between many.
    weights = np.asarray(mixtures, dtype=np.float64)
    return np.asarray(1.0 + np.einsum("ij,ij->i", weights, weights))


def noise_limit(squares: FloatArray, n_samples: int) -> float:
    """Return the standardized square that noise exceeds in no sample, up to a small probability."""
    # Sums of many squares have nearly a gamma distribution: that with the same median and deviation, both of
    # which missing anchors hardly change.
    median = float(np.median(squares))
    deviation = DEVIATION * float(np.median(np.abs(squares - median)))
    if not deviation > 0.0:
        return float(np.max(squares))
    shape = (median / deviation) ** 2
    return median * float(gammainccinv(shape, LEVEL / n_samples) / gammaincinv(shape, 0.5))


def number_above_noise(data: DataMatrix, anchors: IntArray, squares: FloatArray) -> int | None:
    """Return how many anchors stand out from the noise; None where all of them do, or there is no noise."""
    # `squares` are the standardized squared distances of every anchor from the hull of those before. The
    # noise is that of the samples outside the hull of the anchors that are left.
    n = data.shape[0]
    rows, k = evenly_spaced(n, MOST_POINTS), len(anchors)
    typical, limit = data.squared_norm() / n, None
    while True:
        others = np.setdiff1d(rows, anchors[:k])
        if not len(others):
            return None
        left = squared_residuals(data, anchors[:k], others, standardized=True)
        if np.median(left) <= ROUNDING * typical:
            return None
        if limit is not None and left.max() > SLACK * limit:
            return None
        limit = noise_limit(left, n)
        kept = max(1, int(np.sum(squares[:k] > limit)))
        if kept == k:
            return k if k < len(anchors) else None
        k = kept


def successive_squares(points: FloatArray) -> FloatArray:
    """Return the standardized squared distance of every point from the hull of those before."""
    found = [hull_distances(points[k : k + 1], points[:k])[1][0] ** 2 for k in range(1, len(points))]
    return np.array([np.inf, *found])


def _squares(
    block: LocalMatrix, mixtures: Array, *, right: Array
) -> tuple[tuple[()], tuple[list[FloatArray]]]:
    xp, parts = block.xp, []
    for start, stop in block.row_blocks(1 << 20):
        rows = xp.astype(block.dense_rows(start, stop), xp.float64)
        rows = rows - xp.astype(mixtures[start:stop, :], xp.float64) @ xp.astype(right, xp.float64)
        parts.append(to_float64(xp.sum(rows * rows, axis=1)))
    return (), (parts,)
