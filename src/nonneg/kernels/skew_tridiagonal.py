"""Skew matrices in tridiagonal form, E = Q T Q': functions of T cost little, and Q is a few products.

For one matrix of NumPy's float64; the eigenvectors of E^2 are the way for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray

# For smaller matrices a call costs as much as its work.
SMALLEST = 24
# Reflections that are applied together, as products.
BLOCK = 32


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
    """A skew matrix E = Q T Q'.

    Attributes
    ----------
    beside : array of shape (m - 1,)
        What stands over the diagonal of T; its negative stands under it.
    reflectors : array of shape (m, m)
        Row k reflects the entries after the k-th.
    weighted : list of array
        Their triangle times V for every block V of reflections, which together are I - V' weighted.
    """

    beside: FloatArray
    reflectors: FloatArray
    weighted: list[FloatArray]

    def norm_bound(self) -> float:
        """Bound the spectral norm by the largest sum of a row.

        Returns
        -------
        float
            At most twice the norm.
        """
        sizes = np.abs(self.beside)
        sums = np.append(sizes, 0.0) + np.insert(sizes, 0, 0.0)
        return float(sums.max())

    def turned(self, P: FloatArray, *, back: bool) -> FloatArray:
        """Return Q' P, or Q P.

        Parameters
        ----------
        P : array of shape (m, p)
            Not changed.
        back : bool
            Whether Q P is asked for.

        Returns
        -------
        array of shape (m, p)
            The product.
        """
        found = np.array(P, order="C")
        blocks = list(enumerate(self.weighted))
        for number, weighted in reversed(blocks) if back else blocks:
            start = number * BLOCK
            V = self.reflectors[start : start + len(weighted), start + 1 :]
            part = found[start + 1 :]
            part -= V.T @ (weighted @ part) if back else weighted.T @ (V @ part)
        return found

    def product(self, Z: FloatArray, t: float) -> FloatArray:
        """Return t T Z.

        Parameters
        ----------
        Z : array of shape (m, p)
            In the coordinates of T.
        t : float
            A factor.

        Returns
        -------
        array of shape (m, p)
            The product.
        """
        beside = (t * self.beside)[:, None]
        found = np.empty_like(Z)
        np.multiply(beside, Z[1:], out=found[:-1])
        found[-1] = 0.0
        found[1:] -= beside * Z[:-1]
        return found

    def solutions(self, Z: FloatArray, t: float, shifts: FloatArray, scales: FloatArray) -> FloatArray:
        """Return the sum of scales (shifts - t^2 T^2)^-1 Z.

        Parameters
        ----------
        Z : array of shape (m, p)
            In the coordinates of T.
        t : float
            A factor of T.
        shifts, scales : array of shape (n,)
            Positive numbers.

        Returns
        -------
        array of shape (m, p)
            The sum.
        """
        from nonneg.kernels.compiled import skew_tridiagonal as compiled

        found = np.empty_like(Z)
        compiled.sum_of_solutions(t * self.beside, Z, shifts, scales, found)
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
    from nonneg.kernels.compiled import skew_tridiagonal as compiled

    m = len(E)
    reflectors, weights, beside = np.zeros((m, m)), np.empty(m - 1), np.empty(m - 1)
    compiled.tridiagonalize(np.array(E, order="C"), reflectors, weights, beside)
    blocks: list[FloatArray] = []
    # The last row has nothing to reflect.
    for start in range(0, m - 2, BLOCK):
        stop = min(start + BLOCK, m - 2)
        V = reflectors[start:stop, start + 1 :]
        factor = np.zeros((stop - start, stop - start))
        compiled.triangular_factor(V @ V.T, weights[start:stop], factor)
        blocks.append(factor @ V)
    return SkewTridiagonal(beside, reflectors, blocks)
