"""Newton steps of batches of rows in array API operations."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg.kernels.batched_hals import batched_hals
from nonneg.kernels.newton_targets.array_api import (
    LARGEST_FALL,
    LEAST_DIAGONAL,
    PASSES,
    SHRINK,
    SMALL_PART,
)


def batched_targets(factor: Any, gradient: Any, diagonal: Any, correlations: Any) -> tuple[Any, Any]:
    """Return the steps of all rows; see `kernels.batched_targets`."""
    xp = array_namespace(factor)
    root = xp.sqrt(xp.clip(diagonal, min=float(xp.finfo(factor.dtype).smallest_normal) * LEAST_DIAGONAL))
    scaled = factor * root
    target, _ = batched_hals(
        scaled, correlations, scaled @ correlations - gradient / root, max_passes=PASSES, shrink=SHRINK
    )
    target = target / root
    part = SMALL_PART * xp.max(factor, axis=2, keepdims=True)
    lowest = xp.where(factor > part, LARGEST_FALL * factor, xp.zeros_like(factor))
    direction = xp.where(target < lowest, lowest, target) - factor
    return direction, xp.sum(gradient * direction, axis=2)
