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
    PRUNED = "other restarts were far ahead"
    FOUND = "all that was asked for was found"
    EXHAUSTED = "nothing was left to find"
    SAMPLES_ENDED = "the stream of samples ended"


StoppingRule: TypeAlias = Callable[[History], bool]


@dataclass(frozen=True)
class Never:
    """Run until `max_iter`."""

    def __call__(self, history: History) -> bool:
        return False


@dataclass(frozen=True)
class RelativeMeasure:
    """Stop when a measure is at most `tol` times its first value, or times `first` where that is larger."""

    # With the violation of the optimality conditions as the measure this is the rule of scikit-learn's
    # coordinate descent. It needs `tol` above zero.

    name: str  # the measure
    tol: float = 1e-4  # relative to its first value
    first: float = 0.0  # what was measured before the run, by an initialization that has iterated itself

    def __call__(self, history: History) -> bool:
        values = history[self.name]
        if self.tol <= 0 or not values:
            return False
        first = max(values[0], self.first)
        if first == 0:
            return True
        return bool(values[-1] <= self.tol * first)


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
