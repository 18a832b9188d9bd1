"""Coordinate descent on rows in array API operations."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg.kernels.grams import Gram, gram_matrices


def hals_passes(
    factor: Any, gram: Gram, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows; see `kernels.hals.hals_passes`."""
    matrices = gram_matrices(gram)
    xp = array_namespace(factor, matrices, cross)
    own = matrices.ndim == 3
    factor = xp.asarray(factor, copy=True)
    diagonal = xp.linalg.diagonal(matrices)
    # Without curvature there is nothing to gain: a zero step. `if` would make a GPU wait at every column.
    flat = diagonal <= 0
    inverse = xp.where(flat, xp.zeros_like(diagonal), 1.0 / xp.where(flat, xp.ones_like(diagonal), diagonal))
    violation = xp.zeros((), dtype=factor.dtype, device=factor.device)
    limit = violation
    active = None
    moving = None
    for sweep in range(max_passes):
        before = xp.asarray(factor, copy=True)
        for a in (int(turn) for turn in order):
            old = factor[:, a]
            if own:
                slope = xp.sum(matrices[:, a, :] * factor, axis=1) - cross[:, a]
                length = inverse[:, a]
            else:
                slope = factor @ matrices[:, a] - cross[:, a]
                length = inverse[a]
            if moving is None:
                at_zero = xp.clip(slope, max=0.0)
                counted = xp.where(old > 0, slope, at_zero)
                violation = violation + xp.sum(xp.where(length > 0, xp.abs(counted), xp.zeros_like(counted)))
            else:
                # Rows that have stopped take steps of length zero.
                length = length * moving
            factor[:, a] = xp.clip(old - slope * length, min=0.0)
        change = xp.sum((factor - before) ** 2, axis=1)
        if active is None:
            limit = change * (shrink * shrink)
            active = change > limit
        else:
            active = xp.logical_and(active, change > limit)
        moving = xp.astype(active, factor.dtype)
        if sweep + 1 < max_passes and not bool(xp.any(active)):
            break
    return factor, violation
