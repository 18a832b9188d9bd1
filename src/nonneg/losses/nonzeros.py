"""The Kullback-Leibler divergence of sparse data: W H is needed at the nonzeros only.

Elsewhere the divergence is the model itself, whose sum is a product of column sums, restricted to the
observed entries where some are missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray
from nonneg.kernels.sparse_products import sampled_product, sparse_times


def sums_for_W(block: Any, Ht: FloatArray) -> FloatArray:
    """Return the sum of the rows of Ht over the observed columns of every row."""
    total = Ht.sum(axis=0)
    if block.observed is None:
        return total
    part = block.observed.listed.astype(Ht.dtype) @ Ht
    return part if block.observed.lists_observed else np.maximum(total - part, 0)


def sums_for_H(block: Any, W: FloatArray) -> FloatArray:
    """Return the weighted sum of the rows of W over the observed rows of every column."""
    weighted = block.weighted(W)
    total = weighted.sum(axis=0)
    if block.observed is None:
        return total
    part = block.observed.listed.T.astype(W.dtype) @ weighted
    return part if block.observed.lists_observed else np.maximum(total - part, 0)


def _divergence(block: Any, W: FloatArray, sums: FloatArray, ratio: FloatArray) -> float:
    # Sum of x log(x / v) - x over the nonzeros, and of v over all entries.
    safe = np.maximum(ratio, np.finfo(ratio.dtype).tiny)
    terms = block.csr.data * (np.log(safe, dtype=np.float64) - 1.0)
    rows = np.einsum("ij,ij->i", W, np.broadcast_to(sums, W.shape), dtype=np.float64)
    if block.weights is None:
        return float(terms.sum() + rows.sum())
    return float(terms @ np.repeat(block.weights, np.diff(block.csr.indptr)) + rows @ block.weights)


def _ratio(csr: Any, A: FloatArray, Bt: FloatArray, lower_bound: float) -> FloatArray:
    model = sampled_product(csr.indptr, csr.indices, A, Bt)
    return csr.data / np.maximum(model, model.dtype.type(lower_bound))


def divergence(block: Any, W: FloatArray, Ht: FloatArray, lower_bound: float) -> float:
    """Return the weighted divergence over the observed entries."""
    return _divergence(block, W, sums_for_W(block, Ht), _ratio(block.csr, W, Ht, lower_bound))


def terms_of_W(
    block: Any, W: FloatArray, Ht: FloatArray, lower_bound: float, *, want_loss: bool
) -> tuple[Array, Array, float]:
    """Return the terms of the gradient with respect to W; see `losses.beta.Terms`."""
    csr = block.csr
    ratio, sums = _ratio(csr, W, Ht, lower_bound), sums_for_W(block, Ht)
    loss = _divergence(block, W, sums, ratio) if want_loss else 0.0
    return sparse_times(csr.indptr, csr.indices, ratio, Ht), sums, loss


def terms_of_H(
    block: Any, W: FloatArray, Ht: FloatArray, lower_bound: float, *, want_loss: bool
) -> tuple[Array, Array, float]:
    """Return the terms of the gradient with respect to Ht; see `losses.beta.Terms`."""
    turned = block.transposed
    ratio = _ratio(turned, Ht, W, lower_bound)
    loss = divergence(block, W, Ht, lower_bound) if want_loss else 0.0
    product = sparse_times(turned.indptr, turned.indices, ratio, block.weighted(W))
    return product, sums_for_H(block, W), loss
