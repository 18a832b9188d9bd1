"""Largest cosines to centroids, with as few products as their bounds allow (compiled)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, numpy_view, tensor_view
from nonneg._threads import parallel_for
from nonneg._typing import FloatArray, IntArray
from nonneg.kernels.jit import jit, part
from nonneg.kernels.row_access import row_dot

# The constants below change the speed alone, no result.
# How often the row of the largest upper bound is looked at before all rows are compared with the best so far.
PROBES = 8
# Guesses at the nearest centroid: this many per row, from one run of columns in ten, each as long as a cache
# line. They are tried on some rows first, and do not pay with few columns or centroids.
GUESSES, RUN, ONE_RUN_IN = 4, 8, 10
SAMPLE_ROWS, MIN_COLUMNS, MIN_CENTROIDS = 256, 400, 8


def is_supported(rows: Any) -> bool:
    """Tell whether rows can be read by compiled code."""
    return rows is not None


def can_prune(rows: Any, inverse_norms: Any, centroids: Any) -> bool:
    """Tell whether bounds may save products with the centroids: dense rows, many columns and centroids."""
    return (
        isinstance(rows, np.ndarray)
        and isinstance(inverse_norms, np.ndarray)
        and len(centroids) >= MIN_CENTROIDS
        and rows.shape[1] >= MIN_COLUMNS
        and len(rows) >= 4 * SAMPLE_ROWS
    )


def update_cosines(
    rows: Any,
    inverse_norms: Any,
    centroids: Any,
    nearest: Any,
    n_compared: Any,
    *,
    rates: Any = None,
    shift: float,
) -> tuple[Any, Any]:
    """Raise the largest cosines until the row of the largest gain is certain."""
    if is_cpu_tensor(nearest):
        given = [numpy_view(array) for array in (inverse_norms, centroids, nearest, n_compared)]
        found = update_cosines(rows, *given, rates=None if rates is None else numpy_view(rates), shift=shift)
        return tensor_view(found[0]), tensor_view(found[1])
    nearest, n_compared = nearest.copy(), n_compared.copy()
    centroids = np.ascontiguousarray(centroids)
    rates = np.empty((0, 1)) if rates is None else np.asarray(rates, dtype=np.float64)

    def work(start: int, stop: int) -> None:
        farthest_block(rows, inverse_norms, centroids, nearest, n_compared, rates, float(shift), start, stop)

    n_entries = rows.size if isinstance(rows, np.ndarray) else len(rows[2])
    parallel_for(work, len(nearest), chunk_size=64, operations=2.0 * n_entries)
    return nearest, n_compared


def nearest_centroids(
    rows: FloatArray, inverse_norms: FloatArray, centroids: FloatArray
) -> tuple[IntArray, FloatArray] | None:
    """Return labels and cosines, with products for the rows that bounds do not decide; None if few are."""
    found = pruned_centroids(rows, inverse_norms, centroids)
    if found is None:
        return None
    labels, cosines = found
    rest = np.flatnonzero(labels < 0)
    products = rows[rest] @ centroids.T
    labels[rest] = np.argmax(products, axis=1)
    cosines[rest] = np.max(products, axis=1) * inverse_norms[rest, 0]
    return np.where(inverse_norms > 0, labels[:, None], -1), cosines[:, None]


def pruned_centroids(
    rows: FloatArray, inverse_norms: FloatArray, centroids: FloatArray
) -> tuple[IntArray, FloatArray] | None:
    """Return the nearest centroids that bounds decide, -1 for the other rows; None if few are decided."""
    # A tenth of the columns, those in which the centroids differ most, says which centroids a row is probably
    # near to. If its angle to one of them is less than half of that one's angle to every other centroid, no
    # other can be nearer (the triangle inequality for angles, as in Elkan, 2003). A few rows show first
    # whether that decides most of them.
    centroids = np.ascontiguousarray(centroids)
    columns = _discriminative_columns(centroids)
    some = np.ascontiguousarray(centroids[:, columns].T)
    lengths = 0.5 * np.sum(some * some, axis=0)
    enough = _excluding_cosines(centroids)
    labels, cosines = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=rows.dtype)

    def prune(start: int, stop: int) -> None:
        # By the distances in these columns.
        scores = (np.take(rows[start:stop], columns, axis=1) @ some) * inverse_norms[start:stop] - lengths
        prune_block(rows, inverse_norms, centroids, scores, enough, GUESSES, labels, cosines, start, stop)

    prune(0, SAMPLE_ROWS)
    if np.mean(labels[:SAMPLE_ROWS] >= 0) < 0.5:
        return None
    parallel_for(
        lambda start, stop: prune(start + SAMPLE_ROWS, stop + SAMPLE_ROWS),
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


def _discriminative_columns(centroids: FloatArray) -> IntArray:
    """Return the tenth of the columns in which the centroids differ most, in runs as long as a cache line."""
    n_runs = centroids.shape[1] // RUN
    spread = np.var(centroids[:, : n_runs * RUN], axis=0).reshape(n_runs, RUN).sum(axis=1)
    runs = np.sort(np.argsort(spread)[-max(1, n_runs // ONE_RUN_IN) :])
    return (runs[:, None] * RUN + np.arange(RUN)).ravel()


@part(error_model="numpy")
def _look(rows, i, inverse_norms, centroids, nearest, n_compared, rate, shift, bound):
    """Raise row `i`'s cosine by centroids it has not been compared with, until its gain is below `bound`."""
    j = n_compared[i]
    while j < centroids.shape[0]:
        cosine = row_dot(rows, i, centroids[j]) * inverse_norms[i, 0]
        j += 1
        if cosine > nearest[i, 0]:
            nearest[i, 0] = cosine
            if rate * (shift - cosine) < bound:
                break
    n_compared[i] = j
    return rate * (shift - nearest[i, 0])


