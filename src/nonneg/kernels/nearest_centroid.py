"""The largest cosine of every row to some centroids, as far as a search for the farthest row needs it.

The compiled core searches rows in host memory, dense or sparse (`LocalMatrix.raw_rows`), with only some of
the products. Other arrays are served by products with the centroids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_cpu_tensor, numpy_view, tensor_view
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg.kernels.rows import core_rows


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
        cosines = block.times(centroids[-1:, :].T) * inverse_norms
        xp = array_namespace(cosines)
        cosines = xp.astype(cosines, xp.float64)
        return xp.where(cosines > nearest, cosines, nearest), n_compared
    dtype = rows[-1].dtype
    scales, units = (
        np.ascontiguousarray(numpy_view(array), dtype=dtype) for array in (inverse_norms, centroids)
    )
    rates = None if rates is None else np.ascontiguousarray(numpy_view(rates), dtype=np.float64).ravel()
    cosines, counts = (np.array(numpy_view(array)) for array in (nearest, n_compared))
    options = (rates, float(shift), cosines.ravel(), counts.ravel(), team_size(2.0 * rows[-1].size))
    core().update_cosines(*rows, scales.ravel(), units, *options)
    return (tensor_view(cosines), tensor_view(counts)) if is_cpu_tensor(nearest) else (cosines, counts)
