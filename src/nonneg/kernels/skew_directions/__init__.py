"""Quasi-Newton directions among skew matrices, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray

# Below this a call costs as much as its work.
SMALLEST = 24


def serves(gradient: Any, products: Any) -> bool:
    """Tell whether the kernel takes a gradient and products."""
    return all(
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.ndim == 3
        and array.shape[0] == 1
        and array.shape[1] >= SMALLEST
        for array in (gradient, products)
    )


def skew_direction(
    gradient: FloatArray, products: FloatArray, less: float, least: float
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return the skew direction that a diagonal quadratic model prefers, and what is asked about it."""
    from nonneg.kernels.skew_directions import numba as compiled

    direction, facts = np.empty_like(gradient, order="C"), np.empty(3)
    compiled.put_direction(gradient[0], products[0], less, least, direction[0], facts)
    bound = float(facts[2])
    return direction, facts[:1], np.sqrt(facts[1:2]), bound if np.isfinite(bound) else 0.0
