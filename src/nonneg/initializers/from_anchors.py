"""Initialization from anchors: samples are the components, and W is fitted to them."""

from __future__ import annotations

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares


def init_from_anchors(data: DataMatrix, anchors: IntArray) -> tuple[SampleArray, Array]:
    """Return the factors of which the components are data points."""
    Ht = data.to_device(to_float64(data.take_rows(anchors)).T)
    (W,), _ = data.map_reduce_rows(_weights, Ht=Ht)
    return W, Ht


def _weights(block: LocalMatrix, *, Ht: Array) -> tuple[tuple[Array], tuple[()]]:
    return (nonnegative_least_squares(SharedGram(Ht.T @ Ht), block.times(Ht)),), ()
