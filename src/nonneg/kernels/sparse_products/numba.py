"""Entries of a product of two factors at the places of a sparse pattern (compiled)."""

from __future__ import annotations

from nonneg.kernels.jit import jit


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
