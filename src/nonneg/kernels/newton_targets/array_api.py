"""Newton steps of rows in array API operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes

# Coordinate passes over the quadratic problem of a row; one that changes it by at most this fraction of the
# first is the last.
PASSES, SHRINK = 4, 0.1
# An entry decreases at most to this fraction in one step; to zero only if it is a small part of its row.
LARGEST_FALL, SMALL_PART = 0.2, 1e-3
# Diagonals are at least the smallest normal number times this.
LEAST_DIAGONAL = 1e8


def newton_targets(
    factor: Any, gradient: Any, diagonal: Any, correlations: Any, order: Any, l1: float, l2: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the steps of all rows; see `kernels.newton_targets`."""
    xp = array_namespace(factor)
    root = xp.sqrt(xp.clip(diagonal, min=float(xp.finfo(factor.dtype).smallest_normal) * LEAST_DIAGONAL))
    scaled, slope = factor * root, gradient / root
    target, _ = hals_passes(
        scaled,
        SharedGram(correlations),
        scaled @ correlations - slope,
        order=None if order is None else order.tolist(),
        max_passes=PASSES,
        shrink=SHRINK,
    )
    target = target / root
    part = SMALL_PART * xp.max(factor, axis=1)[:, None]
    lowest = xp.where(factor > part, LARGEST_FALL * factor, xp.zeros_like(factor))
    direction = xp.where(target < lowest, lowest, target) - factor
    if order is not None:
        moving = np.zeros(factor.shape[1], dtype=bool)
        moving[order] = True
        direction = xp.where(xp.asarray(moving, device=factor.device), direction, xp.zeros_like(direction))
    return direction, residuals(scaled, slope), *along(factor, gradient, direction, l1, l2)


def along(factor: Any, gradient: Any, direction: Any, l1: float, l2: float) -> tuple[Any, Any, Any]:
    """Return slope and curvature of the penalties along the steps, and slopes of the whole."""
    xp = array_namespace(factor)
    linear = xp.sum((l1 + l2 * factor) * direction, axis=1)
    return linear, l2 * xp.sum(direction * direction, axis=1), xp.sum(gradient * direction, axis=1)


def residuals(scaled: Any, gradient: Any) -> Any:
    """Return the norms of the projected gradients relative to the rows."""
    xp = array_namespace(scaled)
    projected = xp.where(scaled > 0, gradient, xp.clip(gradient, max=0.0))
    projected = scaled - xp.clip(scaled - projected, min=0.0)
    size = xp.sqrt(xp.sum(scaled * scaled, axis=1))
    return xp.sqrt(xp.sum(projected * projected, axis=1)) / xp.where(size > 0, size, xp.ones_like(size))
