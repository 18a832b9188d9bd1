"""Newton steps for the Kullback-Leibler divergence of data from many models at once.

The data x have shape (n_rows, n_columns), or (batch, n_rows, n_columns) where models have data of their own;
the models v have shape (batch, n_rows, n_columns). A model is clipped to its lower bound, of shape (batch,)
and in float64, before it is divided by.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._arrays import on_gpu
from nonneg.kernels.batched_hals import batched_hals
from nonneg.kernels.beta_products import TRIES, triton
from nonneg.kernels.newton_targets.array_api import (
    LARGEST_FALL,
    LEAST_DIAGONAL,
    PASSES,
    SHRINK,
    SMALL_PART,
)


def _bounds(bounds: Any, v: Any) -> Any:
    return array_namespace(v).astype(bounds, v.dtype)[:, None, None]


def newton_terms(x: Any, v: Any, bounds: Any) -> tuple[Any, Any]:
    """Return first and second derivatives with respect to the models."""
    if on_gpu(v) and triton.is_supported(v):
        return triton.batched_kl_terms(x, v, bounds)
    xp = array_namespace(x, v)
    v = xp.maximum(v, _bounds(bounds, v))
    inverse = 1 / v
    return inverse * (v - x), inverse * x / v


def line_search(x: Any, v: Any, d: Any, slopes: Any, bounds: Any) -> Any:
    """Return a step between 0 and 1 along d for every row of every model, given the derivatives along d."""
    if on_gpu(v) and triton.is_supported(v):
        return triton.batched_kl_steps(x, v, d, slopes, bounds, TRIES)
    xp = array_namespace(x, v)
    down = -slopes
    able = down > 0
    one = xp.ones_like(down)
    t = xp.where(able, one, 0 * one)
    found = xp.logical_not(able)
    down = xp.where(able, down, one)
    for _ in range(TRIES):
        ahead = xp.maximum(v + t[:, :, None] * d, _bounds(bounds, v))
        up = xp.sum((ahead - x) / ahead * d, axis=2)
        good, done = up <= 0, up <= 2 * down
        shorter = t * xp.where(good, one, down / (down + xp.where(good, 0 * up, up)))
        t = xp.where(found, t, shorter)
        found = xp.logical_or(found, done)
    return xp.where(found, t, xp.zeros_like(t))


def column_losses(x: Any, v: Any, bounds: Any) -> Any:
    """Return the divergence of every column of x from that of every model, in float64: (batch, n_columns)."""
    xp = array_namespace(x, v)
    x, v = xp.astype(x, xp.float64), xp.maximum(xp.astype(v, xp.float64), bounds[:, None, None])
    safe = xp.where(x > 0, x, xp.ones_like(x))
    # x log(x / v) is 0 where x is.
    log = xp.log(xp.where(x > 0, safe / v, xp.ones_like(v)))
    return xp.sum(v - x + x * log, axis=1)


def batched_targets(factor: Any, gradient: Any, diagonal: Any, correlations: Any) -> tuple[Any, Any]:
    """Return the steps of all rows and the derivatives along them; see `kernels.newton_targets`."""
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
