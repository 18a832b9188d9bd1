"""Block principal pivoting: exact nonnegative least squares for many rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_float_array, on_gpu, serves_tensors
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg.kernels.block_pivoting import array_api
from nonneg.kernels.grams import DenseGrams, Gram, SharedGram, gram_matrices

# Entries of the systems of rows with a singular one up to which all of them are solved with a tiny ridge. It
# gives the minimum to rounding, which coordinate descent only approaches, but takes long for many rows.
FEW_ENTRIES = 2_000_000


@serves_tensors
def block_pivoting(
    factor: Any, gram: Gram, cross: Any, *, max_pivots: int | None = None, in_place: bool = False
) -> tuple[Any, Any]:
    """Minimize 0.5 f G f' - c f' over every row f >= 0 exactly, given a guess of the supports.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        Entries above zero are the first guess of the support; not modified unless `in_place`.
    gram : Gram
        The matrices G.
    cross : array of shape (n_rows, k)
        The rows c.
    max_pivots : int, optional
        Maximum number of exchanges; rows that need more are flagged. 20 + 5 k by default.
    in_place : bool, default False
        Whether the result may take the memory of `factor`, which spares a GPU an array.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The minimizers; flagged rows are returned unchanged.
    unsolved : array of bool of shape (n_rows,)
        True where the system was singular or the exchanges did not terminate.

    References
    ----------
    .. [1] Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 1.
    """
    max_pivots = 20 + 5 * factor.shape[1] if max_pivots is None else max_pivots
    if on_gpu(factor):
        from nonneg.kernels.block_pivoting import triton

        if triton.is_supported(factor):
            return triton.block_pivoting(factor, gram, cross, max_pivots, in_place=in_place)
    compiled = core() if is_float_array(factor) else None
    if compiled is None:
        return array_api.block_pivoting(factor, gram, cross, max_pivots)
    n_rows, k = factor.shape
    matrices = gram_matrices(gram)
    systems = np.ascontiguousarray(matrices if matrices.ndim == 3 else matrices[None], dtype=np.float64)
    rows, unsolved = np.array(factor, order="C"), np.zeros(n_rows, dtype=bool)
    targets = np.ascontiguousarray(cross, dtype=rows.dtype)
    compiled.block_pivoting(rows, systems, targets, unsolved, max_pivots, team_size(float(n_rows) * k * k))
    rest = unsolved.nonzero()[0]
    if 0 < len(rest) * k**2 <= FEW_ENTRIES:
        own = gram if isinstance(gram, SharedGram) else DenseGrams(gram.dense().matrices[rest])
        rows[rest], unsolved[rest] = array_api.block_pivoting(factor[rest], own, cross[rest], max_pivots)
    return rows, unsolved
