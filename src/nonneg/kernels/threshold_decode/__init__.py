"""Threshold decoding: weights x = phi(A^+ y) of samples y, and their sums with the samples."""

from __future__ import annotations

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import BLAS, team_size
from nonneg._typing import Array, FloatArray
from nonneg.kernels.threshold_decode import array_api
from nonneg.kernels.threshold_decode.sums import DecodedSums

RULES = ("unshifted", "shifted", "linear")
"""In the order of the core."""


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
        return array_api.decoded_sums(X, inverse, threshold, reference, rule, sample_weight)
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
