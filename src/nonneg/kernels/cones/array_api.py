"""Cosines to centroids and products with the vector of the own cluster, from products of all with all."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def nearest_cosines(products: Any, inverse_norms: Any, nearest: Any) -> Any:
    """Return the largest cosine of every row to all centroids so far; see `kernels.cones.compare_rows`.

    Parameters
    ----------
    products : array of shape (n_rows, n_new)
        The products of the rows with unit centroids that they have not been compared with.
    inverse_norms, nearest : array of shape (n_rows, 1)
        One over the rows' norms, and their largest cosines before.

    Returns
    -------
    array of shape (n_rows, 1)
        In float64.
    """
    xp = array_namespace(products)
    cosines = xp.astype(xp.max(products, axis=1, keepdims=True) * inverse_norms, xp.float64)
    return xp.where(cosines > nearest, cosines, nearest)


def own_columns(labels: Any, entries: Any, k: int) -> Any:
    """Return a matrix with the entry of every row's own cluster and zeros elsewhere.

    Parameters
    ----------
    labels : array of int of shape (n_rows, 1)
        The clusters; negative for none.
    entries : array of shape (n_rows, k) or (n_rows, 1)
        For every cluster, or one for whatever the cluster is.
    k : int
        The number of clusters.

    Returns
    -------
    array of shape (n_rows, k)
        With at most one entry a row.
    """
    xp = array_namespace(entries)
    numbers = xp.arange(k, dtype=labels.dtype, device=entries.device)
    zero = xp.zeros((1, 1), dtype=entries.dtype, device=entries.device)
    return xp.where(labels == numbers[None, :], entries, zero)
