"""Line searches for many problems at once, each with its own step, that say whether they succeeded.

All problems of a batch make their trials together; those that are done stand still.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, Namespace

Point = tuple[Array, ...]
"""Arrays whose first axis is the batch."""

# Units in the last place up to which values count as equal: the error of sums of a few thousand terms.
NOISE = 8.0
# The constants c1 and c2 of the strong Wolfe conditions (Nocedal & Wright), SciPy's values.
DECREASE, CURVATURE = 1e-4, 0.9


class Line(Protocol):
    """A function along a curve, as far as a line search needs it."""

    def at(self, step: Array) -> Point:
        """Return the point at a step."""

    def value(self, point: Point) -> Array:
        """Return the value to be decreased."""

    def slope(self, point: Point, step: Array) -> Array:
        """Return the derivative of the value by the step."""


@dataclass(frozen=True)
class SearchResult:
    """End of a line search."""

    point: Point  # the points taken; that of step 0 where no step decreased the value
    step: Array  # the steps taken
    value: Array  # the values there
    # Whether the conditions of the search hold there, or nothing beyond rounding was to be gained.
    succeeded: Array
    n_trials: int  # points looked at


def select(mask: Array, new: Point, old: Point) -> Point:
    """Take the new point where the mask says so."""
    xp = array_namespace(mask)
    if bool(xp.all(mask)):
        return new
    if not bool(xp.any(mask)):
        return old
    return tuple(
        xp.where(xp.reshape(mask, (-1,) + (1,) * (a.ndim - 1)), a, b) for a, b in zip(new, old, strict=True)
    )


def strong_wolfe(
    line: Line, origin: Point, value: Array, slope: Array, *, max_trials: int = 20
) -> SearchResult:
    """Find steps with enough decrease and a slope that is small enough, beginning at step 1."""
    # The bracket is doubled until it holds a step, then cut by cubic or quadratic interpolation or in half.
    # The trials are those of Nocedal & Wright's algorithms 3.5 and 3.6 as SciPy's `line_search` makes them.
    # A search ends after a trial that did not decrease the value if the decrease that the slope predicts up
    # to there, ``-t f'(0)``, is within the rounding of the value (`NOISE` times the precision of its type):
    # smaller steps predict less, and what they would find is the rounding. The point stays what it was.
    xp = array_namespace(value)
    zero, infinite = xp.zeros_like(value), xp.full_like(value, float("inf"))
    step = xp.ones_like(value)
    low, low_value, low_slope = zero, value, slope
    # No upper end is known yet while `high` is infinite.
    high, high_value = infinite, infinite
    last, last_value = zero, value
    bracketed = xp.zeros_like(value, dtype=xp.bool)
    noise = NOISE * float(xp.finfo(value.dtype).eps) * xp.abs(value)
    active = slope < 0
    succeeded = ~active
    point, n_trials = origin, 0
    # Interpolation through equal points divides by zero on purpose: what is not finite is not used.
    with np.errstate(all="ignore"):
        for _ in range(max_trials):
            if not bool(xp.any(active)):
                break
            n_trials += 1
            trial = line.at(step)
            trial_value = line.value(trial)
            # Written so that NaN counts as too high.
            lower = active & (trial_value <= value + DECREASE * step * slope) & (trial_value < low_value)
            raised = active & ~lower
            found_slope = line.slope(trial, step) if bool(xp.any(lower)) else zero
            found_slope = xp.where(lower, found_slope, zero)
            accepted = lower & (xp.abs(found_slope) <= -CURVATURE * slope)
            point = select(lower, trial, point)
            negligible = raised & (-slope * step <= noise)
            succeeded = succeeded | accepted | negligible
            turned = lower & (found_slope * xp.where(bracketed, high - low, xp.ones_like(low)) >= 0)
            ahead = lower & ~turned
            # The point left behind serves the next cubic; a fresh bracket begins with step 0.
            from_high = bracketed & (raised | turned)
            last = xp.where(
                from_high, high, xp.where(bracketed & ahead, low, xp.where(bracketed, last, zero))
            )
            last_value = xp.where(
                from_high,
                high_value,
                xp.where(bracketed & ahead, low_value, xp.where(bracketed, last_value, value)),
            )
            first_bracket = ~bracketed & (raised | turned)
            high, high_value = (
                xp.where(raised, step, xp.where(turned, low, high)),
                xp.where(raised, trial_value, xp.where(turned, low_value, high_value)),
            )
            low, low_value, low_slope = (
                xp.where(lower, new, old)
                for new, old in ((step, low), (trial_value, low_value), (found_slope, low_slope))
            )
            bracketed = bracketed | first_bracket
            active = active & ~accepted & ~negligible
            if not bool(xp.any(active)):
                break
            if not bool(xp.any(bracketed)):
                step = xp.where(active, 2.0 * step, step)
                continue
            inside = _interpolated(
                xp, low, low_value, low_slope, high, high_value, last, last_value, first_bracket
            )
            step = xp.where(active, xp.where(bracketed, inside, 2.0 * step), step)
    return SearchResult(point, low, low_value, succeeded, n_trials)


def _interpolated(
    xp: Namespace,
    low: Array,
    low_value: Array,
    low_slope: Array,
    high: Array,
    high_value: Array,
    last: Array,
    last_value: Array,
    first: Array,
) -> Array:
    width = high - low
    left, right = xp.where(width < 0, high, low), xp.where(width < 0, low, high)
    # The cubic through both ends and the last point, with the slope at the low end.
    db, dc = width, last - low
    yb, yc = high_value - low_value - low_slope * db, last_value - low_value - low_slope * dc
    denominator = (db * dc) ** 2 * (db - dc)
    a = (dc**2 * yb - db**2 * yc) / denominator
    b = (db**3 * yc - dc**3 * yb) / denominator
    root = b * b - 3.0 * a * low_slope
    cubic = low + (-b + xp.sqrt(xp.where(root >= 0, root, xp.full_like(root, float("nan"))))) / (3.0 * a)
    margin = 0.2 * width
    usable = ~first & (cubic <= right - margin) & (cubic >= left + margin) & xp.isfinite(cubic)
    quadratic = low - low_slope * db**2 / (2.0 * yb)
    margin = 0.1 * width
    fits = (quadratic <= right - margin) & (quadratic >= left + margin) & xp.isfinite(quadratic)
    return xp.where(usable, cubic, xp.where(fits, quadratic, low + 0.5 * width))


def backtracking(
    line: Line, origin: Point, value: Array, slope: Array, *, max_trials: int = 30
) -> SearchResult:
    """Backtrack: halve the step, beginning at 1, until the value decreases at all."""
    # As in `strong_wolfe`, a search ends where only the rounding of the value is left to gain.
    xp = array_namespace(value)
    step, taken, best = xp.ones_like(value), xp.zeros_like(value), value
    noise = NOISE * float(xp.finfo(value.dtype).eps) * xp.abs(value)
    active = slope < 0
    succeeded = ~active
    point, n_trials = origin, 0
    for _ in range(max_trials):
        if not bool(xp.any(active)):
            break
        n_trials += 1
        trial = line.at(step)
        trial_value = line.value(trial)
        lower = active & (trial_value < value)
        if bool(xp.all(lower)):
            return SearchResult(trial, step, trial_value, lower, n_trials)
        point = select(lower, trial, point)
        taken, best = xp.where(lower, step, taken), xp.where(lower, trial_value, best)
        ended = lower | (active & (-slope * step <= noise))
        succeeded = succeeded | ended
        active = active & ~ended
        step = xp.where(active, 0.5 * step, step)
    return SearchResult(point, taken, best, succeeded, n_trials)


LINE_SEARCHES: dict[str, Callable[..., SearchResult]] = {"wolfe": strong_wolfe, "backtracking": backtracking}
"""The searches by name."""
