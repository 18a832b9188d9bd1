"""The centroid with the largest cosine to every row: found for all rows, or only as far as a search needs it.

The compiled kernels read rows in host memory, dense or sparse (`LocalMatrix.raw_rows`). Other arrays are
served by products with the centroids.
"""

from __future__ import annotations

from typing import Any

from nonneg.kernels.nearest_centroid import array_api


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
        Updated. Which rows are skipped depends on the number of threads; the row of the largest gain does
        not.
    """
    from nonneg.kernels.nearest_centroid import numba  # loaded with the first fit, not with the package

    rows = block.raw_rows()
    if numba.is_supported(rows):
        return numba.update_cosines(
            rows, inverse_norms, centroids, nearest, n_compared, rates=rates, shift=shift
        )
    # All rows were compared with all centroids but the newest one.
    products = block.times(centroids[-1:, :].T)
    return array_api.update_cosines(products, inverse_norms, nearest), n_compared


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
    from nonneg.kernels.nearest_centroid import numba

    rows = block.raw_rows()
    if numba.can_prune(rows, inverse_norms, centroids):
        found = numba.nearest_centroids(rows, inverse_norms, centroids)
        if found is not None:
            return found
    return array_api.nearest_centroids(block.times(centroids.T), inverse_norms)
