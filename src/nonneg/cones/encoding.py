"""Samples in given cones: the nearest centroid, and the projection on its direction."""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.cluster_products import one_hot


def nearest_cones(data: DataMatrix, centroids: Array, *inverse_norms: SampleArray) -> SampleArray:
    """Return the cone of each point: the one whose centroid has the largest cosine, -1 for zeros."""
    return data.map_rows(_labels, *inverse_norms, centroids=centroids)


def project_on_cones(data: DataMatrix, centroids: Array, directions: Array) -> SampleArray:
    """Return the projection of each point on the direction of its cone."""
    return data.map_rows(_coefficients, centroids=centroids, directions=directions)


def unit_rows(data: DataMatrix, rows: Any) -> Array:
    """Return the directions of the given rows of the data."""
    array = data.take_rows(rows)
    xp = data.xp
    # Row by row, as the clustering does it: a sum along an axis may round in another order.
    return xp.stack([array[i, :] / xp.sqrt(xp.sum(array[i, :] * array[i, :])) for i in range(array.shape[0])])


def sums_by_cone(data: DataMatrix, labels: SampleArray, k: int) -> Any:
    """Return how many points each cone has, and the sums of their squared entries."""
    return data.reduce_rows(_sums, labels, k=k)


def _labels(block: LocalMatrix, inverse_norms: Array | None = None, *, centroids: Array) -> Array:
    xp, norms = block.xp, block.inverse_row_norms() if inverse_norms is None else inverse_norms
    labels = xp.astype(xp.argmax(block.times(centroids.T), axis=1), xp.int64)[:, None]
    return xp.where(norms > 0, labels, -xp.ones_like(labels))


def _coefficients(block: LocalMatrix, *, centroids: Array, directions: Array) -> Array:
    labels = _labels(block, centroids=centroids)
    return one_hot(labels, block.times(directions.T), directions.shape[0])


def _sums(block: LocalMatrix, labels: Array, *, k: int) -> tuple[Array, Array]:
    xp = block.xp
    squares = xp.astype(block.squared_row_norms(), xp.float64)[:, None]
    ones = xp.ones_like(squares)
    if block.weights is not None:
        weights = xp.astype(block.weights, xp.float64)[:, None]
        squares, ones = squares * weights, xp.astype(weights > 0, xp.float64)
    return xp.sum(one_hot(labels, ones, k), axis=0), xp.sum(one_hot(labels, squares, k), axis=0)


def memberships(data: DataMatrix, labels: SampleArray, products: SampleArray, k: int) -> SampleArray:
    """Return a matrix with one entry per row: its product, in the column of its cluster."""
    return data.map_rows(_memberships, labels, products, k=k)


def _memberships(block: LocalMatrix, labels: Array, products: Array, *, k: int) -> Array:
    return one_hot(labels, products, k)
