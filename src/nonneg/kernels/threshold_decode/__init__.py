"""Products of decoded weights with the data, block by block, so that the weights stay in the cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray
from nonneg.kernels.threshold_decode.array_api import decoded as decoded

RULES = {"unshifted": 0, "shifted": 1, "linear": 2}
# Entries of a block of rows: about a megabyte, so that the second product finds the rows in the cache.
BLOCK_ENTRIES = 1 << 17


class DecodedSums(NamedTuple):
    """Sums over rows x with decoded weights w, less a reference."""

    gram: FloatArray  # of the weights with a column of ones beside them, float64
    cross: FloatArray  # their products with the rows, float64
    # How many values are negative, their squares, and how many are kept; row weights count.
    negative_counts: FloatArray
    negative_squares: FloatArray
    active: FloatArray


def decoded_sums(
    rows: FloatArray,
    inverse: FloatArray,
    threshold: FloatArray,
    reference: FloatArray,
    rule: str,
    weights: FloatArray | None,
) -> DecodedSums:
    """Decode all rows and return the sums that an update needs: two products with the data.

    Parameters
    ----------
    rows : array of shape (n_rows, m)
        The data, a NumPy array.
    inverse : array of shape (n, m)
        The pseudo-inverse.
    threshold, reference : array of shape (n,)
        What a value must exceed, and what is taken off the weights so that sums do not cancel.
    rule : {"unshifted", "shifted", "linear"}
        How values are decoded.
    weights : array of shape (n_rows,) or None
        Weights of the rows.

    Returns
    -------
    DecodedSums
        Accumulated in float64 over blocks of the dtype of the data.
    """
    n_rows, m = rows.shape
    n = inverse.shape[0]
    step = max(16, BLOCK_ENTRIES // max(1, m))
    right = np.ascontiguousarray(inverse.T, dtype=rows.dtype)
    thresholds, references = (np.asarray(given, dtype=rows.dtype) for given in (threshold, reference))

    def work(start: int, stop: int) -> DecodedSums:
        return _range_sums(
            rows[start:stop],
            right,
            thresholds,
            references,
            RULES[rule],
            None if weights is None else weights[start:stop],
            step,
        )

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
    from nonneg.kernels.threshold_decode.numba import decode_block

    m, n = right.shape
    values = np.empty((step, n), dtype=rows.dtype)
    left = np.empty((step, n + 1), dtype=rows.dtype)
    product = np.empty((n + 1, m), dtype=rows.dtype)
    cross = np.zeros((n + 1, m))
    gram = np.zeros((n + 1, n + 1))
    counts, squares, active = np.zeros(n), np.zeros(n), np.zeros(n)
    shares = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        size = len(block)
        np.matmul(block, right, out=values[:size])
        own, share = left[:size], shares[start : start + size]
        decode_block(values[:size], share, threshold, reference, rule, own, counts, squares, active)
        weighted = own if weights is None else own * weights[start : start + size, None]
        np.matmul(weighted.T, block, out=product)
        cross += product
        gram += weighted.T @ own
    return DecodedSums(gram, cross, counts, squares, active)
