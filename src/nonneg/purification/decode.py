"""Decoding: weights are the values A^+ y above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.threshold_decode import decoded

# While an init meets the invariants of the proof (Sigma >= 0.9 I, ||E||_s <= 1/8), Z = (Sigma + E)^-1 adds at
# most (1 / 0.9) q / (1 - q) = 0.18, q = 1 / 7.2, to a value without weight, and takes no more from another.
# The initial threshold lies between, as a share of a typical weight: at the midpoint of no weight and one.
MIDPOINT = 0.5
# A value counts as a weight where it exceeds three times the root mean square of the negative values, the
# usual outlier rule.
NOISE_FACTOR = 3.0


@dataclass(frozen=True)
class Decoder:
    """Decoder of weights from a sample y: x = phi(A^+ y)."""

    inverse: FloatArray  # the pseudo-inverse of the features
    threshold: FloatArray  # what a value must exceed to be kept
    rule: str  # "unshifted" keeps values above it, "shifted" subtracts it (ReLU), "linear" keeps all values


def weight_scales(values: FloatArray) -> FloatArray:
    """Return the size of a typical large weight of each feature."""
    positive = np.maximum(values, 0.0)
    largest = positive.max(axis=0, initial=0.0)
    units = positive / np.where(largest > 0, largest, 1.0)
    # The largest unit is 1, so that a sum of squares is at least 1, or 0.
    return (units**3).sum(axis=0) / np.maximum((units**2).sum(axis=0), 1.0) * largest


def decode(data: DataMatrix, decoder: Decoder) -> SampleArray:
    """Return the weights of all samples."""
    return data.map_rows(_block_weights, decoder=decoder)


def _block_weights(block: LocalMatrix, *, decoder: Decoder) -> Array:
    values = block.times(block.to_device(decoder.inverse.T))
    return decoded(values, block.to_device(decoder.threshold), decoder.rule)
