"""Successive nonnegative projections (SNPA): residuals outside the hull of the anchors and the origin."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.greedy import GreedyRule, accurate_squares, select_greedily
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import TIE_TOL


def snpa(data: DataMatrix, n_components: int, *, tie_tol: float = TIE_TOL) -> SelectionResult:
    """Select the samples farthest from the convex hull of the anchors so far and the origin."""
    # One pass over the data per anchor, one product with a vector; then the weights of every sample,
    # nonnegative with a sum of at most one, are solved for exactly in Gram form (the origin is one more
    # vertex of a simplex). Gillis (2014), SIAM J. Imaging Sciences 7(2), Algorithm SNPA.
    anchors: list[Array] = []

    def shared(row: Array, n_picks: int) -> dict[str, Any]:
        xp = array_namespace(row)
        anchors.append(xp.astype(row, xp.float64))
        return {"vertices": xp.stack(anchors, axis=0), "tie_tol": tie_tol}

    rule = GreedyRule(begin=_begin, advance=_advance, shared=shared, n_kept=4, tie_tol=tie_tol)
    return select_greedily(data, n_components, rule, method="snpa")


def _begin(block: LocalMatrix) -> tuple[tuple[Array, ...], Array]:
    # Kept: squared residual, squared norm, products with the anchors, weights of the origin and the anchors.
    xp = block.xp
    squares = block.row_powers(2.0)
    origin = xp.ones((block.shape[0], 1), dtype=block.dtype, device=squares.device)
    products = xp.zeros((block.shape[0], 1), dtype=block.dtype, device=squares.device)
    return (squares[:, None], squares[:, None], products, origin), squares


def _advance(
    block: LocalMatrix,
    residual: Array,
    original: Array,
    products: Array,
    weights: Array,
    *,
    vertices: Array,
    tie_tol: float,
) -> tuple[tuple[Array, ...], Array]:
    xp = block.xp
    k = vertices.shape[0]
    new = block.times(xp.astype(vertices[k - 1 :, :], block.dtype).T)
    products = xp.concat([products, new], axis=1)
    zero = xp.zeros((1, vertices.shape[1]), dtype=xp.float64, device=vertices.device)
    hull = xp.concat([zero, vertices], axis=0)
    gram = hull @ hull.T
    # The new vertex joins the initial support where its product is positive.
    guess = xp.concat([weights, xp.astype(new > 0, weights.dtype)], axis=1)
    weights = simplex_least_squares(gram, products, start=guess)
    wide, cross = xp.astype(weights, xp.float64), xp.astype(products, xp.float64)
    squares = original[:, 0] - 2.0 * xp.sum(wide * cross, axis=1) + xp.sum((wide @ gram) * wide, axis=1)

    def squares_of(rows: Array) -> Array:
        # In float32 the weights are as inaccurate as the products: solved again for the few rows in doubt.
        rows = rows - simplex_least_squares(gram, rows @ hull.T) @ hull
        return xp.sum(rows * rows, axis=1)

    squares = accurate_squares(block, xp.clip(squares, min=0.0), original[:, 0], tie_tol, squares_of)
    return (squares[:, None], original, products, weights), squares
