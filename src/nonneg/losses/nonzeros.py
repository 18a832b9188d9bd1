"""The Kullback-Leibler divergence of sparse data: W H is needed at the nonzeros only.

Elsewhere the divergence is the model itself, whose sum is a product of column sums, restricted to the
observed entries where some are missing.
"""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array
from nonneg.kernels.nonzeros import ratio_sums


def sums_for_W(block: Any, Ht: Array) -> Array:
    """Return the sum of the rows of Ht over the observed columns of every row."""
    return block.xp.sum(Ht, axis=0) if block.observed is None else block.observed.row_sums(Ht)


def sums_for_H(block: Any, W: Array) -> Array:
    """Return the weighted sum of the rows of W over the observed rows of every column."""
    weighted = block.weighted(W)
    return block.xp.sum(weighted, axis=0) if block.observed is None else block.observed.column_sums(weighted)


def _divergence(block: Any, W: Array, sums: Array, logs: Array) -> Any:
    # Sum of x log(x / v) - x over the nonzeros, and of v over all entries.
    xp = block.xp
    rows = logs + xp.sum(xp.astype(W, xp.float64) * xp.astype(sums, xp.float64), axis=1)
    return xp.sum(rows if block.weights is None else rows * xp.astype(block.weights, xp.float64))


def divergence(block: Any, W: Array, Ht: Array, lower_bound: float) -> float:
    """Return the weighted divergence over the observed entries."""
    found = ratio_sums(block.csr, W, Ht, lower_bound, product=False, logs=True)
    return float(_divergence(block, W, sums_for_W(block, Ht), found.logs))


def terms_of_W(
    block: Any, W: Array, Ht: Array, lower_bound: float, *, want_loss: bool
) -> tuple[Array, Array, float]:
    """Return the terms of the gradient with respect to W; see `losses.beta.Terms`."""
    found = ratio_sums(block.csr, W, Ht, lower_bound, logs=want_loss)
    sums = sums_for_W(block, Ht)
    return found.product, sums, float(_divergence(block, W, sums, found.logs)) if want_loss else 0.0


def terms_of_H(block: Any, W: Array, Ht: Array, lower_bound: float) -> tuple[Array, Array]:
    """Return the terms of the gradient with respect to Ht; see `losses.beta.Terms`."""
    found = ratio_sums(block.transposed, Ht, W, lower_bound, weights=block.weights)
    return found.product, sums_for_H(block, W)


def column_losses(block: Any, W: Array, Ht: Array, logs: Array) -> Array:
    """Return the weighted divergence of every column, from the sums of logarithms of the columns."""
    xp = block.xp
    sums = xp.astype(sums_for_H(block, W), xp.float64)
    return logs + xp.sum(xp.astype(Ht, xp.float64) * sums, axis=1)
