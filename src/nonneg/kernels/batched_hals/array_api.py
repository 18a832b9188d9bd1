"""Coordinate descent on batches of rows in array API operations."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def batched_hals(factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float) -> tuple[Any, Any]:
    """Update all rows; see `kernels.batched_hals`."""
    xp = array_namespace(factor, gram, cross)
    factor = xp.asarray(factor, copy=True)
    diagonal = xp.linalg.diagonal(gram)
    flat = diagonal <= 0
    inverse = xp.where(flat, xp.zeros_like(diagonal), 1.0 / xp.where(flat, xp.ones_like(diagonal), diagonal))
    violation = xp.zeros_like(diagonal[:, 0])
    limit: Any = None
    active: Any = None
    for _ in range(max_passes):
        before = xp.asarray(factor, copy=True)
        for a in range(factor.shape[2]):
            old = factor[:, :, a]
            slope = (factor @ gram[:, :, a : a + 1])[:, :, 0] - cross[:, :, a]
            length = inverse[:, a][:, None]
            if active is None:
                counted = xp.where(old > 0, slope, xp.clip(slope, max=0.0))
                counted = xp.where(length > 0, xp.abs(counted), xp.zeros_like(counted))
                violation = violation + xp.sum(counted, axis=1)
            else:
                length = length * xp.astype(active, factor.dtype)
            factor[:, :, a] = xp.clip(old - slope * length, min=0.0)
        change = xp.sum((factor - before) ** 2, axis=2)
        if limit is None:
            limit = change * (shrink * shrink)
            active = change > limit
        else:
            active = xp.logical_and(active, change > limit)
    return factor, violation
