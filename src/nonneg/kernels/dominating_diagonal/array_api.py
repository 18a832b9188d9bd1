"""Projection of rows onto the cone that their diagonal entry spans (portable)."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def dominating_diagonal(coefficients: Any, weights: Any, max_steps: int) -> Any:
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
