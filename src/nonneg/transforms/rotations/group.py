"""The orthogonal group: skew parts, closest and random orthogonal matrices, rounding removed.

Every function takes matrices on the last two axes and any number of axes before them.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from nonneg._random import Seed, generator
from nonneg._typing import Array, FloatArray


def transposed(A: Array) -> Array:
    """Return matrices with rows and columns exchanged."""
    return array_namespace(A).matrix_transpose(A)


def skew_part(A: Array) -> Array:
    """Return (A - A') / 2."""
    return 0.5 * (A - transposed(A))


def closest_orthogonal(A: Array) -> Array:
    """Return the orthogonal matrix closest to A, its polar factor."""
    xp = array_namespace(A)
    U, _, Vt = xp.linalg.svd(A, full_matrices=False)
    return U @ Vt


def newton_schulz_step(A: Array) -> Array:
    """Square the error of a matrix whose columns are nearly orthonormal."""
    gram = transposed(A) @ A
    return A @ (1.5 * identity_like(gram) - 0.5 * gram)


def orthogonality_error(A: Array) -> Array:
    """Return the largest entry of ``|A A' - I|``."""
    xp = array_namespace(A)
    gram = A @ transposed(A)
    return xp.max(xp.max(xp.abs(gram - identity_like(gram)), axis=-1), axis=-1)


def random_orthogonal(m: int, rng: Seed = None) -> FloatArray:
    """Return an orthogonal matrix drawn uniformly."""
    matrix: FloatArray = closest_orthogonal(generator(rng).standard_normal((m, m)))
    return matrix


def norm_bound(E: Array) -> float:
    """Bound the spectral norm of the largest of skew matrices."""
    xp = array_namespace(E)
    rows = xp.max(xp.sum(xp.abs(E), axis=-1), axis=-1)
    frobenius = xp.sqrt(0.5 * xp.sum(xp.sum(E * E, axis=-1), axis=-1))
    bound = float(xp.max(xp.where(rows < frobenius, rows, frobenius)))
    return bound if np.isfinite(bound) else 0.0


def identity_like(A: Array) -> Array:
    """Return the identity matrix with the columns, type and device of A."""
    return array_namespace(A).eye(A.shape[-1], dtype=A.dtype, device=A.device)
