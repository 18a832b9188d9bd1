"""Products of rows with the vector of their cluster, for arrays of any namespace."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def cluster_products(block: Any, labels: Any, vectors: Any) -> tuple[Any, Any]:
    """Return the products and sums of all clusters, from products of all rows with all vectors."""
    own = one_hot(labels, block.times(block.to_device(vectors.T)), len(vectors))
    return block.xp.sum(own, axis=1, keepdims=True), block.transposed_times(own).T


def one_hot(labels: Any, entries: Any, k: int) -> Any:
    """Return a matrix with the entry of every row in the column of its cluster, and zeros elsewhere.

    Parameters
    ----------
    labels : array of int of shape (n_rows, 1)
        The clusters; negative for none.
    entries : array of shape (n_rows, k) or (n_rows, 1)
        One entry per cluster, or one for whichever cluster it is.
    k : int
        The number of clusters.

    Returns
    -------
    array of shape (n_rows, k)
        With at most one nonzero entry per row.
    """
    xp = array_namespace(entries)
    numbers = xp.arange(k, dtype=labels.dtype, device=entries.device)
    zero = xp.zeros((1, 1), dtype=entries.dtype, device=entries.device)
    return xp.where(labels == numbers[None, :], entries, zero)
