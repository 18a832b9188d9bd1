"""Products of every row with the vector of its cluster, and the weighted sums of the rows of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import numpy_view
from nonneg._typing import FloatArray
from nonneg.kernels.cluster_products import array_api


def cluster_products(block: Any, labels: Any, vectors: FloatArray, active: Any) -> tuple[Any, Any]:
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
    from nonneg.kernels.cluster_products import numba  # loaded with the first fit, not with the package

    rows = block.raw_rows()
    if not numba.is_supported(rows):
        return array_api.cluster_products(block, labels, vectors)
    dtype = rows.dtype if isinstance(rows, np.ndarray) else rows[2].dtype
    weights = None if block.weights is None else numpy_view(block.weights)
    products, sums = numba.cluster_products(
        rows, numpy_view(labels)[:, 0], vectors.astype(dtype, copy=False), weights, active
    )
    return block.to_device(products[:, None]), sums
