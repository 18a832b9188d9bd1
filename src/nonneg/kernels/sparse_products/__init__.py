"""Products of a CSR matrix with tall dense factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for


def sparse_times(indptr: Any, indices: Any, data: Any, right: Any) -> Any:
    """Multiply a CSR matrix with a tall dense one.

    Parameters
    ----------
    indptr, indices, data : array
        The CSR matrix.
    right : array of shape (n_columns, k)
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

    n_rows, k = len(indptr) - 1, right.shape[1]
    right = np.ascontiguousarray(right)
    out = np.empty((n_rows, k), dtype=right.dtype)

    def work(start: int, stop: int) -> None:
        sparse_times_block(indptr, indices, data, right, out, start, stop)

    parallel_for(work, n_rows, chunk_size=1, operations=2.0 * len(data) * k)
    return out


def sampled_product(indptr: Any, indices: Any, left: Any, right: Any) -> Any:
    """Return the entries of left right' at the stored places of a CSR pattern.

    Parameters
    ----------
    indptr, indices : array
        The pattern.
    left : array of shape (n_rows, k)
        The left factor.
    right : array of shape (n_columns, k)
        The right factor.

    Returns
    -------
    array of shape (nnz,)
        The values, in the order of the pattern.
    """
    from nonneg.kernels.sparse_products.numba import sampled_product_block

    n_rows, k = left.shape
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    out = np.empty(len(indices), dtype=left.dtype)

    def work(start: int, stop: int) -> None:
        sampled_product_block(indptr, indices, left, right, out, start, stop)

    parallel_for(work, n_rows, chunk_size=1, operations=2.0 * len(indices) * k)
    return out
