"""Left inverses with rows of minimum l1 norm by the simplex method, warm-started from given bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from nonneg._compiled import core
from nonneg._threads import parallel_for, team_size
from nonneg._typing import FloatArray, IntArray

# Perturbation of the right-hand sides against cycling: rows of sparse matrices vanish by accident on a basis,
# which is degenerate. The norm of the solution changes by about this share at most.
PERTURBATION = 1e-9


class L1Rows(NamedTuple):
    """Rows of minimum l1 norm, and their proof of optimality."""

    rows: FloatArray  # row i solves min ||b||_1 with b A = e_i
    # Row i is y with ``|A y| <= 1`` and ``y_i = ||b||_1``, up to rounding, where `n_pivots` is not negative.
    dual: FloatArray
    bases: IntArray  # where each row may be nonzero
    n_pivots: IntArray  # -1 where the method gave up


def minimum_l1_rows(
    A: FloatArray, bases: IntArray | None = None, *, tol: float = 1e-9, max_pivots: int | None = None
) -> L1Rows:
    """Return the left inverse of A whose rows have minimum l1 norms.

    Parameters
    ----------
    A : array of shape (m, n)
        Of full column rank, float64.
    bases : array of int of shape (n, n), optional
        The initial bases: those of the solution for a similar A.
    tol : float, default 1e-9
        By what the dual solution may violate its bounds.
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
    bases = initial_bases(A) if bases is None else np.array(bases, dtype=np.int64, order="C")
    found = L1Rows(np.zeros((n, m)), np.zeros((n, n)), bases, np.zeros(n, dtype=np.int64))
    # The same perturbation in every call, so that an earlier basis is one of the same problem.
    targets = np.eye(n) + PERTURBATION * np.random.default_rng(0).uniform(0.5, 1.0, (n, n))
    limit = 50 * n if max_pivots is None else max_pivots
    compiled, operations = core(), 4.0 * n * n * (m + n)
    if compiled is not None:
        compiled.l1_rows(
            A, targets, bases, found.rows, found.dual, found.n_pivots, tol, limit, team_size(operations)
        )
        return found

    def work(start: int, stop: int) -> None:
        l1_rows(A, targets, bases, found.rows, found.dual, found.n_pivots, tol, limit, start, stop)

    parallel_for(work, n, chunk_size=1, operations=operations)
    return found


def initial_bases(A: FloatArray) -> IntArray:
    """Return n well-conditioned rows of A (pivoted QR) as the basis of every row of the inverse."""
    n = A.shape[1]
    _, order = scipy.linalg.qr(A.T, mode="r", pivoting=True)
    return np.tile(np.asarray(order[:n], dtype=np.int64), (n, 1))


def l1_rows(
    A: FloatArray,
    targets: FloatArray,
    bases: IntArray,
    out: FloatArray,
    dual: FloatArray,
    n_pivots: IntArray,
    tol: float,
    max_pivots: int,
    start: int,
    stop: int,
) -> None:
    """Solve problems `start` to `stop`, in place; see `kernels.l1_simplex.minimum_l1_rows`."""
    for i in range(start, stop):
        basis = bases[i]
        inverse = np.linalg.inv(A[basis])
        signs = np.where(targets[i] @ inverse >= 0, 1.0, -1.0)
        n_pivots[i] = -1
        for pivot in range(max_pivots):
            sizes = np.abs(A @ (inverse @ signs))
            sizes[basis] = 0.0
            entering = int(np.argmax(sizes))
            if sizes[entering] <= 1.0 + tol:
                n_pivots[i] = pivot
                break
            side = 1.0 if A[entering] @ (inverse @ signs) > 0 else -1.0
            rates = side * (A[entering] @ inverse)
            place = _leaving(targets[i] @ inverse, rates, signs, 1.0 - sizes[entering])
            if place < 0:
                break
            signs[place] = side
            basis[place] = entering
            inverse = np.linalg.inv(A[basis])
        out[i] = 0.0
        out[i, basis] = inverse[i]
        dual[i] = inverse @ signs


def _leaving(values: FloatArray, rates: FloatArray, signs: FloatArray, slope: float) -> int:
    # The entries that shrink to zero, in the order in which they reach it; ties by decreasing rate.
    falling = np.flatnonzero(signs * rates > 1e-11)
    lengths = np.maximum(values[falling] / rates[falling], 0.0)
    for place in falling[np.lexsort((-np.abs(rates[falling]), lengths))]:
        slope += 2.0 * abs(rates[place])
        signs[place] = -signs[place]
        if slope >= 0:
            return int(place)
    return -1
