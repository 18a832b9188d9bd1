"""Products of rows with the vector of their cluster, and their sums, in one read of the data (compiled)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray, IntArray
from nonneg.kernels.jit import jit
from nonneg.kernels.row_access import add_row, add_two_rows, row_dot, two_dots

# A cluster is summed in pieces of at least this many rows, and all clusters in about this many pieces: enough
# to keep the threads busy, few enough for their sums to stay small. They fix the order of summation.
MIN_PIECE_ROWS, MAX_PIECES = 64, 64


def is_supported(rows: Any) -> bool:
    """Tell whether rows can be read by compiled code."""
    return rows is not None


def cluster_products(
    rows: Any, labels: Any, vectors: Any, weights: Any, active: Any
) -> tuple[FloatArray, FloatArray]:
    """Multiply each row by the vector of its cluster, and sum the rows of a cluster times these products."""
    # The pieces that are summed depend on the labels alone, not on the threads.
    vectors = np.ascontiguousarray(vectors)
    order, starts, stops, owners = _pieces(labels, active)
    totals = np.zeros((len(owners), vectors.shape[1]), dtype=vectors.dtype)
    products = np.zeros(len(labels), dtype=vectors.dtype)
    given = np.empty(0, dtype=vectors.dtype) if weights is None else weights

    def work(start: int, stop: int) -> None:
        products_block(rows, order, starts, stops, owners, vectors, given, products, totals, start, stop)

    n_entries = rows.size if isinstance(rows, np.ndarray) else len(rows[2])
    parallel_for(work, len(owners), chunk_size=1, operations=4.0 * n_entries)
    return products, _joined(totals, owners, len(active))


def _pieces(labels: Any, active: Any) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return rows in the order of their clusters, cut into pieces of one active cluster each."""
    k = len(active)
    narrow = labels.astype(np.int16) if k < 2**15 else labels  # NumPy sorts short integers in linear time
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(labels[labels >= 0], minlength=k)
    ends = np.cumsum(counts) + (len(labels) - counts.sum())  # rows of no cluster come first
    step = max(MIN_PIECE_ROWS, -(-len(labels) // MAX_PIECES))
    starts, stops, owners = [], [], []
    for cluster in np.flatnonzero(active):
        cuts = np.arange(ends[cluster] - counts[cluster], ends[cluster], step)
        starts.append(cuts)
        stops.append(np.minimum(cuts + step, ends[cluster]))
        owners.append(np.full(len(cuts), cluster))
    nothing = [np.empty(0, dtype=np.int64)]
    cut = [np.concatenate(parts or nothing) for parts in (starts, stops, owners)]
    return order, cut[0], cut[1], cut[2]


def _joined(totals: FloatArray, owners: IntArray, k: int) -> FloatArray:
    sums = np.zeros((k, totals.shape[1]), dtype=totals.dtype)
    for piece, cluster in enumerate(owners):
        sums[cluster] += totals[piece]
    return sums


@jit(error_model="numpy")
def products_block(rows, order, starts, stops, owners, vectors, weights, products, totals, start, stop):
    """Multiply rows by their cluster's vector and sum them up, in place; see `cluster_products`."""
    weighted = weights.shape[0] > 0
    for piece in range(start, stop):
        vector, total = vectors[owners[piece]], totals[piece]
        p = starts[piece]
        while p + 2 <= stops[piece]:
            i, j = order[p], order[p + 1]
            of_i, of_j = two_dots(rows, i, j, vector)
            products[i], products[j] = of_i, of_j
            if weighted:
                of_i, of_j = of_i * weights[i], of_j * weights[j]
            add_two_rows(rows, i, j, of_i, of_j, total)
            p += 2
        if p < stops[piece]:
            i = order[p]
            product = row_dot(rows, i, vector)
            products[i] = product
            add_row(rows, i, product * weights[i] if weighted else product, total)
