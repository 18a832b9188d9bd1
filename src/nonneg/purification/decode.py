"""Decoding: weights are the values A^+ y above a threshold, which is chosen from the values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.threshold_decode.array_api import decoded

# The threshold lies three robust standard deviations above the median of the values (the usual outlier rule),
# clipped to shares of a typical weight. An init may mix l = 0.1 of one feature into another: what that adds
# to decoded values is rare, so the median does not show it, and where it is positive only the threshold
# removes it. The shares were chosen on the inits of docs/reproduced/purification/basin.
DEVIATIONS, LOWEST, HIGHEST = 3.0, 0.25, 0.6
# A threshold that decays can begin higher, and remove more.
LOWEST_WITH_DECAY = 0.4
# A value counts as a weight where it exceeds three times the root mean square of the negative values.
NOISE_FACTOR = 3.0
# The median absolute deviation times this is the standard deviation of a normal distribution.
NORMAL_MAD = 1.4826


@dataclass(frozen=True)
class Decoder:
    """How weights are decoded from a sample y: x = phi(A^+ y)."""

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


def initial_threshold(values: FloatArray, lowest: float = LOWEST) -> FloatArray:
    """Return a threshold for each feature from the decoded values of some samples."""
    scales = weight_scales(values)
    units = (values / np.where(scales > 0, scales, 1.0))[:, scales > 0]
    if units.size == 0:
        return np.zeros(values.shape[1])
    middle = float(np.median(units))
    deviation = NORMAL_MAD * float(np.median(np.abs(units - middle)))
    return float(np.clip(middle + DEVIATIONS * deviation, lowest, HIGHEST)) * scales


def decode(data: DataMatrix, decoder: Decoder) -> SampleArray:
    """Return the weights of all samples."""
    (W,), _ = data.map_reduce_rows(_block_weights, decoder=decoder)
    return W


def _block_weights(block: LocalMatrix, *, decoder: Decoder) -> tuple[tuple[Array], tuple[()]]:
    values = block.times(block.to_device(decoder.inverse.T))
    return (decoded(values, block.to_device(decoder.threshold), decoder.rule),), ()
