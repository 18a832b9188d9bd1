"""Projection onto matrices whose diagonal bounds their rows: by the compiled core, or array code."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size

# Newton's method ends after a few steps; this bounds it in any case.
MAX_STEPS = 200


def dominating_diagonal(coefficients: Any, weights: Any) -> Any:
    """Return the nearest C >= 0 with c_ii <= 1 and w_i c_ij <= w_j c_ii.

    Parameters
    ----------
    coefficients : array of shape (n, n)
        The matrix; not modified.
    weights : array of shape (n,)
        The weights w, nonnegative.

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
    if compiled is None:
        return portable_dominating_diagonal(coefficients, weights, MAX_STEPS)
    out = np.array(coefficients, order="C")
    weights = np.ascontiguousarray(weights, dtype=out.dtype)
    compiled.dominating_diagonal(out, weights, MAX_STEPS, team_size(10.0 * out.size))
    return out


def portable_dominating_diagonal(coefficients: Any, weights: Any, max_steps: int) -> Any:
    """Project all rows; see `kernels.dominating_diagonal`."""
    xp = array_namespace(coefficients, weights)
    n = coefficients.shape[0]
    eye = xp.eye(n, dtype=coefficients.dtype, device=coefficients.device)
    diagonal = xp.sum(coefficients * eye, axis=1)
    bound = weights > 0
    own = xp.where(bound, weights, xp.ones_like(weights))
    level = xp.clip(diagonal, min=0.0, max=1.0)
    for _ in range(max_steps):
        over = xp.astype(coefficients > weights[None, :] * (level / own)[:, None], coefficients.dtype)
        over = over * (1.0 - eye)
        total = (over * coefficients) @ weights
        square = over @ (weights * weights)
        new = xp.clip(own * (own * diagonal + total) / (own * own + square), min=0.0, max=1.0)
        grown = xp.maximum(new, level)
        if not bool(xp.any(grown > level)):
            break
        level = grown
    positive = xp.clip(coefficients, min=0.0)
    cut = xp.minimum(positive, weights[None, :] * (level / own)[:, None])
    cut = xp.where(bound[:, None], cut, positive)
    level = xp.where(bound, level, xp.clip(diagonal, min=0.0, max=1.0))
    return cut * (1.0 - eye) + level[:, None] * eye
