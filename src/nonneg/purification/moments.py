"""Means and covariances of the data and their decoded weights, and the features that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.threshold_decode import decode_block, decoded_sums
from nonneg.purification.decode import Decoder

# Relative to the largest variance of the weights: directions below it are rounding (1e-16 times the number of
# samples summed, with a margin).
UNSEEN = 1e-11
# A weight whose variance is below this share of its squared mean is constant up to rounding.
CONSTANT = 1e-13
# A feature with less of itself is not scaled back: it is becoming another one. The mixing that the theorems
# allow leaves at least 0.9.
SMALLEST_SHARE = 0.1


@dataclass(frozen=True)
class Moments:
    """Centered sums over samples y and their weights x; two of them can be added."""

    total: float  # number of samples, or sum of their weights
    mean_weights: FloatArray  # mean of x
    mean_sample: FloatArray  # mean of y
    gram: FloatArray  # sum of (x - mean)(x - mean)'
    cross: FloatArray  # sum of (x - mean)(y - mean)'
    # How many values A^+ y are negative, and the sum of their squares: noise, because weights are not.
    negative_counts: FloatArray
    negative_squares: FloatArray
    active: FloatArray  # how many values are kept

    def __add__(self, other: Moments) -> Moments:
        total = self.total + other.total
        share = other.total / total if total > 0 else 0.0
        weights = other.mean_weights - self.mean_weights
        sample = other.mean_sample - self.mean_sample
        between = self.total * share
        return Moments(
            total,
            self.mean_weights + share * weights,
            self.mean_sample + share * sample,
            self.gram + other.gram + between * np.outer(weights, weights),
            self.cross + other.cross + between * np.outer(weights, sample),
            self.negative_counts + other.negative_counts,
            self.negative_squares + other.negative_squares,
            self.active + other.active,
        )

    def scaled(self, factor: float) -> Moments:
        """Return the moments with every sample counted `factor` times."""
        means = {"mean_weights": self.mean_weights, "mean_sample": self.mean_sample}
        return Moments(**{name: factor * value for name, value in vars(self).items()} | means)

    @property
    def noise(self) -> FloatArray:
        """Root mean square of the negative values: noise, because weights are not negative."""
        counts = np.where(self.negative_counts > 0, self.negative_counts, 1.0)
        return np.sqrt(self.negative_squares / counts)


def moments_of(data: DataMatrix, decoder: Decoder, reference: FloatArray, *weights: SampleArray) -> Moments:
    """Decode all samples and return their moments: one pass, two products with the data."""
    return data.reduce_rows(_block_moments, *weights, decoder=decoder, reference=reference)


def _block_moments(block: LocalMatrix, *columns: Array, decoder: Decoder, reference: FloatArray) -> Moments:
    weights = block.weights
    for column in columns:
        weights = column[:, 0] if weights is None else weights * column[:, 0]
    if block.container != "sparse":
        rows: Any = block
        sums = decoded_sums(rows.array, decoder.inverse, decoder.threshold, reference, decoder.rule, weights)
        return _centered(reference, *sums)
    # Sparse blocks have products of their own.
    values = block.times(block.to_device(decoder.inverse.T))
    threshold, shift = (block.to_device(vector) for vector in (decoder.threshold, reference))
    extended, counts = decode_block(values, threshold, shift, decoder.rule, weights)
    weighted = extended if weights is None else extended * weights[:, None]
    plain = weighted
    if block.weights is not None:  # by which the product multiplies, and which are in `weighted` already
        safe = block.xp.where(block.weights > 0, block.weights, block.xp.ones_like(block.weights))
        plain = weighted / safe[:, None]
    cross = block.transposed_times(plain).T
    arrays = [to_float64(array) for array in (extended.T @ weighted, cross, *counts)]
    return _centered(reference, *arrays)


def _centered(reference: FloatArray, gram: Any, cross: Any, *counts: Any) -> Moments:
    n = len(reference)
    total = float(gram[n, n])
    over = 1.0 / total if total > 0 else 0.0
    offset = gram[:n, n] * over
    return Moments(
        total,
        reference + offset,
        cross[n] * over,
        gram[:n, :n] - np.outer(offset, gram[:n, n]),
        cross[:n] - np.outer(offset, cross[n]),
        *counts,
    )


def regression_target(H: FloatArray, moments: Moments, inverse: FloatArray | None = None) -> FloatArray:
    """Return Cov(x, x)^+ Cov(x, y): the features that predict the samples best from their decoded weights."""
    squares = np.diagonal(moments.gram)
    seen = (moments.active > 0) & (squares > CONSTANT * moments.total * moments.mean_weights**2)
    scale = np.where(seen, np.sqrt(np.where(seen, squares, 1.0)), np.inf)
    values, vectors = np.linalg.eigh(moments.gram / np.outer(scale, scale))
    large = values > UNSEEN * values[-1]
    precision = (vectors[:, large] / values[large]) @ vectors[:, large].T / np.outer(scale, scale)
    # From the residual, so that small corrections keep their relative accuracy.
    target: FloatArray = H + precision @ (moments.cross - moments.gram @ H)
    if inverse is None:
        return target
    own = np.sum(target * inverse, axis=1)
    return target / np.where(own > SMALLEST_SHARE, own, 1.0)[:, None]


def covariance_target(
    H: FloatArray, moments: Moments, inverse: FloatArray, scale: float | None
) -> FloatArray:
    """Return r E[(y - y')(x - x')'] over independent pairs, with scale r: 2 r Cov(y, x), transposed."""
    covariance = moments.cross / max(moments.total, 1.0)
    if scale is not None:
        return 2.0 * scale * covariance
    own = np.sum(covariance * inverse, axis=1)
    seen = own > 1e-14 * float(np.abs(own).max(initial=0.0))
    return np.where(seen[:, None], covariance / np.where(seen, own, 1.0)[:, None], H)
