"""Sums over nonzeros from sampled products and products with sparse matrices, in any namespace."""

from __future__ import annotations

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from nonneg._arrays import serves_tensors
from nonneg._typing import Array
from nonneg.kernels.sparse_products import row_sums, rows_of_entries, sampled_product, sparse_times


class RatioSums(NamedTuple):
    """Sums over the nonzeros of every row; see `kernels.nonzeros.ratio_sums`."""

    product: Any
    second: Any
    trace: Any
    logs: Any


def ratio_sums(
    csr: Any, A: Array, Bt: Array, lower_bound: float, weights: Array, product: bool, second: bool, logs: bool
) -> RatioSums:
    """Return the sums; see `kernels.nonzeros.ratio_sums`."""
    xp = array_namespace(A)
    places, x = (csr.indptr, csr.indices), csr.data
    v = xp.maximum(sampled_product(*places, A, Bt), lower_bound)
    ratio = x / v
    logged = first = curvatures = trace = None
    if logs:
        safe = xp.where(x > 0, ratio, xp.ones_like(ratio))
        terms = xp.astype(x, xp.float64) * (xp.log(xp.astype(safe, xp.float64)) - 1.0)
        if weights is not None:
            terms = terms * xp.take(weights, csr.indices)
        logged = row_sums(csr.indptr, terms)
    if weights is not None:
        ratio = ratio * xp.take(weights, csr.indices)
    if product:
        first = sparse_times(*places, ratio, Bt)
    if second:
        ratio = ratio / v
        curvatures, trace = sparse_times(*places, ratio, Bt * Bt), row_sums(csr.indptr, ratio)
    return RatioSums(first, curvatures, trace, logged)


def line_search(
    csr: Any,
    A: Array,
    direction: Array,
    Bt: Array,
    lower_bound: float,
    linear: Array,
    quadratic: Array,
    slopes: Array,
    tries: int,
) -> Any:
    """Choose a step for every row; see `kernels.nonzeros.line_search`."""
    # As in `kernels.beta_products.line_search`, where the divergence is convex.
    xp = array_namespace(A)
    indptr, x = csr.indptr, csr.data
    v = xp.maximum(sampled_product(indptr, csr.indices, A, Bt), lower_bound)
    d = sampled_product(indptr, csr.indices, direction, Bt)
    rows = rows_of_entries(indptr, 0, int(x.shape[0]))
    down = -xp.astype(slopes, xp.float64)
    one = xp.ones_like(down)
    accepted = down <= 0
    steps = xp.where(accepted, 0 * one, one)
    for _ in range(tries):
        ahead = xp.maximum(v + xp.take(xp.astype(steps, v.dtype), rows) * d, lower_bound)
        up = linear + quadratic * steps - row_sums(indptr, xp.astype(x * d / ahead, xp.float64))
        longer = xp.logical_or(accepted, up <= 0)
        steps = xp.where(longer, steps, steps * down / xp.where(longer, one, down + up))
        accepted = xp.logical_or(longer, up <= 2 * down)
        if bool(xp.all(accepted)):
            break
    return xp.astype(xp.where(accepted, steps, 0 * one), A.dtype)


@serves_tensors
def row_hessians(indptr: Array, indices: Array, curvatures: Any, Bt: Array) -> Any:
    """Return the matrices of all rows; see `kernels.nonzeros.row_hessians`."""
    xp = array_namespace(Bt)
    k = Bt.shape[1]
    if curvatures is None:
        curvatures = xp.ones(indices.shape[0], dtype=Bt.dtype, device=Bt.device)
    # One row of the matrices at a time: products of pairs would be k times as large as the factor.
    parts = [sparse_times(indptr, indices, curvatures, Bt * Bt[:, a : a + 1]) for a in range(k)]
    return xp.stack(parts, axis=1)
