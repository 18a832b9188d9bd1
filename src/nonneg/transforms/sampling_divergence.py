"""The divergence Q_S of the empirical from the true power of transformed frames, and where it is largest."""

from __future__ import annotations

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray

# Angles of a plane rotation that are compared: those of a grid, and of finer ones about the best.
ANGLES, FINER = 16, 3


def power(transform: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return the expected squares of transformed frames: the diagonals of the transformed covariances."""
    return np.einsum("...ma,nab,...mb->...nm", transform, covariances, transform, optimize=True)


def sampling_divergence(
    transform: FloatArray, covariances: FloatArray, true_covariances: FloatArray, *, eps0: float = 0.0
) -> FloatArray:
    """Return Q_S (31): the divergence of the empirical from the true power of transformed frames."""
    ratio = (power(transform, covariances) + eps0) / (power(transform, true_covariances) + eps0)
    return _divergence(ratio).sum(axis=(-2, -1))


def largest_sampling_divergence(
    covariances: FloatArray,
    true_covariances: FloatArray,
    *,
    eps0: float = 0.0,
    n_starts: int = 4,
    max_sweeps: int = 30,
    rng: Seed = None,
) -> tuple[float, FloatArray]:
    """Look for the transform of largest Q_S, the bound of Proposition 2."""
    rng = generator(rng)
    m = covariances.shape[-1]
    best, where = -np.inf, np.eye(m)
    for _ in range(n_starts):
        transform, triangle = np.linalg.qr(rng.normal(size=(m, m)))
        # Nothing else fixes the signs of the atoms.
        transform *= np.sign(np.diagonal(triangle))
        value = float(sampling_divergence(transform, covariances, true_covariances, eps0=eps0))
        for _ in range(max_sweeps):
            transform = _rotated(transform, covariances, true_covariances, eps0)
            before, value = (
                value,
                float(sampling_divergence(transform, covariances, true_covariances, eps0=eps0)),
            )
            if value - before <= 1e-6 * abs(value):
                break
        if value > best:
            best, where = value, transform
    return best, where


def _divergence(ratio: FloatArray) -> FloatArray:
    return ratio - np.log(ratio) - 1.0


def _rotated(transform: FloatArray, found: FloatArray, true: FloatArray, eps0: float) -> FloatArray:
    """Rotate every pair of atoms in its plane to where their share of Q_S is largest."""
    transform = transform.copy()
    A, B = (transform @ covariances @ transform.T for covariances in (found, true))
    for p in range(len(transform) - 1):
        for q in range(p + 1, len(transform)):
            width, angle = np.pi / 2.0, 0.0
            for _ in range(FINER):
                # The angle 0 is among them, so that Q_S never falls.
                angles = angle + width * np.arange(-ANGLES // 2, ANGLES // 2) / ANGLES
                angle = float(angles[np.argmax(_plane_values(A, B, p, q, angles, eps0))])
                width *= 4.0 / ANGLES
            c, s = np.cos(angle), np.sin(angle)
            turn = np.array([[c, s], [-s, c]])
            pair = [p, q]
            transform[pair] = turn @ transform[pair]
            for M in (A, B):
                M[:, pair] = turn @ M[:, pair]
                M[:, :, pair] = M[:, :, pair] @ turn.T
    return transform


def _plane_values(
    A: FloatArray, B: FloatArray, p: int, q: int, angles: FloatArray, eps0: float
) -> FloatArray:
    c, s = np.cos(angles), np.sin(angles)
    total = np.zeros_like(angles)
    for u, v in ((c, s), (-s, c)):
        of_a, of_b = (
            np.multiply.outer(M[:, p, p], u * u)
            + np.multiply.outer(M[:, q, q], v * v)
            + np.multiply.outer(2.0 * M[:, p, q], u * v)
            + eps0
            for M in (A, B)
        )
        total += _divergence(of_a / of_b).sum(axis=0)
    return total
