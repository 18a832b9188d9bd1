"""Euclidean projections: rows onto the probability simplex, self-dictionaries onto Gillis and Luce's set."""

from __future__ import annotations

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels.dominating_diagonal import dominating_diagonal


def onto_simplex(rows: Array, total: float = 1.0) -> Array:
    """Return the nearest points with nonnegative entries that sum to a total."""
    # By sorting, O(k log k) per row.
    # Held, Wolfe & Crowder (1974), Mathematical Programming 6.
    xp = array_namespace(rows)
    k = rows.shape[1]
    falling = xp.sort(rows, axis=1, descending=True)
    count = xp.astype(xp.arange(1, k + 1, device=rows.device), rows.dtype)
    above = (xp.cumulative_sum(falling, axis=1) - total) / count
    # The largest support for which its smallest entry stays above the level it requires.
    supported = xp.sum(xp.astype(falling > above, xp.int64), axis=1)
    supported = xp.clip(supported, min=1)
    position = xp.arange(1, k + 1, device=rows.device)
    chosen = xp.astype(position[None, :] == supported[:, None], rows.dtype)
    level = xp.sum(above * chosen, axis=1, keepdims=True)
    return xp.clip(rows - level, min=0.0)


def onto_dominating_diagonal(coefficients: Array, weights: Array, *, out: Array | None = None) -> Array:
    """Return the nearest matrix of Gillis and Luce's set."""
    # The set holds the matrices C >= 0 whose diagonal is at most 1 and bounds the rows, ``w_i c_ij <= w_j
    # c_ii``. Rows are independent.
    # A few passes over the rows, see `kernels.dominating_diagonal`. A row of weight zero is only cut to be
    # nonnegative with a diagonal of at most 1.
    # Gillis & Luce (2018), IEEE Trans. Image Process. 27(1), section III.
    return dominating_diagonal(coefficients, weights, out=out)
