"""Skew matrices in tridiagonal form, E = Q T Q': functions of T cost little, and Q is a few products.

For one matrix of NumPy's float64; the eigenvectors of E^2 are the way for others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray

# For smaller matrices a call costs as much as its work.
SMALLEST = 24
# Reflections that are applied together, as products; a multiple of the rows that kernels take at once.
BLOCK = 16


def serves(E: Any) -> bool:
    """Tell whether the kernels take skew matrices.

    Parameters
    ----------
    E : array of shape (batch, m, m)
        Skew matrices.

    Returns
    -------
    bool
        For one matrix of NumPy's float64 that is not small.
    """
    return (
        isinstance(E, np.ndarray)
        and E.dtype == np.float64
        and E.ndim == 3
        and E.shape[0] == 1
        and E.shape[1] >= SMALLEST
    )


@dataclass(frozen=True)
class SkewTridiagonal:
    """A skew matrix E = Q T Q'; matrices with as many rows come and go as panels."""

    beside: FloatArray  # what stands over the diagonal of T; its negative stands under it
    reflectors: FloatArray  # row k reflects the entries after the k-th
    triangles: FloatArray  # A block V of reflectors and its rows T of this one together reflect by I - V' T V

    def norm_bound(self) -> float:
        """Bound the spectral norm by the largest sum of a row of T^2."""
        m = len(self.beside) + 1
        # T has nothing before its first entry and after its last one.
        sizes = np.zeros(m + 3)
        np.abs(self.beside, out=sizes[2:-2])
        before, after = sizes[1:-2], sizes[2:-1]
        sums = before * (before + sizes[:-3]) + after * (after + sizes[3:])
        return math.sqrt(sums.max())

    def panels(self, P: FloatArray) -> FloatArray:
        """Return a matrix as panels."""
        from nonneg.kernels.skew_tridiagonal import reflections as compiled

        found = np.zeros((-(-P.shape[1] // compiled.COLUMNS), len(self.reflectors), compiled.COLUMNS))
        compiled.put_panels(P, found)
        return found

    def matrix(self, panels: FloatArray, p: int) -> FloatArray:
        """Return panels as a matrix."""
        from nonneg.kernels.skew_tridiagonal import reflections as compiled

        found = np.empty((len(self.beside) + 1, p))
        compiled.put_matrix(panels, found)
        return found

    def turn(self, panels: FloatArray, *, back: bool) -> None:
        """Multiply by Q', or by Q, in place."""
        from nonneg.kernels.skew_tridiagonal import reflections as compiled

        work = np.empty((self.triangles.shape[1], compiled.COLUMNS))
        compiled.reflect(self.reflectors, self.triangles, back, panels, work)

    def solutions(
        self, panels: FloatArray, t: float, shifts: FloatArray, scales: FloatArray, *, own: float
    ) -> FloatArray:
        """Return (own + t T) times the sum of scales (shifts - t^2 T^2)^-1 times a matrix."""
        from nonneg.kernels.skew_tridiagonal import numba as compiled

        found = np.empty_like(panels)
        compiled.sum_of_solutions(t * self.beside, panels, shifts, scales, own, found)
        return found


def skew_tridiagonal(E: FloatArray) -> SkewTridiagonal:
    """Bring a skew matrix to tridiagonal form.

    Parameters
    ----------
    E : array of shape (m, m)
        Skew; not changed.

    Returns
    -------
    SkewTridiagonal
        Equal to E up to rounding of its norm.
    """
    from nonneg.kernels.skew_tridiagonal import numba as compiled
    from nonneg.kernels.skew_tridiagonal import reflections

    m = len(E)
    padded = -(-m // reflections.ROWS) * reflections.ROWS
    A, reflectors = np.zeros((padded, padded)), np.zeros((padded, padded))
    weights, beside = np.zeros(padded), np.empty(m - 1)
    A[:m, :m] = E
    compiled.tridiagonalize(A, reflectors, weights, beside, np.empty((4, padded)))
    triangles = np.zeros((padded, BLOCK))
    reflections.put_triangles(reflectors, weights, triangles)
    return SkewTridiagonal(beside, reflectors, triangles)
