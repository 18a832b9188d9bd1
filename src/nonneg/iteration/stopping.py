"""Reasons why a run ends, and stopping rules over the history."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeAlias

from nonneg.iteration.history import History


class StopReason(StrEnum):
    """The sentence that says why a run ended."""

    CONVERGED = "the tolerance `tol` was reached"
    MAX_ITER = "`max_iter` iterations were done before `tol` was reached"
    STALLED = "no step decreased the loss any further"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "the run was interrupted"
    FOUND = "all that was asked for was found"
    EXHAUSTED = "nothing was left to find"
    SAMPLES_ENDED = "the stream of samples ended"


StoppingRule: TypeAlias = Callable[[History], bool]


@dataclass(frozen=True)
class RelativeMeasure:
    """Stop when a measure is at most `tol` times its first value."""

    # With the violation of the optimality conditions as the measure this is the rule of scikit-learn's
    # coordinate descent. It needs `tol` above zero.

    name: str  # the measure
    tol: float = 1e-4  # relative to its first value

    def __call__(self, history: History) -> bool:
        values = history[self.name]
        if self.tol <= 0 or not values:
            return False
        return bool(values[-1] <= self.tol * values[0])


@dataclass(frozen=True)
class RelativeDecrease:
    """Stop when the error decreased by less than `tol` times its first value in `per` iterations."""

    # The error is the square root of twice the loss, as in scikit-learn's multiplicative updates; the mean
    # decrease over at least `window` iterations is checked every `window`. It needs `tol` above zero.

    tol: float = 1e-4  # relative to the first error
    window: int = 10  # iterations over which the decrease is averaged
    per: int = 10

    def __call__(self, history: History) -> bool:
        numbers, losses = history.n_iter, history.loss
        if self.tol <= 0 or len(losses) < 2:
            return False
        if (numbers[-2] - 1) // self.window == (numbers[-1] - 1) // self.window:
            return False
        earlier = bisect_right(numbers, numbers[-1] - self.window) - 1
        if earlier < 0:
            return False
        first, before, now = (math.sqrt(2.0 * max(losses[i], 0.0)) for i in (0, earlier, -1))
        return (before - now) * self.per <= self.tol * first * (numbers[-1] - numbers[earlier])


# The same for methods whose iterations do more; single extrapolated ones may gain nothing.
SlowDecrease = partial(RelativeDecrease, window=5, per=1)


def least_squares_rule(tol: float) -> StoppingRule:
    """Return the rule of scikit-learn's coordinate descent, or a slow decrease, whichever comes first."""
    violation, decrease = RelativeMeasure("violation", tol), SlowDecrease(tol)
    return lambda history: violation(history) or decrease(history)
