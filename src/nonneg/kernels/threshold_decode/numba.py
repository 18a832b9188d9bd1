"""Threshold decoding of NumPy arrays, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray
from nonneg.kernels.jit import jit
from nonneg.kernels.threshold_decode.sums import DecodedSums

UNSHIFTED, SHIFTED, LINEAR = 0, 1, 2
RULES = {"unshifted": UNSHIFTED, "shifted": SHIFTED, "linear": LINEAR}
# Entries of a block of rows: a megabyte of float64, so that the second product finds the rows in the cache.
BLOCK_ENTRIES = 1 << 17


def is_supported(X: Any) -> bool:
    """Tell whether the samples are a NumPy array."""
    return isinstance(X, np.ndarray)


@jit(error_model="numpy")
def decode_block(values, shares, threshold, reference, rule, out, negative_counts, negative_squares, active):
    """Write weights minus a reference, and a one, into each row of `out`; add to the other three sums."""
    n_rows, n = values.shape
    for i in range(n_rows):
        row, target, share = values[i], out[i], shares[i]
        for j in range(n):
            value = row[j]
            below = value < 0
            negative_counts[j] += share if below else 0.0
            negative_squares[j] += share * value * value if below else 0.0
            over = value > threshold[j]
            active[j] += share if over or rule == LINEAR else 0.0
            if rule == UNSHIFTED:
                weight = value if over else 0.0
            elif rule == SHIFTED:
                weight = value - threshold[j] if over else 0.0
            else:
                weight = value
            target[j] = weight - reference[j]
        target[n] = 1.0


def decoded_sums(
    X: FloatArray,
    inverse: FloatArray,
    threshold: FloatArray,
    reference: FloatArray,
    rule: str,
    sample_weight: FloatArray | None,
) -> DecodedSums:
    """Return the sums; see `kernels.threshold_decode.decoded_sums`."""
    n_rows, m = X.shape
    n = inverse.shape[0]
    step = max(16, BLOCK_ENTRIES // max(1, m))
    right = np.ascontiguousarray(inverse.T, dtype=X.dtype)
    thresholds, references = (np.asarray(given, dtype=X.dtype) for given in (threshold, reference))

    def work(start: int, stop: int) -> DecodedSums:
        weights = None if sample_weight is None else sample_weight[start:stop]
        return _range_sums(X[start:stop], right, thresholds, references, RULES[rule], weights, step)

    # The 4 n m operations per row are counted as a fifth: BLAS does more per second than compiled loops.
    parts = parallel_for(work, n_rows, chunk_size=step, operations=0.8 * n_rows * m * n)
    return DecodedSums(*(sum(fields[1:], fields[0]) for fields in zip(*parts, strict=True)))


def _range_sums(
    rows: FloatArray,
    right: FloatArray,
    threshold: FloatArray,
    reference: FloatArray,
    rule: int,
    weights: FloatArray | None,
    step: int,
) -> DecodedSums:
    m, n = right.shape
    values = np.empty((step, n), dtype=rows.dtype)
    extended = np.empty((step, n + 1), dtype=rows.dtype)
    product = np.empty((n + 1, m), dtype=rows.dtype)
    cross = np.zeros((n + 1, m))
    gram = np.zeros((n + 1, n + 1))
    counts, squares, active = np.zeros(n), np.zeros(n), np.zeros(n)
    shares = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        size = len(block)
        np.matmul(block, right, out=values[:size])
        own, share = extended[:size], shares[start : start + size]
        decode_block(values[:size], share, threshold, reference, rule, own, counts, squares, active)
        weighted = own if weights is None else own * weights[start : start + size, None]
        np.matmul(weighted.T, block, out=product)
        cross += product
        gram += weighted.T @ own
    return DecodedSums(gram, cross, counts, squares, active)
