"""The weights with which the anchors make up every point: exact, all points at once, in Gram form."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import to_float64
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.leastsquares.simplex import simplex_least_squares

SUM_TOL = 1e-6


def anchor_weights(data: DataMatrix, components: Any, *, sum_to_one: bool) -> SampleArray:
    """Return the weights W >= 0 that bring W H closest to the data."""
    host = to_float64(components)
    if not sum_to_one:
        (weights,), _ = data.map_reduce_rows(_nonnegative, right=data.to_device(host.T))
        return weights
    # Seen from their mean, points far from the origin keep their digits.
    mean = host.mean(axis=0)
    shifted = host - mean
    (weights,), _ = data.map_reduce_rows(
        _on_simplex,
        right=data.to_device(shifted.T),
        offset=data.to_device((shifted @ mean)[None, :]),
        gram=shifted @ shifted.T,
    )
    return weights


def _nonnegative(block: LocalMatrix, *, right: Array) -> tuple[tuple[Array], tuple[()]]:
    return (nonnegative_least_squares(SharedGram(right.T @ right), block.times(right)),), ()


def _on_simplex(
    block: LocalMatrix, *, right: Array, offset: Array, gram: Any
) -> tuple[tuple[Array], tuple[()]]:
    return (simplex_least_squares(gram, block.times(right) - offset),), ()


def rows_sum_to_one(data: DataMatrix) -> bool:
    """Tell whether the entries of every point sum to one."""
    _, (worst,) = data.map_reduce_rows(_worst_sum, n_out=0)
    return max(worst) <= SUM_TOL


def _worst_sum(block: LocalMatrix) -> tuple[tuple[()], tuple[list[float]]]:
    xp = block.xp
    ones = block.to_device(to_float64(block.take_rows([0]))).T * 0.0 + 1.0
    sums = xp.astype(block.times(ones), xp.float64)
    return (), ([float(xp.max(xp.abs(sums - 1.0)))],)
