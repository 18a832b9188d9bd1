"""The centroid with the largest cosine to every row: found for all rows, or only as far as a search needs it.

The compiled core reads rows in host memory, dense or sparse (`LocalMatrix.raw_rows`), and needs only some of
the products. Other arrays are served by products with the centroids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_cpu_tensor, is_float_array, numpy_view, tensor_view
from nonneg._compiled import core
from nonneg._threads import parallel_for, team_size
from nonneg._typing import FloatArray, IntArray
from nonneg.kernels.data_rows import core_rows

# The constants below change the speed alone, no result.
# Guesses at the nearest centroid: this many per row, from one run of columns in ten, each as long as a cache
# line. They are tried on a block of rows first, and do not pay with few columns or centroids.
GUESSES, RUN, ONE_RUN_IN = 4, 8, 10
BLOCK_ROWS, MIN_COLUMNS, MIN_CENTROIDS = 256, 400, 8


def update_cosines(
    block: Any,
    inverse_norms: Any,
    centroids: Any,
    nearest: Any,
    n_compared: Any,
    *,
    rates: Any = None,
    shift: float,
) -> tuple[Any, Any]:
    """Raise the rows' largest cosines by new centroids until the row of the largest gain is certain.

    The gain of a row is ``rate * (shift - nearest)``. A cosine that lacks some centroids is a lower bound, so
    its gain is an upper one, and a row whose upper bound is below a gain that was reached is skipped.

    Parameters
    ----------
    block : LocalMatrix
        The rows.
    inverse_norms : array of shape (n_rows, 1)
        One over the norms of the rows.
    centroids : array of shape (n_centroids, n_columns)
        Unit vectors, in the order in which they were chosen.
    nearest : array of float64 of shape (n_rows, 1)
        The largest cosine of every row to the centroids it was compared with; not modified.
    n_compared : array of int64 of shape (n_rows, 1)
        With how many centroids every row was compared; not modified.
    rates : array of float64 of shape (n_rows, 1), optional
        Factors of the gains; 1 by default.
    shift : float
        What a cosine is subtracted from.

    Returns
    -------
    nearest, n_compared : array of shape (n_rows, 1)
        Updated.
    """
    rows = core_rows(block)
    if rows is None:
        # All rows were compared with all centroids but the newest one.
        products = block.times(centroids[-1:, :].T)
        return portable_update_cosines(products, inverse_norms, nearest), n_compared
    dtype = rows[-1].dtype
    scales, units = (
        np.ascontiguousarray(numpy_view(array), dtype=dtype) for array in (inverse_norms, centroids)
    )
    rates = None if rates is None else np.ascontiguousarray(numpy_view(rates), dtype=np.float64).ravel()
    cosines, counts = (np.array(numpy_view(array)) for array in (nearest, n_compared))
    options = (rates, float(shift), cosines.ravel(), counts.ravel(), team_size(2.0 * rows[-1].size))
    core().update_cosines(*rows, scales.ravel(), units, *options)
    return (tensor_view(cosines), tensor_view(counts)) if is_cpu_tensor(nearest) else (cosines, counts)


def nearest_centroids(block: Any, inverse_norms: Any, centroids: Any) -> tuple[Any, Any]:
    """Return the centroid of the largest cosine for every row, and that cosine.

    Parameters
    ----------
    block : LocalMatrix
        The rows.
    inverse_norms : array of shape (n_rows, 1)
        One over the norms of the rows; 0 for rows of zeros.
    centroids : array of shape (n_centroids, n_columns)
        Unit vectors.

    Returns
    -------
    labels : array of int64 of shape (n_rows, 1)
        Of equal cosines the lowest index; -1 for rows of zeros.
    cosines : array of shape (n_rows, 1)
        0 for rows of zeros.
    """
    if can_prune(block, inverse_norms, centroids):
        found = pruned_centroids(block.raw_rows(), inverse_norms, centroids)
        if found is not None:
            return found
    return portable_nearest_centroids(block.times(centroids.T), inverse_norms)


def can_prune(block: Any, inverse_norms: Any, centroids: Any) -> bool:
    """Tell whether bounds may save products with the centroids: dense rows, many columns and centroids."""
    rows = core_rows(block)
    return (
        rows is not None
        and len(rows) == 1
        and is_float_array(inverse_norms)
        and len(centroids) >= MIN_CENTROIDS
        and centroids.shape[1] >= MIN_COLUMNS
        and len(rows[0]) >= 4 * BLOCK_ROWS
    )


def pruned_centroids(
    rows: FloatArray, inverse_norms: FloatArray, centroids: FloatArray
) -> tuple[IntArray, FloatArray] | None:
    """Return labels and cosines, with products for the rows that bounds do not decide; None if few are."""
    # A tenth of the columns, those in which the centroids differ most, says which centroids a row is probably
    # near to. If its angle to one of them is less than half of that one's angle to every other centroid, no
    # other can be nearer (the triangle inequality for angles, as in Elkan, 2003). A few rows show first
    # whether that decides most of them.
    centroids = np.ascontiguousarray(centroids)
    scales = np.ascontiguousarray(inverse_norms[:, 0], dtype=rows.dtype)
    columns = _discriminative_columns(centroids)
    some = np.ascontiguousarray(centroids[:, columns].T)
    lengths = 0.5 * np.sum(some * some, axis=0)
    enough = _excluding_cosines(centroids)
    labels, cosines = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=rows.dtype)

    def prune(start: int, stop: int) -> None:
        for first in range(start, stop, BLOCK_ROWS):
            at = slice(first, min(first + BLOCK_ROWS, stop))
            # By the distances in these columns.
            scores = (np.take(rows[at], columns, axis=1) @ some) * scales[at, None] - lengths
            core().guess_centroids(
                rows[at], scales[at], centroids, scores, enough, GUESSES, labels[at], cosines[at]
            )

    prune(0, BLOCK_ROWS)
    if np.mean(labels[:BLOCK_ROWS] >= 0) < 0.5:
        return None
    parallel_for(
        lambda start, stop: prune(start + BLOCK_ROWS, stop + BLOCK_ROWS),
        len(rows) - BLOCK_ROWS,
        chunk_size=BLOCK_ROWS,
        operations=3.0 * rows.size,
    )
    rest = np.flatnonzero(labels < 0)
    products = rows[rest] @ centroids.T
    labels[rest] = np.argmax(products, axis=1)
    cosines[rest] = np.max(products, axis=1) * scales[rest]
    return np.where(inverse_norms > 0, labels[:, None], -1), cosines[:, None]


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


def portable_update_cosines(products: Any, inverse_norms: Any, nearest: Any) -> Any:
    """Return the largest cosines, in float64, from products of the rows with the new centroids."""
    xp = array_namespace(products)
    cosines = xp.astype(xp.max(products, axis=1, keepdims=True) * inverse_norms, xp.float64)
    return xp.where(cosines > nearest, cosines, nearest)


def portable_nearest_centroids(products: Any, inverse_norms: Any) -> tuple[Any, Any]:
    """Return labels and cosines from the products of the rows with all centroids."""
    xp = array_namespace(products)
    labels = xp.astype(xp.argmax(products, axis=1), xp.int64)[:, None]
    labels = xp.where(inverse_norms > 0, labels, -xp.ones_like(labels))
    return labels, xp.max(products, axis=1, keepdims=True) * inverse_norms
