"""Threshold decoding: weights x = phi(A^+ y) of samples y, and their sums with the samples."""

from __future__ import annotations

from nonneg._typing import Array, FloatArray
from nonneg.kernels.threshold_decode import array_api
from nonneg.kernels.threshold_decode.sums import DecodedSums


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
    from nonneg.kernels.threshold_decode import numba  # loaded with the first run, not with the package

    implementation = numba if numba.is_supported(X) else array_api
    return implementation.decoded_sums(X, inverse, threshold, reference, rule, sample_weight)
