"""Why a run ends: reasons, and stopping rules over the history."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
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
    """Stop when the error decreased by less than `tol` times its first value in `window` iterations."""

    # The error is the square root of twice the loss, as in scikit-learn's multiplicative updates; it is
    # checked every `window` iterations. It needs `tol` above zero.

    tol: float = 1e-4  # relative to the first error
    window: int = 10  # how many iterations are compared

    def __call__(self, history: History) -> bool:
        losses = history.loss
        if self.tol <= 0 or len(losses) <= self.window or (len(losses) - 1) % self.window:
            return False
        first, before, now = (math.sqrt(2.0 * max(losses[i], 0.0)) for i in (0, -1 - self.window, -1))
        return before - now <= self.tol * first


@dataclass(frozen=True)
class SlowDecrease:
    """Stop when the error decreased by less than `tol` times its first value per iteration."""

    # The rule of multiplicative updates above for methods whose iterations do more: the mean over at least
    # `window` iterations, checked every `window`, because single extrapolated ones may gain nothing.

    tol: float = 1e-4  # relative to the first error
    window: int = 5  # iterations over which the decrease is averaged

    def __call__(self, history: History) -> bool:
        numbers, losses = history.n_iter, history.loss
        if self.tol <= 0 or len(losses) < 2 or not self.is_checked(numbers[-2], numbers[-1]):
            return False
        earlier = next(
            (i for i in range(len(numbers) - 1, -1, -1) if numbers[i] <= numbers[-1] - self.window), -1
        )
        if earlier < 0:
            return False
        first, before, now = (math.sqrt(2.0 * max(losses[i], 0.0)) for i in (0, earlier, -1))
        return before - now <= self.tol * first * (numbers[-1] - numbers[earlier])

    def is_checked(self, before: int, now: int) -> bool:
        """Tell whether the rule is looked at after iteration `now`, the last one being `before`."""
        return (before - 1) // self.window < (now - 1) // self.window


def least_squares_rule(tol: float) -> FirstOf:
    """Return the rule of scikit-learn's coordinate descent, or a slow decrease, whichever comes first."""
    return FirstOf((RelativeMeasure("violation", tol), SlowDecrease(tol)))


@dataclass(frozen=True)
class FirstOf:
    """Stop when any of the rules says so."""

    rules: tuple[StoppingRule, ...]  # the rules

    def __call__(self, history: History) -> bool:
        return any(rule(history) for rule in self.rules)


def sentence_of(rule: StoppingRule, history: History) -> str:
    """Say which rule ended a run."""
    if isinstance(rule, FirstOf):
        return next((sentence_of(part, history) for part in rule.rules if part(history)), "")
    return str(getattr(rule, "sentence", StopReason.CONVERGED.value))
