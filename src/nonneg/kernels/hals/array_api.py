"""Coordinate descent on rows, in array-API operations only; the twin of the compiled kernels."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def hals_passes(
    factor: Any, gram: Any, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows; see `kernels.hals_passes`. `gram` is (k, k), or (n_rows, k, k)."""
    xp = array_namespace(factor, gram, cross)
    own = gram.ndim == 3
    factor = xp.asarray(factor, copy=True)
    diagonal = xp.linalg.diagonal(gram)
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
                slope = xp.sum(gram[:, a, :] * factor, axis=1) - cross[:, a]
                length = inverse[:, a]
            else:
                slope = factor @ gram[:, a] - cross[:, a]
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
