"""Sums of solutions of shifted tridiagonal systems, compiled."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import MATH


@jit(fastmath=MATH, error_model="numpy")
def sum_of_solutions(diagonal, beside, shifts, scales, Y, out):
    """Put the sum of scales (T + shifts I)^-1 Y into `out`, for symmetric positive semidefinite T."""
    m, n_columns = Y.shape
    work, inverses, factors = np.empty((m, n_columns)), np.empty(m), np.zeros(m)
    out[:, :] = 0.0
    for s in range(shifts.shape[0]):
        # T + shift I = L D L' without pivoting: the matrix is positive definite.
        for i in range(m):
            pivot = diagonal[i] + shifts[s]
            if i > 0:
                pivot -= beside[i - 1] * factors[i - 1]
            inverses[i] = 1.0 / pivot
            if i + 1 < m:
                factors[i] = beside[i] * inverses[i]
        for j in range(n_columns):
            work[0, j] = Y[0, j]
        for i in range(1, m):
            row, above, given, factor = work[i], work[i - 1], Y[i], factors[i - 1]
            for j in range(n_columns):
                row[j] = given[j] - factor * above[j]
        for j in range(n_columns):
            work[m - 1, j] *= inverses[m - 1]
            out[m - 1, j] += scales[s] * work[m - 1, j]
        for i in range(m - 2, -1, -1):
            row, below, total = work[i], work[i + 1], out[i]
            factor, inverse, scale = factors[i], inverses[i], scales[s]
            for j in range(n_columns):
                entry = row[j] * inverse - factor * below[j]
                row[j] = entry
                total[j] += scale * entry
