"""Least squares over the probability simplex under one name: compiled for NumPy arrays, else portable."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, numpy_view, tensor_view
from nonneg._threads import parallel_for
from nonneg.kernels.simplex import array_api as portable_simplex

# Below this many entries of all systems together a batched solve is quicker than loading the kernel.
SMALL_SIMPLEX = 20_000


def simplex_pivoting(
    gram: Any, cross: Any, *, start: Any = None, max_pivots: int | None = None
) -> tuple[Any, Any]:
    """Minimise 0.5 f G f' - c f' over every row f >= 0 with sum 1 exactly.

    Parameters
    ----------
    gram : array of shape (k, k)
        The matrix G, positive definite.
    cross : array of shape (n_rows, k)
        The rows c.
    start : array of shape (n_rows, k), optional
        Entries above zero are the first guess of the supports; by default those of the minimisers with free
        signs.
    max_pivots : int, optional
        Rows that need more exchanges are flagged; 20 + 5 k by default.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The minimisers; flagged rows are as they came.
    unsolved : array of bool of shape (n_rows,)
        True where the equations were singular or the exchanges did not end.

    Notes
    -----
    A row and exchange cost O(s^3) with s the size of the support or the number of zeros, whichever is less:
    the equations of the zeros come from the inverse of G, which all rows share.

    References
    ----------
    .. [1] Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 1, here with one equality.
    """
    if is_cpu_tensor(cross):
        begun = None if start is None else numpy_view(start)
        rows, flags = simplex_pivoting(
            numpy_view(gram), numpy_view(cross), start=begun, max_pivots=max_pivots
        )
        return tensor_view(rows), tensor_view(flags)
    n_rows, k = cross.shape
    max_pivots = 20 + 5 * k if max_pivots is None else max_pivots
    if not isinstance(cross, np.ndarray) or n_rows * k * k <= SMALL_SIMPLEX:
        guess = cross * 0.0 + 1.0 if start is None else start
        return portable_simplex.simplex_pivoting(guess, gram, cross, max_pivots)
    from nonneg.kernels.simplex.numba import simplex_rows

    gram = np.ascontiguousarray(gram, dtype=np.float64)
    inverse = np.linalg.inv(gram)
    sums = inverse.sum(axis=1)
    projector = np.ascontiguousarray(inverse - np.outer(sums, sums) / sums.sum())
    full = cross.astype(np.float64) @ projector + sums / sums.sum()
    out = np.array(full if start is None else start, dtype=cross.dtype, order="C", copy=True)
    cross = np.ascontiguousarray(cross)
    unsolved = np.zeros(n_rows, dtype=bool)

    def work(begin: int, end: int) -> None:
        simplex_rows(out, gram, projector, full, cross, max_pivots, begin, end, unsolved)

    parallel_for(work, n_rows, chunk_size=1, operations=float(n_rows) * k * k * k / 8)
    return out, unsolved
