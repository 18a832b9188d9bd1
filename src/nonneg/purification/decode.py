"""Decoding: weights are what a pseudo-inverse reads off a sample, as far as it exceeds a threshold.

The threshold is chosen from decoded values, and lowered from iteration to iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.threshold_decode.array_api import decoded

# The threshold lies so many standard deviations of the bulk above its middle, and between these shares of the
# size of a weight. A start may mix l = 0.1 of one feature into another: what that adds to decoded values is
# rare, so the bulk does not show it, and where it is positive nothing but the threshold removes it.
BULK_DEVIATIONS, LOWEST, HIGHEST = 3.0, 0.25, 0.6
# A threshold that is lowered from iteration to iteration can begin higher, and remove more.
LOWEST_BEGIN = 0.4
# A value is not taken for a weight unless it exceeds so many times the size of the negative values.
NOISE_FACTOR = 3.0


@dataclass(frozen=True)
class Decoder:
    """How weights are read off a sample y: x = phi(A^+ y)."""

    inverse: FloatArray  # the pseudo-inverse of the features
    threshold: FloatArray  # what a value must exceed to be kept
    rule: str  # kept values stay as they are, lose the threshold (the paper's ReLU), or all values are kept


def weight_scales(values: FloatArray) -> FloatArray:
    """Return the size of a typical large weight of each feature."""
    positive = np.maximum(values, 0.0)
    largest = positive.max(axis=0, initial=0.0)
    units = positive / np.where(largest > 0, largest, 1.0)
    squares, cubes = (units**2).sum(axis=0), (units**3).sum(axis=0)
    return np.where(squares > 0, cubes / np.where(squares > 0, squares, 1.0), 0.0) * largest


def first_threshold(values: FloatArray, lowest: float = LOWEST) -> FloatArray:
    """Return a threshold for each feature from the decoded values of some samples."""
    scales = weight_scales(values)
    units = (values / np.where(scales > 0, scales, 1.0))[:, scales > 0]
    if units.size == 0:
        return np.zeros(values.shape[1])
    middle = float(np.median(units))
    deviation = 1.4826 * float(np.median(np.abs(units - middle)))
    return float(np.clip(middle + BULK_DEVIATIONS * deviation, lowest, HIGHEST)) * scales


def decode(data: DataMatrix, decoder: Decoder) -> SampleArray:
    """Return the weights of all samples."""
    (W,), _ = data.map_reduce_rows(_block_weights, decoder=decoder)
    return W


def _block_weights(block: LocalMatrix, *, decoder: Decoder) -> tuple[tuple[Array], tuple[()]]:
    values = block.times(block.to_device(decoder.inverse.T))
    return (decoded(values, block.to_device(decoder.threshold), decoder.rule, block.xp),), ()
