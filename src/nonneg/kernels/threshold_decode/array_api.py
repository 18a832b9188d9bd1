"""Decoded weights and their sums: the twin of the compiled kernel."""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array, Namespace


def decoded(values: Array, threshold: Array, rule: str, xp: Namespace) -> Array:
    """Return the weights that the values are decoded to.

    Parameters
    ----------
    values : array of shape (n_rows, n)
        Products with the pseudo-inverse.
    threshold : array of shape (n,)
        What a value must exceed.
    rule : {"unshifted", "shifted", "linear"}
        Whether the values above are kept as they are, less the threshold, or all values are.
    xp : namespace
        Of the values.

    Returns
    -------
    array of shape (n_rows, n)
        Not negative, but for "linear".
    """
    if rule == "linear":
        return values
    kept = values if rule == "unshifted" else values - threshold
    return xp.where(values > threshold, kept, xp.zeros_like(values))


def decode_block(
    values: Array, shares: Array | None, threshold: Array, reference: Array, rule: str, xp: Namespace
) -> tuple[Array, tuple[Any, Any, Any]]:
    """Return weights less a reference beside a column of ones, and sums over the rows.

    Parameters
    ----------
    values : array of shape (n_rows, n)
        Products with the pseudo-inverse.
    shares : array of shape (n_rows,) or None
        How often a row counts in the sums.
    threshold, reference : array of shape (n,)
        What a value must exceed, and what is taken off the weights.
    rule : {"unshifted", "shifted", "linear"}
        See `decoded`.
    xp : namespace
        Of the values.

    Returns
    -------
    left : array of shape (n_rows, n + 1)
        The weights and the ones.
    sums : tuple of three arrays of shape (n,)
        How many values are negative, their squares, and how many are kept.
    """
    weights = decoded(values, threshold, rule, xp) - reference
    left = xp.concat([weights, xp.ones_like(values[:, :1])], axis=1)
    below = values < 0
    kept = values > threshold if rule != "linear" else xp.isfinite(values)
    squares = xp.where(below, values * values, xp.zeros_like(values))
    terms = (xp.astype(below, values.dtype), squares, xp.astype(kept, values.dtype))
    if shares is not None:
        terms = tuple(term * xp.astype(shares, values.dtype)[:, None] for term in terms)
    below_sum, squares_sum, kept_sum = (xp.sum(term, axis=0) for term in terms)
    return left, (below_sum, squares_sum, kept_sum)
