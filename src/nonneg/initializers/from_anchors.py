"""A start from data points: the anchors are the components, every sample gets its best weights."""

from __future__ import annotations

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares


def init_from_anchors(data: DataMatrix, anchors: IntArray) -> tuple[SampleArray, Array]:
    """Return the factors of which the components are data points."""
    Ht = data.to_device(to_float64(data.take_rows(anchors)).T)
    (W,), _ = data.map_reduce_rows(_weights, right=Ht)
    return W, Ht


def _weights(block: LocalMatrix, *, right: Array) -> tuple[tuple[Array], tuple[()]]:
    return (nonnegative_least_squares(SharedGram(right.T @ right), block.times(right)),), ()
