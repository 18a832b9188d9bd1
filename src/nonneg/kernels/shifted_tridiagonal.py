"""Sums of solutions of shifted tridiagonal systems."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solveh_banded

from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import FloatArray


def sum_of_solutions(
    diagonal: FloatArray, beside: FloatArray, shifts: FloatArray, scales: FloatArray, Y: FloatArray
) -> FloatArray:
    """Return the sum of scales (T + shifts I)^-1 Y for a tridiagonal matrix T of at least two rows.

    Parameters
    ----------
    diagonal, beside : array of shape (m,) and (m - 1,)
        The diagonal of T, which is symmetric positive semidefinite, and the entries beside it.
    shifts, scales : array of shape (n_shifts,)
        Numbers above 0, and the weights of the solutions.
    Y : array of shape (m, n_columns)
        The right-hand sides.

    Returns
    -------
    array of shape (m, n_columns)
        The sum.
    """
    if (compiled := core()) is None:
        above = np.append(0.0, beside)
        solutions = (
            scale * solveh_banded(np.stack([above, diagonal + shift]), Y, check_finite=False)
            for shift, scale in zip(shifts, scales, strict=True)
        )
        return sum(solutions, start=np.zeros_like(Y))
    total = np.empty(Y.shape)
    parts = (np.ascontiguousarray(array) for array in (diagonal, beside, shifts, scales, Y))
    compiled.sum_of_solutions(*parts, total, team_size(8.0 * Y.size * len(shifts)))
    return total
