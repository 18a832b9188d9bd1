"""Left inverses with rows of least l1 norm by the simplex method, from the supports of an earlier answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray, IntArray

# The inverse of the basis is made anew after so many exchanges, before rounding adds up.
RENEW = 40
# By how much the right-hand sides are moved. Rows of sparse matrices have zeros by accident on a support, at
# which the method would go in circles; the norm of the answer is off by about this share at most.
MOVED = 1e-9


class L1Rows(NamedTuple):
    """Rows of least l1 norm, and what proves it."""

    rows: FloatArray  # row i solves min ||b||_1 with b A = e_i
    # Row i is y with ``|A y| <= 1`` and ``y_i = ||b||_1``, up to rounding, where `n_steps` is not negative.
    dual: FloatArray
    supports: IntArray  # where each row may be nonzero
    n_steps: IntArray  # exchanges that were needed; -1 where the method gave up


def least_l1_rows(
    A: FloatArray, supports: IntArray | None = None, *, tol: float = 1e-9, max_steps: int | None = None
) -> L1Rows:
    """Return the left inverse of A whose rows have the least l1 norms.

    Parameters
    ----------
    A : array of shape (m, n)
        Of full column rank, float64.
    supports : array of int of shape (n, n), optional
        Where to begin: those of the answer for a similar A.
    tol : float
        By what the dual solution may violate its bounds.
    max_steps : int, optional
        At most so many exchanges a row; 50 n by default.

    Returns
    -------
    L1Rows
        The rows and their dual solutions.

    Notes
    -----
    Row i on a support S of n indices is row i of the inverse of ``A[S]``, which satisfies its constraints
    whatever S is. An index whose dual constraint is violated enters; the norm falls along that direction
    until enough entries have changed sign, and the last of these leaves. One exchange costs 2 m n + 3 n^2
    operations; from the answer of a similar A few are needed, often none. Rows are independent and run on the
    pool's threads.
    """
    from nonneg.kernels.l1_simplex.numba import l1_rows

    A = np.ascontiguousarray(A, dtype=np.float64)
    m, n = A.shape
    supports = first_supports(A) if supports is None else np.array(supports, dtype=np.int64)
    answer = L1Rows(np.zeros((n, m)), np.zeros((n, n)), supports, np.zeros(n, dtype=np.int64))
    # The same numbers in every call, so that an earlier answer is one of the same problem.
    targets = np.eye(n) + MOVED * np.random.default_rng(0).uniform(0.5, 1.0, (n, n))
    most = 50 * n if max_steps is None else max_steps

    def work(start: int, stop: int) -> None:
        l1_rows(A, targets, supports, answer.rows, answer.dual, answer.n_steps, tol, most, RENEW, start, stop)

    parallel_for(work, n, chunk_size=1, operations=4.0 * n * n * (m + n))
    return answer


def first_supports(A: FloatArray) -> IntArray:
    """Return n rows of A that are well independent, as the support of every row of the inverse."""
    n = A.shape[1]
    _, order = scipy.linalg.qr(A.T, mode="r", pivoting=True)
    return np.tile(np.asarray(order[:n], dtype=np.int64), (n, 1))
