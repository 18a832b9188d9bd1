"""Small quadratic programs with nonnegative variables, solved exactly by exchanging active sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from nonneg._typing import BoolArray, FloatArray

# A gradient this small, in proportion to the terms it is the difference of, is rounding.
_ROUNDING = 1e-13
_SINGULAR = 1e-7
_MAX_EXCHANGES = 1000


def nonnegative_quadratic(
    gram: FloatArray, cross: FloatArray, *, on_simplex: bool = False, start: FloatArray | None = None
) -> FloatArray:
    """Minimize 0.5 x'Gx - c'x over x >= 0, or over x >= 0 with sum 1."""
    # All variables whose gradient is negative enter at once and all that come out negative leave at once,
    # which takes few exchanges where many variables are positive; where that does not lower the value, one
    # variable enters at a time, as Lawson and Hanson let it, which always does. An exchange costs O(p^3) for
    # p positive variables.
    # Lawson & Hanson (1974), Solving Least Squares Problems, ch. 23. Wolfe (1976), Mathematical Programming
    # 11, 128-149.
    problem = _Problem(gram, cross, on_simplex)
    best = problem.first(start)
    value = problem.value(best)
    one_at_a_time = False
    for _ in range(_MAX_EXCHANGES):
        slopes = problem.slopes(best)
        entering = slopes > problem.noise(best)
        entering[best > 0] = False
        if not entering.any():
            break
        if one_at_a_time:
            entering = np.arange(len(slopes)) == int(np.argmax(np.where(entering, slopes, -np.inf)))
        found = problem.descend(best, (best > 0) | entering)
        new = problem.value(found)
        if not new < value:
            if one_at_a_time:
                break
            one_at_a_time = True
            continue
        best, value, one_at_a_time = found, new, False
    return best


class _Problem:
    """The terms of one program, with the steps that the exchange is made of."""

    def __init__(self, gram: FloatArray, cross: FloatArray, on_simplex: bool) -> None:
        self.gram = np.asarray(gram, dtype=np.float64)
        self.cross = np.asarray(cross, dtype=np.float64)
        self.on_simplex = on_simplex
        # On the simplex a multiple of the matrix of ones changes nothing, and makes the equations of points
        # that are independent as points, but not as vectors, regular.
        self.shift = float(np.diagonal(self.gram).mean()) if on_simplex and len(self.cross) else 0.0
        self.scale = float(np.abs(np.diagonal(self.gram)).max(initial=0.0))

    def first(self, start: FloatArray | None) -> FloatArray:
        m = len(self.cross)
        weights = np.zeros(m)
        if start is not None:
            weights = np.maximum(np.asarray(start, dtype=np.float64), 0.0)
        if self.on_simplex:
            if not weights.sum() > 0:
                weights[int(np.argmin(0.5 * np.diagonal(self.gram) - self.cross))] = 1.0
            weights = weights / weights.sum()
        if (weights > 0).any():
            exact = self.descend(weights, weights > 0)
            if self.value(exact) <= self.value(weights):
                return exact
        return weights

    def value(self, weights: FloatArray) -> float:
        return float(0.5 * weights @ (self.gram @ weights) - self.cross @ weights)

    def slopes(self, weights: FloatArray) -> FloatArray:
        # How fast the value falls when a variable grows; on the simplex at the cost of the others.
        slopes: FloatArray = self.cross - self.gram @ weights
        return slopes - float(weights @ slopes) if self.on_simplex else slopes

    def noise(self, weights: FloatArray) -> float:
        size = max(float(weights.sum()) * self.scale, float(np.abs(self.cross).max(initial=0.0)))
        return _ROUNDING * size

    def solve(self, passive: BoolArray) -> FloatArray:
        """Return a minimizer with all other variables zero, whatever its signs."""
        index = np.flatnonzero(passive)
        out = np.zeros(len(passive))
        if not len(index):
            return out
        system = self.gram[np.ix_(index, index)] + self.shift
        solve = _solver(system, self.scale)
        out[index] = solve(self.cross[index])
        if self.on_simplex:
            even = solve(np.ones(len(index)))
            out[index] += (1.0 - out[index].sum()) / even.sum() * even
        return out

    def descend(self, weights: FloatArray, passive: BoolArray) -> FloatArray:
        """Return the minimizer on a support within `passive`, below `weights` where a step allows it."""
        wanted = self.solve(passive)
        # First let all negative variables go at once; the value decides whether that was right.
        dropped, short = wanted, passive
        while dropped[short].min(initial=1.0) <= 0:
            short = short & (dropped > 0)
            dropped = self.solve(short)
        if self.value(dropped) < self.value(weights):
            return dropped
        current = weights
        while wanted[passive].min(initial=1.0) <= 0:
            # As far towards the minimizer as no variable turns negative; those that are zero then leave.
            falling = passive & (wanted <= 0)
            fall = np.where(falling, current - wanted, 1.0)
            shares = np.where(falling & (fall > 0), current / np.where(fall > 0, fall, 1.0), 1.0)
            shares[falling & ~(fall > 0)] = 0.0
            step = float(shares.min())
            leaving = falling & (shares <= step)
            passive = passive & ~leaving
            current = np.where(passive, np.maximum(current + step * (wanted - current), 0.0), 0.0)
            wanted = self.solve(passive)
        return wanted


def _solver(system: FloatArray, scale: float) -> Callable[[FloatArray], FloatArray]:
    """Return what solves the equations."""
    # Points that depend on one another make them singular, and the value may then fall without end along a
    # line. A little on the diagonal, which changes the value by less than rounding, turns that into a
    # minimizer far out, with negative variables that leave.
    ridge = 0.0
    while True:
        try:
            factor = cho_factor(system + ridge * np.eye(len(system)), check_finite=False)
        except LinAlgError:
            factor = None
        if factor is not None:
            pivots = np.diagonal(factor[0])
            if ridge > 0 or pivots.min() > _SINGULAR * pivots.max():
                return lambda right: cho_solve(factor, right, check_finite=False)
        ridge = max(10.0 * ridge, _ROUNDING * scale, np.finfo(np.float64).tiny)
