"""Points in given cones: which one by the nearest centroid, and how much of its direction."""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array, LeftArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.portable.cones import own_columns


def cones_of(data: DataMatrix, centroids: Array) -> LeftArray:
    """Return the cone of each point: the one whose centroid has the largest cosine.

    Parameters
    ----------
    data : DataMatrix
        The points.
    centroids : array of shape (k, n_features)
        Unit rows, placed where the data are.

    Returns
    -------
    left-like array of int of shape (n_rows, 1)
        The lowest of equally near ones; -1 for rows of zeros, which have no direction.
    """
    (labels,), _ = data.row_pass(_labels, centroids=centroids)
    return labels


def coefficients_of(data: DataMatrix, centroids: Array, directions: Array) -> LeftArray:
    """Return the projection of each point on the direction of its cone.

    Parameters
    ----------
    data : DataMatrix
        The points.
    centroids : array of shape (k, n_features)
        Unit rows, by which the cone is chosen.
    directions : array of shape (k, n_features)
        Unit rows, or rows of zeros.

    Returns
    -------
    left-like array of shape (n_rows, k)
        One entry a row, in the column of its cone: the least-squares coefficient.
    """
    (W,), _ = data.row_pass(_coefficients, centroids=centroids, directions=directions)
    return W


def unit_rows(data: DataMatrix, rows: Any) -> Array:
    """Return the directions of the given rows of the data.

    Parameters
    ----------
    data : DataMatrix
        The points.
    rows : array of int
        Which ones; none of zeros.

    Returns
    -------
    array of shape (len(rows), n_features)
        Unit rows, where the data are.
    """
    taken = data.take_rows(rows)
    xp = data.xp
    # Row by row, as the clustering does it: a sum along an axis may round in another order.
    return xp.stack([taken[i, :] / xp.sqrt(xp.sum(taken[i, :] * taken[i, :])) for i in range(taken.shape[0])])


def sums_by_cone(data: DataMatrix, labels: LeftArray, k: int) -> Any:
    """Return how many points each cone has, and the sums of their squared entries.

    Parameters
    ----------
    data : DataMatrix
        The points; row weights count, rows without weight do not.
    labels : left-like array of int of shape (n_rows, 1)
        Their cones.
    k : int
        The number of cones.

    Returns
    -------
    tuple of arrays of shape (k,)
        Counts without weights, squared norms with them; where the data are.
    """
    return data.row_pass(_sums, labels, n_out=0, k=k)[1]


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
