"""Newton steps of rows whose Hessians share their correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import batched_hals, hals_passes

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
    """Return the steps to the minimizers of the quadratic models of all rows, and what a line search needs.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The rows, nonnegative; not modified.
    gradient, diagonal : array of shape (n_rows, k)
        Gradients, and diagonals of the Hessians, penalties included.
    correlations : array of shape (k, k)
        The Hessians scaled to a unit diagonal: the same for all rows.
    order : array of int or None
        The components that may change; all by default.
    l1, l2 : float
        The penalties.

    Returns
    -------
    direction : array of shape (n_rows, k)
        The steps. They come from a few coordinate passes and make no entry negative; an entry that is not
        small in its row loses at most four fifths.
    residuals : array of shape (n_rows,)
        Norms of the projected gradients relative to the rows, in the metric of the diagonal.
    linear, quadratic, slopes : array of shape (n_rows,)
        The penalty along the step is ``linear t + quadratic t^2 / 2``; derivatives of the whole at 0.
    """
    compiled = core() if is_float_array(factor) else None
    if compiled is not None:
        n_rows, k = factor.shape
        arrays = (
            np.ascontiguousarray(a, dtype=factor.dtype) for a in (factor, gradient, diagonal, correlations)
        )
        turns = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
        direction, notes = np.empty((n_rows, k), factor.dtype), np.empty((4, n_rows), factor.dtype)
        least = float(np.finfo(factor.dtype).smallest_normal) * LEAST_DIAGONAL
        threads = team_size(8.0 * n_rows * k * k)
        compiled.newton_targets(*arrays, turns, l1, l2, least, direction, notes, threads)
        return direction, *notes
    return portable_newton_targets(factor, gradient, diagonal, correlations, order, l1, l2)


def portable_newton_targets(
    factor: Any, gradient: Any, diagonal: Any, correlations: Any, order: Any, l1: float, l2: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the steps of all rows in array API operations; of many factors at once along a first axis."""
    xp = array_namespace(factor)
    # Rows and gradients in the metric of the diagonal.
    root = xp.sqrt(xp.clip(diagonal, min=float(xp.finfo(factor.dtype).smallest_normal) * LEAST_DIAGONAL))
    scaled, slope = factor * root, gradient / root
    right = scaled @ correlations - slope
    if factor.ndim == 3:
        target, _ = batched_hals(scaled, correlations, right, max_passes=PASSES, shrink=SHRINK)
    else:
        turns = None if order is None else order.tolist()
        gram = SharedGram(correlations)
        target, _ = hals_passes(scaled, gram, right, order=turns, max_passes=PASSES, shrink=SHRINK)
    target = target / root
    part = SMALL_PART * xp.max(factor, axis=-1, keepdims=True)
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
    linear = xp.sum((l1 + l2 * factor) * direction, axis=-1)
    return linear, l2 * xp.sum(direction * direction, axis=-1), xp.sum(gradient * direction, axis=-1)


def residuals(scaled: Any, gradient: Any) -> Any:
    """Return the norms of the projected gradients relative to the rows."""
    xp = array_namespace(scaled)
    projected = xp.where(scaled > 0, gradient, xp.clip(gradient, max=0.0))
    projected = scaled - xp.clip(scaled - projected, min=0.0)
    size = xp.sqrt(xp.sum(scaled * scaled, axis=-1))
    return xp.sqrt(xp.sum(projected * projected, axis=-1)) / xp.where(size > 0, size, xp.ones_like(size))
