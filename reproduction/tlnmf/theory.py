"""Theorems on transform learning and joint diagonalization, as numbers that can be computed.

Zhang, Soubies & Fevotte, Leveraging Joint-Diagonalization in Transform-Learning NMF. Covariances have shape
(n_frames, frame_length, frame_length): those of S realizations, and the true ones behind them. The divergence
of a transform is Q_S, that of the empirical from the true power of the transformed frames.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import digamma

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray

# Angles of a plane rotation that are compared, and grids of them, each finer and about the best of the last:
# the last one has steps of 0.006 radians.
ANGLES, FINER = 16, 3


@dataclass(frozen=True)
class SolutionGaps:
    """Theorem 2 for numerical solutions: what I is at those of both problems."""

    tl_lowest: float  # smallest and largest I over the solutions of TL-NMF
    tl_highest: float
    jd_lowest: float  # the same over those of JD+NMF
    jd_highest: float
    objective_gap: float  # by how much C of the best solution of JD+NMF exceeds that of TL-NMF's

    @property
    def inner(self) -> float:
        """The inner gap: 0 exactly where the problems share a solution (22)."""
        return self.jd_lowest - self.tl_highest

    @property
    def outer(self) -> float:
        """The outer gap: 0 exactly where all solutions are shared (23); it bounds the objective gap (28)."""
        return self.jd_highest - self.tl_lowest

    def ordered(self, tolerance: float = 0.0) -> bool:
        """Tell whether (21) and (28) hold."""
        chain = [0.0, self.tl_lowest, self.tl_highest, self.jd_lowest, self.jd_highest]
        steps = [after - before for before, after in itertools.pairwise(chain)]
        return min(*steps, self.objective_gap, self.outer - self.objective_gap) >= -tolerance


def solution_gaps(
    tl_objective: FloatArray,
    tl_divergence: FloatArray,
    jd_likelihood: FloatArray,
    jd_divergence: FloatArray,
    *,
    tolerance: float = 1e-6,
) -> SolutionGaps:
    """Return the gaps of Theorem 2 from the solutions of several restarts."""
    objective, divergence, likelihood, diagonalized = (
        np.asarray(given, dtype=np.float64)
        for given in (tl_objective, tl_divergence, jd_likelihood, jd_divergence)
    )
    tl = divergence[objective <= objective.min() + tolerance]
    near = likelihood <= likelihood.min() + tolerance
    jd = diagonalized[near]
    gap = (likelihood + diagonalized)[near].min() - objective.min()
    return SolutionGaps(*(float(x) for x in (tl.min(), tl.max(), jd.min(), jd.max(), gap)))


def sampling_divergence_limit(n_realizations: int) -> float:
    """Return what Q_S / (M N) tends to for Gaussian frames as M N grows (Remark 4)."""
    return float(np.log(n_realizations / 2.0) - digamma(n_realizations / 2.0))


def uniform_deviation(covariances: FloatArray, true_covariances: FloatArray) -> float:
    """Return a bound on how far the empirical power is from the true one, relatively, for any transform."""
    spectra = [
        scipy.linalg.eigh(found, true, eigvals_only=True)
        for found, true in zip(covariances, true_covariances, strict=True)
    ]
    return float(np.abs(np.array(spectra) - 1.0).max())


def deviation_bound(deviation: float, n_frames: int, frame_length: int) -> float:
    """Return Lemma 6's bound on the largest Q_S."""
    return n_frames * frame_length * deviation**2 / (1.0 - deviation) if deviation < 1.0 else math.inf


@dataclass(frozen=True)
class DivergenceBounds:
    """Proposition 2 and what bounds its right-hand side."""

    divergence: float  # I at a solution of JD+NMF
    largest: float  # the largest Q_S that was found, which is at most the true one
    deviation: float  # Lemma 6's bound on it for these realizations; infinite where they are too few

    @property
    def gap(self) -> float:
        """By how much the divergence stays below the bound of Proposition 2."""
        return self.largest - self.divergence


def divergence_bounds(
    divergence: float,
    covariances: FloatArray,
    true_covariances: FloatArray,
    *,
    eps0: float = 0.0,
    n_init: int = 4,
    rng: Seed = None,
) -> DivergenceBounds:
    """Compare I at a solution of JD+NMF with the bounds of Proposition 2 and Lemma 6."""
    largest, _ = largest_sampling_divergence(covariances, true_covariances, eps0=eps0, n_init=n_init, rng=rng)
    deviation = uniform_deviation(covariances, true_covariances)
    n_frames, m = covariances.shape[:2]
    return DivergenceBounds(float(divergence), largest, deviation_bound(deviation, n_frames, m))


def factors_of_true_power(
    transform: FloatArray, true_transform: FloatArray, W: FloatArray, H: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return exact factors of the true power of transformed frames, for any transform (86, 87)."""
    sums = H.sum(axis=1)
    return W * sums, H @ ((transform @ true_transform.T) ** 2).T / sums[:, None]


def exact_factors(power_of_frames: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray]:
    """Return factors with I = 0, which exist for any transform when K >= min(M, N)."""
    V = np.asarray(power_of_frames, dtype=np.float64)
    n, m = V.shape
    W, H = np.zeros((n, n_components)), np.full((n_components, m), 1.0 / m)
    if m <= n_components:
        W[:, :m], H[:m] = V, np.eye(m)
    else:
        sums = V.sum(axis=1)
        W[:, :n] = np.diag(sums)
        H[:n] = np.where(sums[:, None] > 0, V / np.where(sums > 0, sums, 1.0)[:, None], 1.0 / m)
    return W, H


def transformed_power(transform: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return the expected squares of transformed frames: the diagonals of the transformed covariances."""
    return np.einsum("...ma,nab,...mb->...nm", transform, covariances, transform, optimize=True)


def sampling_divergence(
    transform: FloatArray, covariances: FloatArray, true_covariances: FloatArray, *, eps0: float = 0.0
) -> FloatArray:
    """Return Q_S (31): the divergence of the empirical from the true power of transformed frames."""
    ratio = (transformed_power(transform, covariances) + eps0) / (
        transformed_power(transform, true_covariances) + eps0
    )
    return _divergence(ratio).sum(axis=(-2, -1))


def largest_sampling_divergence(
    covariances: FloatArray,
    true_covariances: FloatArray,
    *,
    eps0: float = 0.0,
    n_init: int = 4,
    max_sweeps: int = 30,
    rng: Seed = None,
) -> tuple[float, FloatArray]:
    """Look for the transform of largest Q_S, the bound of Proposition 2."""
    rng = generator(rng)
    m = covariances.shape[-1]
    best, where = -np.inf, np.eye(m)
    for _ in range(n_init):
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
