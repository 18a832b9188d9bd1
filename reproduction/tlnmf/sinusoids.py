"""Sinusoids fitted to the atoms of a transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, NonFiniteDataError, ShapeError

# Points of the first search in the width of a spectral peak, and steps that narrow its bracket (0.618^50).
PER_PEAK, NARROWINGS = 8, 50
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class SinusoidFit:
    """The sinusoid ``a cos(w m + psi)`` nearest to each atom, m = 0, 1, ...

    Attributes
    ----------
    frequency : array of shape (n_atoms,)
        w in cycles per sample, times the sample rate.
    amplitude : array of shape (n_atoms,)
        a, nonnegative.
    phase : array of shape (n_atoms,)
        psi, in (-pi, pi].
    residual_share : array of shape (n_atoms,)
        The squared norm of the residual over that of the atom: 0 for a sinusoid.
    """

    frequency: FloatArray
    amplitude: FloatArray
    phase: FloatArray
    residual_share: FloatArray


def fit_sinusoids(atoms: Any, *, sample_rate: float = 1.0) -> SinusoidFit:
    """Fit a sinusoid to each atom by least squares, over amplitude, phase and frequency.

    Parameters
    ----------
    atoms : array-like of shape (n_atoms, n_samples) or (n_samples,)
        One atom per row, of at least four samples.
    sample_rate : float, default 1
        Samples per unit of time.

    Returns
    -------
    SinusoidFit
        The best sinusoids; an atom of zeros has amplitude 0, residual share 0 and no frequency (NaN).

    Notes
    -----
    Frequencies range from half a period per atom to equally far below half the sample rate: slower ones
    cannot be distinguished from straight lines. A grid with eight points in the width of a spectral peak
    comes first; then the best one's neighborhood is narrowed by golden sections.
    """
    given = np.atleast_2d(np.asarray(atoms, dtype=np.float64))
    if given.ndim != 2 or given.shape[1] < 4:
        raise ShapeError(
            f"Expected atoms of shape (n_atoms, n_samples) with at least 4 samples, got {np.shape(atoms)}."
        )
    if not np.isfinite(given).all():
        raise NonFiniteDataError("Expected finite atoms, got NaN or infinite entries. Remove them first.")
    if not sample_rate > 0:
        raise InvalidParameterError(f"sample_rate must be positive, got {sample_rate}.")
    n_samples = given.shape[1]
    energy = np.einsum("ij,ij->i", given, given)
    grid = np.linspace(np.pi / n_samples, np.pi - np.pi / n_samples, PER_PEAK * n_samples)
    # Each atom's share of energy at all frequencies of the grid: two products.
    best = grid[np.argmax(_explained(given, grid), axis=1)]
    width = grid[1] - grid[0]
    low, high = np.maximum(best - width, grid[0]), np.minimum(best + width, grid[-1])
    for _ in range(NARROWINGS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        keep_left = _explained_by_own(given, left) >= _explained_by_own(given, right)
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    w = 0.5 * (low + high)
    cosines, sines = _centered(w, n_samples)
    a = np.einsum("ij,ij->i", given, cosines) / np.einsum("ij,ij->i", cosines, cosines)
    b = np.einsum("ij,ij->i", given, sines) / np.einsum("ij,ij->i", sines, sines)
    left_over = given - a[:, None] * cosines - b[:, None] * sines
    silent = energy == 0
    residual = np.einsum("ij,ij->i", left_over, left_over) / np.where(silent, 1.0, energy)
    # a cos(w m') + b sin(w m') = |a + ib| cos(w m' - arg), and m' = m - (n_samples - 1) / 2.
    phase = -np.arctan2(b, a) - w * (n_samples - 1) / 2.0
    phase = np.pi - np.mod(np.pi - phase, 2.0 * np.pi)
    frequency = np.where(silent, np.nan, w * sample_rate / (2.0 * np.pi))
    return SinusoidFit(frequency, np.hypot(a, b), np.where(silent, 0.0, phase), residual)


def _centered(w: FloatArray, n_samples: int) -> tuple[FloatArray, FloatArray]:
    """Return cosines and sines over time counted from the middle, where they are orthogonal."""
    angles = np.multiply.outer(w, np.arange(n_samples) - (n_samples - 1) / 2.0)
    return np.cos(angles), np.sin(angles)


def _explained(atoms: FloatArray, grid: FloatArray) -> FloatArray:
    cosines, sines = _centered(grid, atoms.shape[1])
    return (atoms @ cosines.T) ** 2 / np.einsum("ij,ij->i", cosines, cosines) + (
        atoms @ sines.T
    ) ** 2 / np.einsum("ij,ij->i", sines, sines)


def _explained_by_own(atoms: FloatArray, w: FloatArray) -> FloatArray:
    cosines, sines = _centered(w, atoms.shape[1])
    return np.einsum("ij,ij->i", atoms, cosines) ** 2 / np.einsum("ij,ij->i", cosines, cosines) + np.einsum(
        "ij,ij->i", atoms, sines
    ) ** 2 / np.einsum("ij,ij->i", sines, sines)
