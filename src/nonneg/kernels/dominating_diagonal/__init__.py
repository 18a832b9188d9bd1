"""Projection onto matrices whose diagonal bounds their rows: by the compiled core, or array code."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size
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
    compiled = core() if is_float_array(coefficients) else None
    if compiled is None or (out is not None and not (is_float_array(out) and out.flags.c_contiguous)):
        found = array_api.dominating_diagonal(coefficients, weights, MAX_STEPS)
        if out is None:
            return found
        out[...] = found
        return out
    if out is None:
        out = np.array(coefficients, order="C")
    elif out is not coefficients:
        out[...] = coefficients
    weights = np.ascontiguousarray(weights, dtype=out.dtype)
    compiled.dominating_diagonal(out, weights, MAX_STEPS, team_size(10.0 * out.size))
    return out
