"""The Kullback-Leibler divergence from many models in array API operations."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def _bounds(bounds: Any, v: Any) -> Any:
    return array_namespace(v).astype(bounds, v.dtype)[:, None, None]


def newton_terms(x: Any, v: Any, bounds: Any) -> tuple[Any, Any]:
    """Return first and second derivatives; see `kernels.batched_kl`."""
    xp = array_namespace(x, v)
    v = xp.maximum(v, _bounds(bounds, v))
    inverse = 1 / v
    return inverse * (v - x), inverse * x / v


def line_search(x: Any, v: Any, d: Any, slopes: Any, bounds: Any, tries: int) -> Any:
    """Choose a step for every row; see `kernels.batched_kl`."""
    xp = array_namespace(x, v)
    down = -slopes
    able = down > 0
    one = xp.ones_like(down)
    t = xp.where(able, one, 0 * one)
    found = xp.logical_not(able)
    down = xp.where(able, down, one)
    for _ in range(tries):
        ahead = xp.maximum(v + t[:, :, None] * d, _bounds(bounds, v))
        up = xp.sum((ahead - x) / ahead * d, axis=2)
        good, done = up <= 0, up <= 2 * down
        shorter = t * xp.where(good, one, down / (down + xp.where(good, 0 * up, up)))
        t = xp.where(found, t, shorter)
        found = xp.logical_or(found, done)
    return xp.where(found, t, xp.zeros_like(t))


def column_losses(x: Any, v: Any, bounds: Any, wanted: Any = None) -> Any:
    """Return the divergence of every column; see `kernels.batched_kl`."""
    xp = array_namespace(x, v)
    x, v = xp.astype(x, xp.float64), xp.maximum(xp.astype(v, xp.float64), bounds[:, None, None])
    safe = xp.where(x > 0, x, xp.ones_like(x))
    # x log(x / v) is 0 where x is.
    log = xp.log(xp.where(x > 0, safe / v, xp.ones_like(v)))
    return xp.sum(v - x + x * log, axis=1)
