"""Points in given cones: which one by the nearest centroid, and how much of its direction."""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.cones.array_api import own_columns


def cones_of(data: DataMatrix, centroids: Array) -> SampleArray:
    """Return the cone of each point: the one whose centroid has the largest cosine."""
    (labels,), _ = data.map_reduce_rows(_labels, centroids=centroids)
    return labels


def coefficients_of(data: DataMatrix, centroids: Array, directions: Array) -> SampleArray:
    """Return the projection of each point on the direction of its cone."""
    (W,), _ = data.map_reduce_rows(_coefficients, centroids=centroids, directions=directions)
    return W


def unit_rows(data: DataMatrix, rows: Any) -> Array:
    """Return the directions of the given rows of the data."""
    taken = data.take_rows(rows)
    xp = data.xp
    # Row by row, as the clustering does it: a sum along an axis may round in another order.
    return xp.stack([taken[i, :] / xp.sqrt(xp.sum(taken[i, :] * taken[i, :])) for i in range(taken.shape[0])])


def sums_by_cone(data: DataMatrix, labels: SampleArray, k: int) -> Any:
    """Return how many points each cone has, and the sums of their squared entries."""
    return data.map_reduce_rows(_sums, labels, n_out=0, k=k)[1]


def _labels(block: LocalMatrix, *, centroids: Array) -> tuple[tuple[Array], tuple[()]]:
    xp = block.xp
    labels = xp.astype(xp.argmax(block.times(centroids.T), axis=1), xp.int64)[:, None]
    return (xp.where(block.inverse_row_norms() > 0, labels, -xp.ones_like(labels)),), ()


def _coefficients(
    block: LocalMatrix, *, centroids: Array, directions: Array
) -> tuple[tuple[Array], tuple[()]]:
    (labels,), _ = _labels(block, centroids=centroids)
    return (own_columns(labels, block.times(directions.T), directions.shape[0]),), ()


def _sums(block: LocalMatrix, labels: Array, *, k: int) -> tuple[tuple[()], tuple[Array, Array]]:
    xp = block.xp
    squares = xp.astype(block.squared_row_norms(), xp.float64)[:, None]
    ones = xp.ones_like(squares)
    if block.weights is not None:
        weights = xp.astype(block.weights, xp.float64)[:, None]
        squares, ones = squares * weights, xp.astype(weights > 0, xp.float64)
    return (), (xp.sum(own_columns(labels, ones, k), axis=0), xp.sum(own_columns(labels, squares, k), axis=0))
