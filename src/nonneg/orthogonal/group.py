"""The orthogonal group: skew parts, two ways from a skew matrix to a rotation, closest and random points.

Every function takes matrices on the last two axes and any number of axes before them.
"""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import array_namespace

from nonneg._random import Seed, generator
from nonneg._typing import Array, FloatArray, Namespace

# Degrees in E of the Taylor polynomial of exp(E), by the norm up to which the first term left out is below
# the rounding error of double precision: (norm, even powers of E^2 in the even part).
TAYLOR_HALF_DEGREE = 6
# Norm to which a matrix is scaled before the polynomial: (0.25)^14 / 14! is below 1e-19.
TAYLOR_NORM = 0.35
# Halvings where the norm may not be read: rotations of up to 0.35 * 2^6 = 22 radians.
FIXED_HALVINGS = 6
# Steps to a polar factor where convergence may not be read: from singular values of 1/40 upwards.
FIXED_POLAR_STEPS = 16


def transposed(A: Array) -> Array:
    """Return matrices with rows and columns exchanged.

    Parameters
    ----------
    A : array of shape (..., m, n)
        The matrices.

    Returns
    -------
    array of shape (..., n, m)
        A view where the namespace has views.
    """
    return array_namespace(A).matrix_transpose(A)


def skew_part(A: Array) -> Array:
    """Return (A - A') / 2.

    Parameters
    ----------
    A : array of shape (..., m, m)
        The matrices.

    Returns
    -------
    array of shape (..., m, m)
        With exact zeros on the diagonal.
    """
    return 0.5 * (A - transposed(A))


def exponential(E: Array, *, reads: bool = True) -> Array:
    """Return exp(E) of skew matrices: rotations.

    Parameters
    ----------
    E : array of shape (..., m, m)
        Skew matrices.
    reads : bool
        Whether the norm may be read to choose the number of squarings; otherwise there are six.

    Returns
    -------
    array of shape (..., m, m)
        Orthogonal to rounding.

    Notes
    -----
    The even and the odd part of the Taylor polynomial of degree 13 are polynomials in E^2, which is
    symmetric. The matrix is halved until its norm is small, and the polynomial squared as often.
    """
    xp = array_namespace(E)
    halvings = FIXED_HALVINGS
    if reads:
        norm = _norm(xp, E)
        halvings = max(0, math.ceil(math.log2(norm / TAYLOR_NORM))) if norm > TAYLOR_NORM else 0
    if halvings:
        E = E * 2.0**-halvings
    S = E @ E
    eye = _eye(xp, E)
    S2 = S @ S
    S3 = S2 @ S
    f = [1.0 / math.factorial(i) for i in range(14)]
    even = eye + f[2] * S + f[4] * S2 + S3 @ (f[6] * eye + f[8] * S + f[10] * S2 + f[12] * S3)
    odd = eye + f[3] * S + f[5] * S2 + S3 @ (f[7] * eye + f[9] * S + f[11] * S2 + f[13] * S3)
    R = even + E @ odd
    for _ in range(halvings):
        R = R @ R
    return R


def polar(E: Array, *, reads: bool = True) -> Array:
    """Return the orthogonal matrix closest to I + E, for skew E.

    Parameters
    ----------
    E : array of shape (..., m, m)
        Skew matrices.
    reads : bool
        Whether convergence may be read; otherwise the number of steps is fixed.

    Returns
    -------
    array of shape (..., m, m)
        (I + E) (I - E^2)^(-1/2), orthogonal to rounding.
    """
    xp = array_namespace(E)
    S = E @ E
    eye = _eye(xp, E)
    A = eye + E
    if reads and (size := _norm(xp, E) ** 2) < 0.3:
        # The beginning of the binomial series of (I - E^2)^(-1/2) saves some steps.
        A = A + A @ (0.5 * S) if size < 1e-4 else A @ (eye + 0.5 * S + 0.375 * (S @ S))
    else:
        # The norm of E^2 bounds the squared singular values of I + E by 1 + norm.
        sums = xp.max(xp.sum(xp.abs(S), axis=-1), axis=-1)
        A = A / xp.sqrt(1.0 + sums)[..., None, None]
    return _polar_steps(xp, A, reads=reads)


