"""Multiplicative updates: the minimizer of the majorizer of a beta-divergence."""

from __future__ import annotations

from array_api_compat import array_namespace

from nonneg._arrays import clipped
from nonneg._typing import Array

# Newton iterations for the ratio of an update with an L2 penalty.
NEWTON_STEPS = 8


def descent_exponent(beta: float) -> float:
    """Return the exponent with which a multiplicative update never increases the loss."""
    if beta < 1:
        return 1.0 / (2.0 - beta)
    return 1.0 / (beta - 1.0) if beta > 2 else 1.0


def update_ratio(factor: Array, ratio: Array, power: Array, *, l1: float, l2: float, beta: float) -> Array:
    """Return the factor by which every entry is multiplied: the minimizer u of the majorizer."""
    # Without L2 this is (ratio / (power + l1))^g with Fevotte & Idier's exponent g. With it the root of
    # (power + l1) u^a + l2 w u^(a + b) = ratio, a = 1/g, b = 2 - beta between 1 and 2 and 1 below 1, which
    # for Kullback-Leibler is a quadratic equation. From 2 on the penalty joins the denominator: there its
    # majorizer has the same power as the divergence's.
    # Fevotte & Idier (2011), Neural Computation 23(9), Section 4.
    xp = array_namespace(factor)
    cost = power + l1 if l1 else power
    if l2 and beta >= 2:
        cost = cost + l2 * factor
    tiny = float(xp.finfo(factor.dtype).smallest_normal)
    # Where both are zero nothing depends on the entry.
    base = ratio / clipped(cost, tiny)
    base = xp.where(ratio > 0, base, xp.zeros_like(base))
    base = clipped(base, high=float(xp.finfo(factor.dtype).max) ** 0.25)
    if beta < 1:
        base = base ** (1.0 / (2.0 - beta))
    elif beta > 2:
        base = base ** (1.0 / (beta - 1.0))
    if not l2 or beta >= 2:
        return base
    ridge = l2 * factor
    if beta == 1:
        # The root of ridge u^2 + cost u - ratio without cancellation.
        return 2 * ratio / clipped(cost + xp.sqrt(cost**2 + 4 * ridge * ratio), tiny)
    a, b = (1.0, 2.0 - beta) if beta > 1 else (2.0 - beta, 1.0)
    u = base
    for _ in range(NEWTON_STEPS):
        # Convex and increasing in u: Newton's iterates come down to the root and never pass it.
        rest = cost * u**a + ridge * u ** (a + b) - ratio
        slope = a * cost * u ** (a - 1) + (a + b) * ridge * u ** (a + b - 1)
        u = clipped(u - rest / clipped(slope, tiny), 0.0)
    return u
