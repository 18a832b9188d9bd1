"""The Eckart-Young lower bound on the error of any factorization of rank k.

It needs an upper bound on the sum of the k largest squared singular values. Lanczos finds them from below
and may have missed one. Where the Gram matrix of the shorter side is cheap, all its eigenvalues are computed.
Elsewhere, what Lanczos left is searched again from random vectors, with a known probability of missing it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nonneg.data.fingerprint import fingerprint
from nonneg.data.matrix import DataMatrix
from nonneg.data.spectral import (
    Float64Array,
    apply_gram,
    gram_is_cheaper,
    gram_matrix,
    leading_eigenpairs,
    machine_epsilon,
)
from nonneg.data.views import can_be_transposed, transposed
from nonneg.exceptions import InvalidParameterError

# The probability that the bound is too large, at most; about that of a hardware error during the run.
FAILURE_PROBABILITY = 1e-10
# Random vectors and steps of the second search: its estimate is then within 7% of the largest eigenvalue for
# 1e5 columns, at the cost of 20 passes with 8 vectors, about that of Lanczos itself.
WIDTH, STEPS = 8, 20


class EckartYoungBound(NamedTuple):
    """The Eckart-Young lower bound on the error of any factorization of rank k."""

    # No W and H of rank k have a smaller ||X - W H|| / ||X||; rounding does not make it too large.
    relative_error: float
    estimate: float  # the same from the computed singular values, without any allowance
    norm: float  # the (weighted) Frobenius norm of X
    failure_probability: float = 0.0  # over the random vectors: that the bound is too large


def eckart_young_bound(data: DataMatrix, k: int) -> EckartYoungBound:
    """Return a lower bound on the relative error of every factorization of rank k, nonnegative or not."""
    # Eckart & Young (1936), Psychometrika 1, 211-218.
    if data.has_missing:
        raise InvalidParameterError(
            "The Eckart-Young lower bound needs complete data, but entries are missing. Leave it out, or "
            "impute them first."
        )
    square = data.squared_norm()
    norm = math.sqrt(square)
    if k >= min(data.shape) or square == 0.0:
        return EckartYoungBound(0.0, 0.0, norm)
    if data.shape[0] < data.shape[1] and can_be_transposed(data):
        data = transposed(data)  # type: ignore[arg-type]
    rounding = 4.0 * math.sqrt(data.shape[1]) * machine_epsilon(data)
    probability = 0.0
    if gram_is_cheaper(data, k):
        values = np.linalg.eigvalsh(gram_matrix(data))[::-1]
        found = float(np.sum(values[:k]))
        # The computed eigenvalues are those of a Gram matrix within rounding of the true one.
        most = found + k * rounding * float(values[0])
    else:
        # Vectors that depend on the entries: no matrix can be built to be orthogonal to them.
        source = np.random.default_rng(int(fingerprint(data)[:16], 16))
        found, most = _largest_sum(data, k, source, rounding)
        probability = FAILURE_PROBABILITY
    rest = square - most - machine_epsilon(data) * square
    return EckartYoungBound(_root(rest / square), _root((square - found) / square), norm, probability)


def _largest_sum(
    data: DataMatrix, k: int, source: np.random.Generator, rounding: float
) -> tuple[float, float]:
    """Return the sum of k Ritz values, and a bound on that of the k largest eigenvalues of X'X."""
    V = np.linalg.qr(leading_eigenpairs(data, k, rng=source)[1])[0]
    product = apply_gram(data, V)
    projected = V.T @ product
    values = np.linalg.eigvalsh(0.5 * (projected + projected.T))[::-1]
    # In the basis of V and its complement, X'X differs from its two diagonal blocks by the residual of V. The
    # eigenvalues of the first block are the Ritz values, those of the second lie below `largest`.
    residual = float(np.linalg.norm(product - V @ projected, 2))
    largest = _largest_outside(data, V, source)
    raised = float(np.sum(np.maximum(values, largest)))
    return float(np.sum(values)), raised + k * (residual + rounding * max(float(values[0]), 0.0))


def _largest_outside(data: DataMatrix, V: Float64Array, source: np.random.Generator) -> float:
    """Return a bound on the largest eigenvalue of X'X in the complement of V, but for a small probability."""

    def project(block: Float64Array) -> Float64Array:
        for _ in range(2):
            block = block - V @ (V.T @ block)
        return block

    order = data.shape[1]
    block = project(source.standard_normal((order, WIDTH)))
    basis = np.empty((order, 0))
    images = np.empty((order, 0))
    largest = 0.0
    for _ in range(STEPS):
        # What is left of a direction inside the basis is rounding: it is not a new one.
        scale = 1e-8 * np.linalg.norm(block, axis=0).max(initial=0.0)
        block = block - basis @ (basis.T @ block)
        block, triangle = np.linalg.qr(block)
        block = block[:, np.abs(np.diag(triangle)) > scale]
        block = np.linalg.qr(project(block - basis @ (basis.T @ block)))[0]
        if block.shape[1] == 0 or basis.shape[1] + block.shape[1] > order - V.shape[1]:
            break
        image = project(apply_gram(data, block))
        basis, images = np.hstack([basis, block]), np.hstack([images, image])
        inner = basis.T @ images
        largest = float(np.linalg.eigvalsh(0.5 * (inner + inner.T))[-1])
        block = image
    # Kuczynski & Wozniakowski (1992), SIAM J. Matrix Anal. Appl. 13, 1094-1122, Theorem 4.2: q Lanczos steps
    # from one random vector underestimate by more than a share e with probability at most
    # 1.648 sqrt(n) exp(-sqrt(e) (2 q - 1)). The vectors of a block are independent, and all must fail.
    each = FAILURE_PROBABILITY ** (1.0 / WIDTH)
    share = (math.log(1.648 * math.sqrt(order) / each) / (2 * STEPS - 1)) ** 2
    if share >= 1.0:
        return math.inf
    return largest / (1.0 - share)


def _root(value: float) -> float:
    return math.sqrt(value) if value > 0.0 else 0.0
