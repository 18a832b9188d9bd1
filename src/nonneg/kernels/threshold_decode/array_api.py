"""Threshold decoding for arrays of any namespace."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_float64
from nonneg._typing import Array, FloatArray
from nonneg.kernels.threshold_decode.sums import DecodedSums


def decoded(values: Array, threshold: Array, rule: str) -> Array:
    """Return the weights that values A^+ y are decoded to."""
    if rule == "linear":
        return values
    xp = array_namespace(values)
    kept = values if rule == "unshifted" else values - threshold
    return xp.where(values > threshold, kept, xp.zeros_like(values))


def decode_block(
    values: Array, threshold: Array, reference: Array, rule: str, sample_weight: Array | None
) -> tuple[Array, tuple[Any, Any, Any]]:
    """Return weights minus a reference with a column of ones, and the last three of `DecodedSums`."""
    xp = array_namespace(values)
    weights = decoded(values, threshold, rule) - reference
    extended = xp.concat([weights, xp.ones_like(values[:, :1])], axis=1)
    below = values < 0
    kept = values > threshold if rule != "linear" else xp.isfinite(values)
    squares = xp.where(below, values * values, xp.zeros_like(values))
    terms = (xp.astype(below, values.dtype), squares, xp.astype(kept, values.dtype))
    if sample_weight is not None:
        terms = tuple(term * xp.astype(sample_weight, values.dtype)[:, None] for term in terms)
    counts, squares, active = (xp.sum(term, axis=0) for term in terms)
    return extended, (counts, squares, active)


def decoded_sums(
    X: Array,
    inverse: FloatArray,
    threshold: FloatArray,
    reference: FloatArray,
    rule: str,
    sample_weight: Array | None,
) -> DecodedSums:
    """Return the sums; see `kernels.threshold_decode.decoded_sums`."""
    right, cut, shift = (to_device(given, X, X.dtype) for given in (inverse.T, threshold, reference))
    extended, counts = decode_block(X @ right, cut, shift, rule, sample_weight)
    weighted = extended if sample_weight is None else extended * sample_weight[:, None]
    sums = (extended.T @ weighted, weighted.T @ X, *counts)
    return DecodedSums(*(to_float64(array) for array in sums))
