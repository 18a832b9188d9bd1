"""Products of a sparse matrix in rows with a tall dense one (compiled)."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit


@jit(fastmath={"contract", "nsz"}, error_model="numpy")
def sparse_times_block(indptr, indices, data, Bt, out, start, stop):
    """Write rows `start` to `stop` of the product into `out`; see `kernels.sparse_products.sparse_times`."""
    k = Bt.shape[1]
    total = np.empty(k, dtype=out.dtype)
    for i in range(start, stop):
        for a in range(k):
            total[a] = 0
        begin, end = indptr[i], indptr[i + 1]
        whole = begin + (end - begin) // 4 * 4
        # Four entries at a time: the accumulator is read and written a quarter as often.
        for p in range(begin, whole, 4):
            j0, j1, j2, j3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
            x0, x1, x2, x3 = data[p], data[p + 1], data[p + 2], data[p + 3]
            for a in range(k):
                total[a] += x0 * Bt[j0, a] + x1 * Bt[j1, a] + (x2 * Bt[j2, a] + x3 * Bt[j3, a])
        for p in range(whole, end):
            j0 = indices[p]
            x0 = data[p]
            for a in range(k):
                total[a] += x0 * Bt[j0, a]
        for a in range(k):
            out[i, a] = total[a]


@jit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def sampled_product_block(indptr, indices, A, Bt, out, start, stop):
    """Write (A B')[i, j] for the stored entries; see `kernels.sparse_products.sampled_product`."""
    k = Bt.shape[1]
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            total = out.dtype.type(0.0)
            for a in range(k):
                total += A[i, a] * Bt[j, a]
            out[p] = total
