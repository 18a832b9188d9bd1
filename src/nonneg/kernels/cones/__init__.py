"""Front doors of the compiled kernels for clusters of directions.

They read rows in the memory of the host, dense or sparse (`LocalMatrix.raw_rows`); for all others
`kernels.portable.cones` makes the same of products with all centroids.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, numpy_view, tensor_view
from nonneg._threads import parallel_for
from nonneg._typing import FloatArray, IntArray

# A cluster is summed in pieces of at least so many rows, and in at most so many pieces beside one a cluster.
PIECE_ROWS, PIECES = 64, 64
# Guesses at the nearest centroid: so many a row, from one run of columns in so many, tried on some rows
# first, and not worth their while for fewer columns or centroids.
TRIES, RUN, ONE_RUN_IN = 4, 8, 10
SAMPLE_ROWS, FEWEST_COLUMNS, FEWEST_CENTROIDS = 256, 400, 8


def compare_rows(
    rows: Any, inverse_norms: Any, centroids: Any, nearest: Any, seen: Any, *, rates: Any = None, shift: float
) -> tuple[Any, Any]:
    """Compare rows with centroids until it is certain which row gains most."""
    # A cosine that lacks some centroids is a lower bound, so that its gain is an upper one, and a row whose
    # upper bound is below a gain that was reached need not be looked at. Each row meets each centroid at most
    # once, whatever the number of calls; which ones are put off depends on the number of threads, the winner
    # does not.
    if is_cpu_tensor(nearest):
        given = [numpy_view(array) for array in (inverse_norms, centroids, nearest, seen)]
        found = compare_rows(rows, *given, rates=None if rates is None else numpy_view(rates), shift=shift)
        return tensor_view(found[0]), tensor_view(found[1])
    from nonneg.kernels.cones.numba import farthest_block

    nearest, seen = nearest.copy(), seen.copy()
    centroids = np.ascontiguousarray(centroids)
    n_rows = len(nearest)
    rates = np.empty((0, 1)) if rates is None else np.asarray(rates, dtype=np.float64)

    def work(start: int, stop: int) -> None:
        farthest_block(rows, inverse_norms, centroids, nearest, seen, rates, float(shift), start, stop)

    parallel_for(work, n_rows, chunk_size=64, operations=2.0 * _size(rows))
    return nearest, seen


def settled_centroids(
    rows: FloatArray, inverse_norms: FloatArray, centroids: FloatArray
) -> tuple[IntArray, FloatArray] | None:
    """Return the nearest centroids where they are certain without a product with all of them."""
    # A tenth of the columns, those in which the centroids differ most, says which centroids a row is probably
    # near to. If its angle to one of them is less than half of that one's angle to every other centroid, no
    # other can be nearer (the triangle inequality for angles), and the row is settled. A few rows show first
    # whether that settles most of them.
    if len(centroids) < FEWEST_CENTROIDS or rows.shape[1] < FEWEST_COLUMNS or len(rows) < 4 * SAMPLE_ROWS:
        return None
    from nonneg.kernels.cones.numba import settle_block

    centroids = np.ascontiguousarray(centroids)
    columns = _telling_columns(centroids)
    some = np.ascontiguousarray(centroids[:, columns].T)
    lengths = 0.5 * np.sum(some * some, axis=0)
    enough = _excluding_cosines(centroids)
    labels, cosines = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=rows.dtype)

    def settle(start: int, stop: int) -> None:
        # By the distances of what the tenth shows of the directions.
        scores = (np.take(rows[start:stop], columns, axis=1) @ some) * inverse_norms[start:stop] - lengths
        settle_block(rows, inverse_norms, centroids, scores, enough, TRIES, labels, cosines, start, stop)

    settle(0, SAMPLE_ROWS)
    if np.mean(labels[:SAMPLE_ROWS] >= 0) < 0.5:
        return None
    parallel_for(
        lambda start, stop: settle(start + SAMPLE_ROWS, stop + SAMPLE_ROWS),
        len(rows) - SAMPLE_ROWS,
        chunk_size=64,
        operations=3.0 * rows.size,
    )
    return labels, cosines


def _excluding_cosines(centroids: FloatArray) -> FloatArray:
    """Return, for each centroid, the cosine above which a row is nearer to it than to any other."""
    between = centroids @ centroids.T
    np.fill_diagonal(between, -1.0)
    half = 0.5 * np.arccos(np.clip(between.max(axis=1), -1.0, 1.0))
    # Cosines carry rounding errors of the order of `margin` squared; an angle near zero one of its root.
    margin = 8.0 * float(np.finfo(centroids.dtype).eps) ** 0.5
    return np.where(half > 2.0 * margin, np.cos(half - margin), 2.0).astype(centroids.dtype)


def _telling_columns(centroids: FloatArray) -> IntArray:
    """Return the tenth of the columns in which the centroids differ most, in runs as long as a cache line."""
    n_runs = centroids.shape[1] // RUN
    spread = np.var(centroids[:, : n_runs * RUN], axis=0).reshape(n_runs, RUN).sum(axis=1)
    runs = np.sort(np.argsort(spread)[-max(1, n_runs // ONE_RUN_IN) :])
    return (runs[:, None] * RUN + np.arange(RUN)).ravel()


def own_products(
    rows: Any, labels: Any, vectors: Any, weights: Any, active: Any
) -> tuple[FloatArray, FloatArray]:
    """Multiply each row by the vector of its cluster, and sum the rows of a cluster times these products."""
    # One read of the data. The pieces that are summed depend on the labels alone, not on the threads.
    from nonneg.kernels.cones.numba import own_products_block

    vectors = np.ascontiguousarray(vectors)
    order, starts, stops, owners = _pieces(labels, active)
    totals = np.zeros((len(owners), vectors.shape[1]), dtype=vectors.dtype)
    products = np.zeros(len(labels), dtype=vectors.dtype)
    given = np.empty(0, dtype=vectors.dtype) if weights is None else weights

    def work(start: int, stop: int) -> None:
        own_products_block(rows, order, starts, stops, owners, vectors, given, products, totals, start, stop)

    parallel_for(work, len(owners), chunk_size=1, operations=4.0 * _size(rows))
    return products, _joined(totals, owners, len(active))


def _size(rows: Any) -> float:
    return float(rows.size if isinstance(rows, np.ndarray) else len(rows[2]))


def _pieces(labels: Any, active: Any) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return rows in the order of their clusters, cut into pieces of one active cluster each."""
    k = len(active)
    narrow = labels.astype(np.int16) if k < 2**15 else labels  # NumPy sorts short integers in linear time
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(labels[labels >= 0], minlength=k)
    ends = np.cumsum(counts) + (len(labels) - counts.sum())  # rows of no cluster come first
    step = max(PIECE_ROWS, -(-len(labels) // PIECES))
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
