"""Elementwise parts of the beta-divergences in array API operations.

They also serve masked entries: `mask` is 1 where observed, and the data are 0 elsewhere.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def ratio_terms(x: Any, v: Any, beta: float, lower_bound: float, mask: Any = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2) and v^(beta - 1); see `kernels.beta_products.ratio_terms`."""
    xp = array_namespace(x, v)
    v = xp.clip(v, min=lower_bound)
    if beta == 1:
        return x / v, mask
    power = 1 / v if beta == 0 else v ** (beta - 1)
    ratio = x * power / v
    return ratio, power if mask is None else power * mask


def _divergences(x: Any, v: Any, beta: float, lower_bound: float) -> Any:
    xp = array_namespace(x, v)
    x, v = xp.astype(x, xp.float64), xp.astype(v, xp.float64)
    if beta == 2:
        return 0.5 * (x - v) ** 2
    v = xp.clip(v, min=lower_bound)
    positive = x > 0
    safe = xp.where(positive, x, v)
    if beta == 1:
        return v - x + x * xp.log(safe / v)
    if beta == 0:
        return x / v - 1 - xp.log(safe / v)
    power = v ** (beta - 1)
    own = xp.where(positive, safe**beta, xp.zeros_like(safe))
    return (own + (beta - 1) * power * v - beta * x * power) / (beta * (beta - 1))


def row_losses(x: Any, v: Any, beta: float, lower_bound: float, weights: Any = None, mask: Any = None) -> Any:
    """Return the divergence of every row in float64; see `kernels.beta_products.row_losses`."""
    terms = _divergences(x, v, beta, lower_bound)
    xp = array_namespace(terms)
    for factor in (mask, weights):
        if factor is not None:
            terms = terms * xp.astype(factor, xp.float64)
    return xp.sum(terms, axis=1)


def column_losses(
    x: Any, v: Any, beta: float, lower_bound: float, row_weights: Any = None, weights: Any = None
) -> Any:
    """Return the divergence of every column in float64; see `kernels.beta_products.column_losses`."""
    terms = _divergences(x, v, beta, lower_bound)
    xp = array_namespace(terms)
    if weights is not None:
        terms = terms * xp.astype(weights, xp.float64)
    if row_weights is not None:
        terms = terms * xp.astype(row_weights, xp.float64)[:, None]
    return xp.sum(terms, axis=0)


def _slopes(x: Any, v: Any, weights: Any, beta: float, lower_bound: float) -> tuple[Any, Any, Any]:
    xp = array_namespace(x, v)
    v = xp.clip(v, min=lower_bound)
    raised = 1 / v if beta == 1 else v ** (beta - 2)
    if weights is not None:
        raised = raised * weights
    return raised * (v - x), raised, v


def newton_terms(
    x: Any,
    v: Any,
    weights: Any,
    beta: float,
    lower_bound: float,
    curvature_bound: float = 0.0,
    exact: Any = None,
    out: Any = None,
) -> tuple[Any, Any]:
    """Return weighted first and second derivatives; see `kernels.beta_products.newton_terms`."""
    xp = array_namespace(x, v)
    slope, raised, v = _slopes(x, v, weights, beta, lower_bound)
    convex = 1 <= beta <= 2
    if exact is None and not convex:
        return slope, raised
    own = raised
    if 1 < beta < 2 and curvature_bound > lower_bound:
        own = xp.clip(v, min=curvature_bound) ** (beta - 2)
        own = own if weights is None else own * weights
    true = (beta - 1) * own + (2 - beta) * raised * x / v
    return slope, true if convex else xp.where(exact[:, None], true, raised)


def line_search(
    x: Any,
    v: Any,
    d: Any,
    weights: Any,
    beta: float,
    lower_bound: float,
    linear: Any,
    quadratic: Any,
    slopes: Any,
    tries: int,
) -> tuple[Any, Any]:
    """Choose a step along d for every row; see `kernels.beta_products.line_search`."""
    xp = array_namespace(x, v)
    down = -slopes
    able = down > 0
    one = xp.ones_like(down)
    t = xp.where(able, one, 0 * one)
    found = xp.logical_not(able)
    down = xp.where(able, down, one)
    convex = 1 <= beta <= 2
    base: Any = None if convex else row_losses(x, v, beta, lower_bound, weights)
    for _ in range(tries):
        if convex:
            slope = _slopes(x, v + t[:, None] * d, weights, beta, lower_bound)[0]
            up = xp.sum(slope * d, axis=1) + linear + quadratic * t
            good, done = up <= 0, up <= 2 * down
            shorter = t * xp.where(good, one, down / (down + xp.where(good, 0 * up, up)))
            t = xp.where(found, t, shorter)
            found = xp.logical_or(found, done)
        else:
            loss = row_losses(x, v + t[:, None] * d, beta, lower_bound, weights)
            penalty = xp.astype(t * (linear + 0.5 * quadratic * t), base.dtype)
            gain = base - loss - penalty
            ending = xp.logical_and(xp.astype(down, base.dtype) < 1e-9 * base, gain > -1e-14 * base)
            found = xp.logical_or(found, xp.logical_or(gain > 0, ending))
            t = xp.where(found, t, 0.4 * t)
    t = xp.where(found, t, xp.zeros_like(t))
    return v + t[:, None] * d, t
