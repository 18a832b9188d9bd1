"""Projection onto matrices whose diagonal bounds their rows: compiled for NumPy arrays, else portable."""

from __future__ import annotations

from typing import Any

from nonneg.kernels.dominating_diagonal import array_api

# Newton's method ends after a few steps; this bounds it in any case.
MAX_STEPS = 200


def dominating_diagonal(coefficients: Any, weights: Any, *, out: Any = None) -> Any:
    """Return the nearest C >= 0 with c_ii <= 1 and w_i c_ij <= w_j c_ii.

    Parameters
    ----------
    coefficients : array of shape (n, n)
        The matrix; not modified unless it is `out`.
    weights : array of shape (n,)
        The weights w, nonnegative.
    out : numpy array of shape (n, n), optional
        Where to write the result, for NumPy arrays.

    Returns
    -------
    array of shape (n, n)
        The projection.

    Notes
    -----
    Rows are independent. With the diagonal entry t, the others are clipped to [0, w_j t / w_i]; the optimal t
    is the root of a concave piecewise linear function, which Newton's method finds in a few passes over the
    row, without sorting.
    """
    from nonneg.kernels.dominating_diagonal import numba  # loaded with the first fit, not with the package

    if not numba.is_supported(coefficients):
        return array_api.dominating_diagonal(coefficients, weights, MAX_STEPS)
    return numba.dominating_diagonal(coefficients, weights, MAX_STEPS, out)
