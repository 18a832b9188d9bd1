"""Weights whose sample moments are those of their distribution, so that nothing is left to sampling."""

from __future__ import annotations

import math

import numpy as np

from nonneg._typing import FloatArray
from reproduction.data.purification import SMALLEST, TAIL


def all_patterns(probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return every pattern of weights 0 and 1 with its probability: the distribution itself."""
    n = len(probabilities)
    W = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    sample_weight = np.prod(np.where(W > 0, probabilities, 1.0 - probabilities), axis=1)
    return W, sample_weight * 2**n


def orthogonal_array(n: int, sparsity: float, blocks: int = 1, weights: str = "binary") -> FloatArray:
    """Return weights of which any two are exactly independent in the sample."""
    # Row (a, b, c) has at place x the value of the polynomial a + b x + c x^2 modulo q, and the weight is a
    # function of the value, zero for most: values of polynomials of degree below t at any t places are
    # independent (Bush, 1952).
    least = n if weights == "binary" else 5 * n
    q = next(number for number in range(least + 1, 2 * least + 3) if _is_prime(number))
    levels = max(1, round(q * sparsity / n))
    sizes = np.zeros(q)
    sizes[:levels] = _quantiles(weights, (np.arange(levels) + 0.5) / levels)
    places, all_q = np.arange(n), np.arange(q)
    lines = (all_q[:, None, None] + all_q[None, :, None] * places).reshape(q * q, n)
    return np.concatenate([sizes[(lines + c * places**2) % q] for c in range(min(blocks, q))])


def _quantiles(weights: str, at: FloatArray) -> FloatArray:
    if weights == "binary":
        return np.ones_like(at)
    if weights == "uniform":
        return at
    return SMALLEST * (1.0 - at * (1.0 - SMALLEST**TAIL)) ** (-1.0 / TAIL)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
