"""Products of a CSR matrix with tall dense factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for


def sparse_times(indptr: Any, indices: Any, data: Any, Bt: Any) -> Any:
    """Multiply a CSR matrix with a tall dense one.

    Parameters
    ----------
    indptr, indices, data : array
        The CSR matrix.
    Bt : array of shape (n_columns, k)
        The dense matrix.

    Returns
    -------
    array of shape (n_rows, k)
        The product.

    Notes
    -----
    Costs 2 nnz k operations; threads take ranges of rows.
    """
    from nonneg.kernels.sparse_products.numba import sparse_times_block

    n_rows, k = len(indptr) - 1, Bt.shape[1]
    Bt = np.ascontiguousarray(Bt)
    out = np.empty((n_rows, k), dtype=Bt.dtype)

    def work(start: int, stop: int) -> None:
        sparse_times_block(indptr, indices, data, Bt, out, start, stop)

    parallel_for(work, n_rows, chunk_size=1, operations=2.0 * len(data) * k)
    return out


def sampled_product(indptr: Any, indices: Any, A: Any, Bt: Any) -> Any:
    """Return the entries of A B' at the stored places of a CSR pattern.

    Parameters
    ----------
    indptr, indices : array
        The pattern.
    A : array of shape (n_rows, k)
        The first factor.
    Bt : array of shape (n_columns, k)
        The second factor, transposed.

    Returns
    -------
    array of shape (nnz,)
        The values, in the order of the pattern.
    """
    from nonneg.kernels.sparse_products.numba import sampled_product_block

    n_rows, k = A.shape
    A, Bt = np.ascontiguousarray(A), np.ascontiguousarray(Bt)
    out = np.empty(len(indices), dtype=A.dtype)

    def work(start: int, stop: int) -> None:
        sampled_product_block(indptr, indices, A, Bt, out, start, stop)

    parallel_for(work, n_rows, chunk_size=1, operations=2.0 * len(indices) * k)
    return out
