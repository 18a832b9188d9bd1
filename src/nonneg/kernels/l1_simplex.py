"""Left inverses with rows of minimum l1 norm by the simplex method, warm-started from given bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import FloatArray, IntArray

# Perturbation of the right-hand sides against cycling: rows of sparse matrices vanish by accident on a basis,
# which is degenerate. The norm of the solution changes by about this share at most.
PERTURBATION = 1e-9
# By what the dual solution may violate its bounds.
TOLERANCE = 1e-9


class L1Rows(NamedTuple):
    """Rows of minimum l1 norm, and their proof of optimality."""

    rows: FloatArray  # row i solves min ||b||_1 with b A = e_i
    # Row i is y with ``|A y| <= 1`` and ``y_i = ||b||_1``, up to rounding, where `n_pivots` is not negative.
    dual: FloatArray
    bases: IntArray  # where each row may be nonzero
    n_pivots: IntArray  # -1 where the method gave up, as it does for all rows without the compiled core


def minimum_l1_rows(A: FloatArray, bases: IntArray | None = None, *, max_pivots: int | None = None) -> L1Rows:
    """Return the left inverse of A whose rows have minimum l1 norms.

    Parameters
    ----------
    A : array of shape (m, n)
        Of full column rank, float64.
    bases : array of int of shape (n, n), optional
        The initial bases: those of the solution for a similar A.
    max_pivots : int, optional
        Maximum number of pivots per row; 50 n by default.

    Returns
    -------
    L1Rows
        The rows and their dual solutions.

    Notes
    -----
    Row i on a basis S of n indices is row i of the inverse of ``A[S]``, which is feasible whatever S is. An
    index whose dual constraint is violated enters; the norm falls along that direction until enough entries
    have changed sign, and the last of these leaves. A pivot costs 2 m n + 3 n^2 operations; from the solution
    of a similar A few are needed, often none. Rows are independent and run on the threads of the pool.
    """
    A = np.ascontiguousarray(A, dtype=np.float64)
    m, n = A.shape
    if bases is None:  # n well-conditioned rows of A
        order = scipy.linalg.qr(A.T, mode="r", pivoting=True)[1]
        bases = np.tile(order[:n], (n, 1))
    bases = np.array(bases, dtype=np.int64, order="C")
    solution = L1Rows(np.zeros((n, m)), np.zeros((n, n)), bases, np.zeros(n, dtype=np.int64))
    # The same perturbation in every call, so that an earlier basis is one of the same problem.
    targets = np.eye(n) + PERTURBATION * np.random.default_rng(0).uniform(0.5, 1.0, (n, n))
    limit = 50 * n if max_pivots is None else max_pivots
    if (compiled := core()) is None:
        solution.n_pivots[:] = -1
        return solution
    threads = team_size(4.0 * n * n * (m + n))
    compiled.l1_rows(
        A, targets, bases, solution.rows, solution.dual, solution.n_pivots, TOLERANCE, limit, threads
    )
    return solution