@jit(error_model="numpy")
def farthest_block(rows, inverse_norms, centroids, nearest, n_compared, rates, shift, start, stop):
    """Make the best row of a range exact, in place; see `update_cosines`."""
    n_centroids = centroids.shape[0]
    uniform = rates.shape[0] == 0
    best, bound = -1, nearest.dtype.type(-1e300)
    for _ in range(PROBES):
        lead, promise = start, -1e300
        for i in range(start, stop):
            rate = 1.0 if uniform else rates[i, 0]
            gain = rate * (shift - nearest[i, 0])
            if gain > promise:
                lead, promise = i, gain
        if n_compared[lead, 0] >= n_centroids:
            return
        rate = 1.0 if uniform else rates[lead, 0]
        gain = _look(rows, lead, inverse_norms, centroids, nearest, n_compared[:, 0], rate, shift, -1e300)
        if gain > bound or (gain == bound and lead < best):
            best, bound = lead, gain
    for i in range(start, stop):
        if n_compared[i, 0] >= n_centroids:
            continue
        rate = 1.0 if uniform else rates[i, 0]
        gain = rate * (shift - nearest[i, 0])
        if gain > bound or (gain == bound and i < best):
            gain = _look(rows, i, inverse_norms, centroids, nearest, n_compared[:, 0], rate, shift, bound)
            if n_compared[i, 0] >= n_centroids and (gain > bound or (gain == bound and i < best)):
                best, bound = i, gain


@jit(error_model="numpy")
def prune_block(rows, inverse_norms, centroids, scores, enough, tries, labels, cosines, start, stop):
    """Compare rows with the centroids of their best scores; see `pruned_centroids`."""
    # A row ends with the label of a centroid whose cosine is `enough` to exclude all others, or with -1. The
    # scores are used up.
    for i in range(start, stop):
        labels[i] = -1
        for _ in range(tries):
            guess = np.argmax(scores[i - start])
            scores[i - start, guess] = -np.inf
            cosine = row_dot(rows, i, centroids[guess]) * inverse_norms[i, 0]
            if cosine > enough[guess]:
                labels[i], cosines[i] = guess, cosine
                break
