"""Pseudo-inverses of the features: Moore-Penrose, and that of minimum infinity norm by linear programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from nonneg._ties import first_largest
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError
from nonneg.kernels.l1_simplex import minimum_l1_rows

# A matrix whose smallest singular value is below this share of the largest has dependent features.
DEPENDENT = 1e-10


@dataclass(frozen=True)
class PseudoInverse:
    """A matrix with ``inverse @ H.T`` the identity."""

    inverse: FloatArray  # the paper's A^+ for A = H'
    # Where the rows of a linear program's solution may be nonzero: the initial basis of the next one.
    bases: IntArray | None = None
    n_pivots: int = 0  # pivots of the simplex method, over all rows


def pseudo_inverse(
    H: FloatArray, method: str = "moore-penrose", bases: IntArray | None = None
) -> PseudoInverse:
    """Return a left inverse of the transposed features."""
    # Moore-Penrose costs one QR factorization. Row i of the other is the linear program ``min ||b||_1 s.t. b
    # A = e_i``; all share the constraint matrix, the basis of the last iteration stays feasible whatever has
    # changed, and rows run on several threads. Where the simplex method gives up, or its dual solution does
    # not prove optimality, HiGHS solves it.
    A = H.T
    if method == "moore-penrose":
        Q, R = np.linalg.qr(A)
        return PseudoInverse(np.linalg.solve(R, Q.T))
    # Rows of the inverse scale with one over the features: with equal norms the tolerances mean the same.
    sizes = np.abs(A).sum(axis=0)
    solution = minimum_l1_rows(A / sizes, bases)
    rows = solution.rows
    norms = np.abs(rows).sum(axis=1)
    unproved = (solution.n_pivots < 0) | (norms > (1 + 1e-6) * np.diagonal(solution.dual) + 1e-12)
    for i in np.flatnonzero(unproved):
        rows[i] = _by_highs(A / sizes, int(i))
    return PseudoInverse(rows / sizes[:, None], solution.bases, int(np.maximum(solution.n_pivots, 0).sum()))


def _by_highs(A: FloatArray, row: int) -> FloatArray:
    m, n = A.shape
    target = np.zeros(n)
    target[row] = 1.0
    solution = linprog(
        np.ones(2 * m), A_eq=np.hstack([A.T, -A.T]), b_eq=target, bounds=(0, None), method="highs"
    )
    if solution.x is None:
        raise InvalidParameterError(
            f"The linear program for row {row} of the pseudo-inverse has no solution ({solution.message}): "
            "the features are dependent. Use fewer features, or pseudo_inverse='moore-penrose'."
        )
    return solution.x[:m] - solution.x[m:]


def dependent_feature(H: FloatArray) -> int | None:
    """Return a feature that the others combine to, if there is one."""
    units = H / np.linalg.norm(H, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(units, full_matrices=False)
    vanishing = values <= DEPENDENT * values[0]
    # All of them: where there are several, nothing fixes a basis of the dependences.
    energies = np.sum(left[:, vanishing] ** 2, axis=1)
    return int(first_largest(energies)) if vanishing.any() else None
