"""Products of every row with the vector of its cluster, and the weighted sums of the rows of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import numpy_view
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.kernels.rows import core_rows

# A cluster is summed in pieces of at least this many rows, and all clusters in about this many pieces: enough
# to keep the threads busy, few enough for their sums to stay small. They fix the order of summation.
MIN_PIECE_ROWS, MAX_PIECES = 64, 64


def cluster_products(block: Any, labels: Any, vectors: FloatArray, active: Array) -> tuple[Any, Any]:
    """Return x'v_c for every row x of cluster c, and X_c' diag(weights) X_c v_c for every cluster.

    Parameters
    ----------
    block : LocalMatrix
        The rows, and their weights.
    labels : array of int of shape (n_rows, 1)
        The clusters; negative for none.
    vectors : array of float64 of shape (k, n_columns)
        One per cluster.
    active : array of bool of shape (k,)
        The clusters whose results are needed; those of others may be zeros.

    Returns
    -------
    products : array of shape (n_rows, 1)
        0 for rows of no cluster.
    sums : array of shape (k, n_columns)
        In the precision of the data.
    """
    rows = core_rows(block)
    if rows is None:
        # The products and sums of all clusters, from products of all rows with all vectors.
        entries = one_hot(labels, block.times(block.to_device(vectors.T)), len(vectors))
        return block.xp.sum(entries, axis=1, keepdims=True), block.transposed_times(entries).T
    dtype = rows[-1].dtype
    weights = None if block.weights is None else np.ascontiguousarray(numpy_view(block.weights), dtype=dtype)
    own = np.ascontiguousarray(vectors, dtype=dtype)
    order, pieces = _pieces(numpy_view(labels)[:, 0], active)
    products = np.zeros(len(order), dtype=dtype)
    totals = np.zeros((pieces.shape[1], own.shape[1]), dtype=dtype)
    threads = team_size(4.0 * rows[-1].size)
    core().cluster_products(*rows, order, pieces, own, weights, products, totals, threads)
    sums = np.zeros(own.shape, dtype=dtype)
    for total, cluster in zip(totals, pieces[2], strict=True):
        sums[cluster] += total
    return block.to_device(products[:, None]), sums


def _pieces(labels: IntArray, active: Array) -> tuple[IntArray, IntArray]:
    """Return rows in the order of their clusters, and starts, stops and clusters of pieces of active ones."""
    k = len(active)
    narrow = labels.astype(np.int16) if k < 2**15 else labels  # NumPy sorts short integers in linear time
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(labels[labels >= 0], minlength=k)
    starts = np.cumsum(counts) - counts + (len(labels) - counts.sum())  # rows of no cluster come first
    step = max(MIN_PIECE_ROWS, -(-len(labels) // MAX_PIECES))
    clusters = np.repeat(np.arange(k), np.where(active, -(-counts // step), 0))
    begins = starts[clusters] + step * (np.arange(len(clusters)) - np.searchsorted(clusters, clusters))
    return order, np.stack([begins, np.minimum(begins + step, (starts + counts)[clusters]), clusters])


def one_hot(labels: Any, entries: Any, k: int) -> Any:
    """Return (n_rows, k) with the entry of every row in the column of its cluster, and zeros elsewhere."""
    # `labels` (n_rows, 1) are negative for none; `entries` have a column per cluster, or one for all.
    xp = array_namespace(entries)
    numbers = xp.arange(k, dtype=labels.dtype, device=entries.device)
    zero = xp.zeros((1, 1), dtype=entries.dtype, device=entries.device)
    return xp.where(labels == numbers[None, :], entries, zero)
