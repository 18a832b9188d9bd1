"""Threshold decoding: weights x = phi(A^+ y) of samples y, and their sums with the samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array, to_device, to_float64
from nonneg._compiled import core
from nonneg._threads import BLAS, team_size
from nonneg._typing import Array, FloatArray


class DecodedSums(NamedTuple):
    """Sums over samples with decoded weights, of which a reference is subtracted; NumPy arrays of float64."""

    gram: FloatArray  # of the weights with a column of ones, shape (n + 1, n + 1)
    cross: FloatArray  # their products with the samples, shape (n + 1, m)
    # Number of negative values, the sum of their squares, and number of values kept; sample weights count.
    negative_counts: FloatArray
    negative_squares: FloatArray
    active: FloatArray


RULES = ("unshifted", "shifted", "linear")  # in the order of the core


def decoded_sums(
    X: Array,
    inverse: FloatArray,
    threshold: FloatArray,
    reference: FloatArray,
    rule: str,
    sample_weight: Array | None,
) -> DecodedSums:
    """Decode all samples and return the sums that an update needs: two products with the data.

    Parameters
    ----------
    X : array of shape (n_samples, m)
        Dense samples of any array type.
    inverse : array of shape (n, m)
        The pseudo-inverse A^+.
    threshold, reference : array of shape (n,)
        What a value must exceed, and what is subtracted from the weights to avoid cancellation in the sums.
    rule : {"unshifted", "shifted", "linear"}
        Values above the threshold are kept, or reduced by it, or all values are kept.
    sample_weight : array of shape (n_samples,) or None
        Sample weights.

    Returns
    -------
    DecodedSums
        NumPy arrays of float64; the products are in the dtype of X.
    """
    compiled = core() if is_float_array(X) and X.shape[1] else None
    if compiled is None:
        right, cut, shift = (to_device(vector, X, X.dtype) for vector in (inverse.T, threshold, reference))
        extended, facts = decode_block(X @ right, cut, shift, rule, sample_weight)
        weighted = extended if sample_weight is None else extended * sample_weight[:, None]
        return DecodedSums(*map(to_float64, (extended.T @ weighted, weighted.T @ X, *facts)))
    (n_rows, m), n = X.shape, len(inverse)
    rows, right, cut, shift = (
        np.ascontiguousarray(array, dtype=X.dtype) for array in (X, inverse, threshold, reference)
    )
    weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=X.dtype)
    sizes = [(n + 1) ** 2, (n + 1) * m, n, n, n]
    sums = np.empty(sum(sizes))
    threads = team_size(BLAS * 4.0 * n_rows * m * n)
    compiled.threshold_decode(rows, right, cut, shift, RULES.index(rule), weights, sums, threads)
    gram, cross, *counts = np.split(sums, np.cumsum(sizes[:-1]))
    return DecodedSums(gram.reshape(n + 1, n + 1), cross.reshape(n + 1, m), *counts)


def decoded(values: Array, threshold: Array, rule: str) -> Array:
    """Return the weights that values A^+ y are decoded to."""
    if rule == "linear":
        return values
    xp = array_namespace(values)
    shifted = values if rule == "unshifted" else values - threshold
    return xp.where(values > threshold, shifted, xp.zeros_like(values))


def decode_block(
    values: Array, threshold: Array, reference: Array, rule: str, sample_weight: Array | None
) -> tuple[Array, tuple[Any, Any, Any]]:
    """Return weights minus a reference with a column of ones, and the last three of `DecodedSums`."""
    xp = array_namespace(values)
    weights = decoded(values, threshold, rule) - reference
    extended = xp.concat([weights, xp.ones_like(values[:, :1])], axis=1)
    below = values < 0
    passing = values > threshold if rule != "linear" else xp.isfinite(values)
    squares = xp.where(below, values * values, xp.zeros_like(values))
    terms = (xp.astype(below, values.dtype), squares, xp.astype(passing, values.dtype))
    if sample_weight is not None:
        terms = tuple(term * xp.astype(sample_weight, values.dtype)[:, None] for term in terms)
    counts, squares, active = (xp.sum(term, axis=0) for term in terms)
    return extended, (counts, squares, active)
