"""A start from data points: the anchors are the components, every sample gets its best weights."""

from __future__ import annotations

from nonneg._typing import Array, IntArray, LeftArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.spectral import to_numpy
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares


def start_from_anchors(data: DataMatrix, anchors: IntArray) -> tuple[LeftArray, Array]:
    """Return the factors of which the components are data points."""
    B = data.place(to_numpy(data.take_rows(anchors)).T)
    (W,), _ = data.row_pass(_weights, right=B)
    return W, B


def _weights(block: LocalMatrix, *, right: Array) -> tuple[tuple[Array], tuple[()]]:
    return (nonnegative_least_squares(SharedGram(right.T @ right), block.times(right)),), ()
