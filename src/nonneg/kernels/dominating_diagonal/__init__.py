"""Projection onto matrices whose diagonal bounds their rows: compiled for NumPy arrays, else portable."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg.kernels.dominating_diagonal import array_api as portable

MAX_STEPS = 200


def dominating_diagonal(coefficients: Any, weights: Any, *, out: Any = None) -> Any:
    """Return the nearest C >= 0 with c_ii <= 1 and w_i c_ij <= w_j c_ii.

    Parameters
    ----------
    coefficients : array of shape (n, n)
        The matrix; not changed unless it is `out`.
    weights : array of shape (n,)
        The weights w, not negative.
    out : numpy array of shape (n, n), optional
        Where to write the answer, for NumPy arrays.

    Returns
    -------
    array of shape (n, n)
        The projection.

    Notes
    -----
    Rows are independent. With the diagonal entry at t the others are cut to [0, w_j t / w_i]; the best t is
    the root of a concave piecewise linear function, to which Newton's method climbs in a few passes over
    the row, without sorting.
    """
    if not isinstance(coefficients, np.ndarray):
        return portable.dominating_diagonal(coefficients, weights, MAX_STEPS)
    from nonneg.kernels.dominating_diagonal.numba import dominating_rows

    if out is None:
        out = np.array(coefficients, order="C", copy=True)
    elif out is not coefficients:
        out[...] = coefficients
    weights = np.ascontiguousarray(weights, dtype=out.dtype)
    n = out.shape[0]

    def work(start: int, stop: int) -> None:
        dominating_rows(out, weights, MAX_STEPS, start, stop)

    parallel_for(work, n, chunk_size=1, operations=10.0 * n * n)
    return out
