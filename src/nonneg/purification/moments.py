"""Means and covariances of the data and their decoded weights: all that an update needs of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.kernels.threshold_decode import decoded_sums
from nonneg.kernels.threshold_decode.array_api import decode_block
from nonneg.purification.decode import Decoder


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
        return Moments(
            factor * self.total,
            self.mean_weights,
            self.mean_sample,
            factor * self.gram,
            factor * self.cross,
            factor * self.negative_counts,
            factor * self.negative_squares,
            factor * self.active,
        )

    @property
    def noise(self) -> FloatArray:
        """Root mean square of the negative values: noise, because weights are not negative."""
        counts = np.where(self.negative_counts > 0, self.negative_counts, 1.0)
        return np.sqrt(self.negative_squares / counts)

    @property
    def second_moments(self) -> FloatArray:
        """Mean squares of the weights."""
        return np.diagonal(self.gram) / (self.total or 1.0) + self.mean_weights**2


def moments_of(data: DataMatrix, decoder: Decoder, reference: FloatArray, *shares: SampleArray) -> Moments:
    """Decode all samples and return their moments: one pass, two products with the data."""
    _, (found,) = data.map_reduce_rows(_block_moments, *shares, n_out=0, decoder=decoder, reference=reference)
    return found


def _block_moments(
    block: LocalMatrix, *shares: Array, decoder: Decoder, reference: FloatArray
) -> tuple[tuple[()], tuple[Moments]]:
    weights = block.weights
    for share in shares:
        weights = share[:, 0] if weights is None else weights * share[:, 0]
    if block.container != "sparse":
        rows: Any = block
        sums = decoded_sums(rows.array, decoder.inverse, decoder.threshold, reference, decoder.rule, weights)
        return (), (_centered(reference, *sums),)
    # Sparse blocks have products of their own.
    values = block.times(block.to_device(decoder.inverse.T))
    threshold, shift = (block.to_device(given) for given in (decoder.threshold, reference))
    extended, counts = decode_block(values, threshold, shift, decoder.rule, weights)
    weighted = extended if weights is None else extended * weights[:, None]
    # The product multiplies by the block's own weights, which are in `weighted` already.
    cross = block.transposed_times(_unweighted(block, weighted)).T
    arrays = [to_float64(array) for array in (extended.T @ weighted, cross, *counts)]
    return (), (_centered(reference, *arrays),)


def _unweighted(block: LocalMatrix, weighted: Array) -> Array:
    if block.weights is None:
        return weighted
    positive = block.weights > 0
    safe = block.xp.where(positive, block.weights, block.xp.ones_like(block.weights))
    return weighted / safe[:, None]


def _centered(reference: FloatArray, gram: Any, cross: Any, *facts: Any) -> Moments:
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
        *facts,
    )


def moments_of_rows(samples: FloatArray, decoder: Decoder) -> Moments:
    """Return the moments of a few dense samples."""
    return moments_of(as_data_matrix(samples), decoder, np.zeros(len(decoder.threshold)))
