"""The orthogonal group: skew parts, closest and random orthogonal matrices, rounding removed.

Every function takes matrices on the last two axes and any number of axes before them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._random import Seed, generator
from nonneg._typing import Array, FloatArray, Namespace

# Norm up to which the polynomial of degree 18 is exact to rounding (Bader, Blanes & Casas).
TAYLOR_NORM = 1.09
# Taylor's polynomial of degree 18 in five products: weights of I, A, A^2, A^3 and A^6 in five matrices.
# Bader, Blanes & Casas (2019), Mathematics 7(12): Computing the matrix exponential with an optimized Taylor
# polynomial approximation.
TAYLOR_WEIGHTS = (
    (0.0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0.0),
    (
        0.0,
        3.97849749499645077844e-01,
        1.36783778460411720168e00,
        4.98289622525382669416e-01,
        -6.37898194594723280150e-04,
    ),
    (
        -1.09676396052962061844e01,
        1.68015813878906206114e00,
        5.71779846478865511061e-02,
        -6.98210122488052056106e-03,
        3.34975017086070470649e-05,
    ),
    (
        -9.04316832390810593223e-02,
        -6.76404519071381882256e-02,
        6.75961301770459654925e-02,
        2.95552570429315521194e-02,
        -1.39180257516060693404e-05,
    ),
    (0.0, 0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05),
)


def transposed(A: Array) -> Array:
    """Return matrices with rows and columns exchanged."""
    return array_namespace(A).matrix_transpose(A)


def skew_part(A: Array) -> Array:
    """Return (A - A') / 2."""
    return 0.5 * (A - transposed(A))


def taylor_18(A: Array, square: Array, cube: Array, sixth: Array) -> Array:
    """Return Taylor's polynomial of degree 18 of exp(A), with two more products."""
    eye = _eye(array_namespace(A), A)
    powers = (eye, A, square, cube, sixth)

    def combined(weights: tuple[float, ...]) -> Array:
        found = None
        for weight, power in zip(weights, powers, strict=True):
            if weight:
                found = weight * power if found is None else found + weight * power
        return found

    first, second, third, fourth, fifth = (combined(weights) for weights in TAYLOR_WEIGHTS)
    ninth = first @ fifth + fourth
    return second + (third + ninth) @ ninth


def negligible(dtype: Any) -> float:
    """Return what does not matter beside 1."""
    return 1e-17 if "64" in str(dtype) else 1e-8


def taylor_terms(norm: float, enough: float) -> int:
    """Return how many terms of Taylor's series of exp matter."""
    term = norm
    for j in range(1, 60):
        term *= norm / (j + 1)
        if term <= enough:
            return j
    return 1000


def closest_orthogonal(A: Array) -> Array:
    """Return the orthogonal matrix closest to A, its polar factor."""
    xp = array_namespace(A)
    U, _, Vt = xp.linalg.svd(A, full_matrices=False)
    return U @ Vt


def newton_schulz_step(A: Array) -> Array:
    """Square the error of a matrix whose columns are nearly orthonormal."""
    gram = transposed(A) @ A
    return A @ (1.5 * _eye(array_namespace(A), gram) - 0.5 * gram)


def orthogonality_error(A: Array) -> Array:
    """Return the largest entry of ``|A A' - I|``."""
    xp = array_namespace(A)
    gram = A @ transposed(A)
    return xp.max(xp.max(xp.abs(gram - _eye(xp, gram)), axis=-1), axis=-1)


def random_orthogonal(m: int, rng: Seed = None) -> FloatArray:
    """Return an orthogonal matrix drawn uniformly."""
    found: FloatArray = closest_orthogonal(generator(rng).standard_normal((m, m)))
    return found


def norm_bound(E: Array) -> float:
    """Bound the spectral norm of the largest of skew matrices."""
    xp = array_namespace(E)
    rows = xp.max(xp.sum(xp.abs(E), axis=-1), axis=-1)
    frobenius = xp.sqrt(0.5 * xp.sum(xp.sum(E * E, axis=-1), axis=-1))
    bound = float(xp.max(xp.where(rows < frobenius, rows, frobenius)))
    return bound if np.isfinite(bound) else 0.0


def _eye(xp: Namespace, A: Array) -> Array:
    return xp.eye(A.shape[-1], dtype=A.dtype, device=A.device)