def polar_velocity(E: Array, step: Array, rotation: Array) -> Array:
    """Return the skew matrix K with d/dt polar(t E) = K polar(t E).

    Parameters
    ----------
    E : array of shape (batch, m, m)
        Skew matrices.
    step : array of shape (batch,)
        The values of t, not 0.
    rotation : array of shape (batch, m, m)
        polar(t E).

    Returns
    -------
    array of shape (batch, m, m)
        E (I - t^2 E^2)^-1, from the symmetric and the skew part of the rotation.
    """
    root = 0.5 * (rotation + transposed(rotation))
    return (E @ root) @ root


def closest_orthogonal(A: Array) -> Array:
    """Return the orthogonal matrix closest to A, its polar factor.

    Parameters
    ----------
    A : array of shape (..., m, m)
        Any square matrices.

    Returns
    -------
    array of shape (..., m, m)
        U V' of the singular value decomposition.
    """
    xp = array_namespace(A)
    U, _, Vt = xp.linalg.svd(A, full_matrices=False)
    return U @ Vt


def polished(A: Array) -> Array:
    """Return a nearly orthogonal matrix with the square of its error.

    Parameters
    ----------
    A : array of shape (..., m, m)
        Orthogonal up to some rounding.

    Returns
    -------
    array of shape (..., m, m)
        One Newton-Schulz step towards the closest orthogonal matrix.
    """
    xp = array_namespace(A)
    return A @ (1.5 * _eye(xp, A) - 0.5 * (transposed(A) @ A))


def orthogonality_error(A: Array) -> Array:
    """Return the largest entry of \\|A A' - I\\|.

    Parameters
    ----------
    A : array of shape (..., m, m)
        The matrices.

    Returns
    -------
    array of shape (...)
        0 for orthogonal matrices.
    """
    xp = array_namespace(A)
    return xp.max(xp.max(xp.abs(A @ transposed(A) - _eye(xp, A)), axis=-1), axis=-1)


def random_orthogonal(m: int, rng: Seed = None) -> FloatArray:
    """Return an orthogonal matrix drawn uniformly.

    Parameters
    ----------
    m : int
        Its size.
    rng : None, int, Generator, RandomState or SeedSequence
        The source of random numbers.

    Returns
    -------
    array of shape (m, m)
        The polar factor of a matrix with normal entries.
    """
    found: FloatArray = closest_orthogonal(generator(rng).standard_normal((m, m)))
    return found


def _polar_steps(xp: Namespace, A: Array, *, reads: bool) -> Array:
    eye = _eye(xp, A)
    if not reads:
        for _ in range(FIXED_POLAR_STEPS):
            A = A @ (1.5 * eye - 0.5 * (transposed(A) @ A))
        return A
    enough = 1e-8 if "64" in str(A.dtype) else 1e-3
    for _ in range(200):
        square = transposed(A) @ A
        error = float(xp.max(xp.abs(square - eye)))
        A = A @ (1.5 * eye - 0.5 * square)
        # The error is squared by the step just made.
        if not error > enough:
            break
    return A


def _norm(xp: Namespace, E: Array) -> float:
    """Bound the spectral norm of the largest of skew matrices: their eigenvalues come in pairs."""
    rows = xp.max(xp.sum(xp.abs(E), axis=-1), axis=-1)
    frobenius = xp.sqrt(0.5 * xp.sum(xp.sum(E * E, axis=-1), axis=-1))
    bound = float(xp.max(xp.where(rows < frobenius, rows, frobenius)))
    return bound if np.isfinite(bound) else 0.0


def _eye(xp: Namespace, A: Array) -> Array:
    return xp.eye(A.shape[-1], dtype=A.dtype, device=A.device)
