"""Block principal pivoting: exact nonnegative least squares for many rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, numpy_view, tensor_view
from nonneg._threads import parallel_for
from nonneg.kernels.block_pivoting import array_api
from nonneg.kernels.grams import Gram, ListedGrams, SharedGram, numpy_gram

# Below this many entries of all systems together a batched LAPACK solve is quicker than loading the
# compiled kernel from its cache, let alone compiling it.
SMALL_PIVOTING = 2_000_000


def block_pivoting(factor: Any, gram: Gram, cross: Any, *, max_pivots: int | None = None) -> tuple[Any, Any]:
    """Minimise 0.5 f G f' - c f' over every row f >= 0 exactly, given a guess of the supports.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        Entries above zero are the first guess of the support; not changed.
    gram : Gram
        The matrices G.
    cross : array of shape (n_rows, k)
        The rows c.
    max_pivots : int, optional
        Rows that need more exchanges are flagged; 20 + 5 k by default.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The minimisers; flagged rows are as they came.
    unsolved : array of bool of shape (n_rows,)
        True where the equations were singular or the exchanges did not end.

    References
    ----------
    .. [1] Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 1.
    """
    if is_cpu_tensor(factor):
        rows, flags = block_pivoting(
            numpy_view(factor), numpy_gram(gram), numpy_view(cross), max_pivots=max_pivots
        )
        return tensor_view(rows), tensor_view(flags)
    n_rows, k = factor.shape
    max_pivots = 20 + 5 * k if max_pivots is None else max_pivots
    numpy_rows = isinstance(factor, np.ndarray)
    if isinstance(gram, ListedGrams):
        gram = gram.dense()
    matrix = gram.matrix if isinstance(gram, SharedGram) else gram.matrices
    if not numpy_rows or n_rows * k * k <= SMALL_PIVOTING:
        return array_api.block_pivoting(factor, matrix, cross, max_pivots)
    from nonneg.kernels.block_pivoting.numba import block_pivoting_rows

    own = matrix.ndim == 3
    out = np.array(factor, order="C", copy=True)
    systems = np.ascontiguousarray(matrix if own else matrix[None], dtype=np.float64)
    cross = np.ascontiguousarray(cross)
    unsolved = np.zeros(n_rows, dtype=bool)

    def work(start: int, stop: int) -> None:
        block_pivoting_rows(out, systems, cross, own, max_pivots, start, stop, unsolved)

    parallel_for(work, n_rows, chunk_size=1, operations=float(n_rows) * k * k)
    return out, unsolved
