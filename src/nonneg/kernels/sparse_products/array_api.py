"""Products of sparse matrices on a GPU without Triton: by cuSPARSE, and by gathered rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from nonneg._arrays import serves_tensors

# Entries of a factor that are gathered at a time.
GATHERED = 1 << 25


def _matrix(indptr: Any, indices: Any, data: Any, n_columns: int) -> Any:
    shape = (int(indptr.shape[0]) - 1, n_columns)
    if is_torch_array(data):
        import torch

        return torch.sparse_csr_tensor(indptr, indices.to(indptr.dtype), data, size=shape)
    from cupyx.scipy.sparse import csr_matrix

    return csr_matrix((data, indices, indptr), shape=shape)


def sparse_times(indptr: Any, indices: Any, data: Any, Bt: Any, plan: Any = None) -> Any:
    """Multiply a CSR matrix with a tall dense one; see `kernels.sparse_products.sparse_times`."""
    return _matrix(indptr, indices, data, int(Bt.shape[0])) @ Bt


def sampled_product(indptr: Any, indices: Any, A: Any, Bt: Any, plan: Any = None) -> Any:
    """Return the product at the stored places; see `kernels.sparse_products.sampled_product`."""
    xp = array_namespace(A)
    n_entries = int(indices.shape[0])
    step = max(1, GATHERED // max(1, int(A.shape[1])))
    parts = []
    for first in range(0, n_entries, step):
        last = min(first + step, n_entries)
        rows = rows_of_entries(indptr, first, last)
        left, right = xp.take(A, rows, axis=0), xp.take(Bt, indices[first:last], axis=0)
        parts.append(xp.sum(left * right, axis=1))
    return xp.concat(parts) if parts else A[:0, 0]


@serves_tensors
def rows_of_entries(indptr: Any, first: int, last: int) -> Any:
    """Return the rows of the entries from `first` to `last` of a CSR pattern."""
    if isinstance(indptr, np.ndarray):
        lengths = np.diff(np.clip(indptr, first, last))
        return np.repeat(np.arange(len(lengths), dtype=indptr.dtype), lengths)
    xp = array_namespace(indptr)
    at = xp.arange(first, last, dtype=indptr.dtype, device=indptr.device)
    return xp.astype(xp.searchsorted(indptr, at, side="right") - 1, indptr.dtype)


def row_sums(indptr: Any, values: Any, plan: Any = None) -> Any:
    """Return the sums of rows; see `kernels.sparse_products.row_sums`."""
    xp = array_namespace(values)
    if is_torch_array(values):
        import torch

        lengths = (indptr[1:] - indptr[:-1]).to(torch.int64)
        return torch.segment_reduce(values, "sum", lengths=lengths, initial=0.0)
    columns = xp.zeros(int(values.shape[0]), dtype=xp.int32, device=values.device)
    one = xp.ones((1, 1), dtype=values.dtype, device=values.device)
    return sparse_times(xp.astype(indptr, xp.int32), columns, values, one)[:, 0]
