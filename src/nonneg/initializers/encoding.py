"""Initial factor that belongs to the other one: multiplicative updates, or least squares for anchors."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import to_float64
from nonneg._typing import Array, IntArray, Namespace, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares

_STEPS = 10
_LOWER_BOUND = 1e-4  # of the mean entry of a factor: multiplicative updates cannot leave zero


def fit_W(data: DataMatrix, Ht: Array, *, n_steps: int = _STEPS) -> SampleArray:
    """Return a positive W with a small ||X - W H||, each row depending on its own data alone."""
    (W,), _ = data.map_reduce_rows(_encode_rows, Ht=Ht, gram=Ht.T @ Ht, n_steps=n_steps)
    return W


def fit_H(data: DataMatrix, W: SampleArray, *, n_steps: int = _STEPS) -> Array:
    """Return a positive Ht with a small ||X - W H||."""
    return fit_rows(data.xp, data.weighted_gram(W), data.transposed_times(W), n_steps)


def fit_rows(xp: Namespace, gram: Array, cross: Array, n_steps: int, *, first: Array | None = None) -> Array:
    """Lower ||x - F H|| for each row x, given the Gram matrix of Ht and the cross products X Ht."""
    cross = xp.where(cross > 0, cross, xp.zeros_like(cross))  # below zero where X is: best left at zero
    first = cross if first is None else first
    # Fourth powers of the unit of X would leave the range of floats long before X does.
    first = _ratio(xp, first, xp.max(first, axis=1)[:, None] * xp.ones_like(first))
    best = _ratio(xp, xp.sum(first * cross, axis=1), xp.sum(first * (first @ gram), axis=1))
    factor = first * best[:, None]
    for _ in range(n_steps):
        factor = factor * _ratio(xp, cross, factor @ gram)
    lower_bound = _LOWER_BOUND * xp.mean(factor, axis=1)[:, None]
    return xp.where(factor > lower_bound, factor, xp.ones_like(factor) * lower_bound)


def init_from_anchors(data: DataMatrix, anchors: IntArray) -> tuple[SampleArray, Array]:
    """Return the factors of which the components are samples."""
    Ht = data.to_device(to_float64(data.take_rows(anchors)).T)
    (W,), _ = data.map_reduce_rows(_weights, Ht=Ht)
    return W, Ht


def _weights(block: LocalMatrix, *, Ht: Array) -> tuple[tuple[Array], tuple[()]]:
    return (nonnegative_least_squares(SharedGram(Ht.T @ Ht), block.times(Ht)),), ()


def _encode_rows(
    block: LocalMatrix, *, Ht: Array, gram: Array, n_steps: int
) -> tuple[tuple[Array], tuple[Any, ...]]:
    return (fit_rows(block.xp, gram, block.times(Ht), n_steps),), ()


def _ratio(xp: Namespace, numerator: Array, denominator: Array) -> Array:
    # Where the denominator is zero, so is the entry that the ratio multiplies.
    return numerator / xp.where(denominator > 0, denominator, xp.ones_like(denominator))
