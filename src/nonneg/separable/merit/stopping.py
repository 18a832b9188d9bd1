"""When MERIT ends, beside its duality gap: rules over the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nonneg.iteration import History


@dataclass(frozen=True)
class ResidualBelow:
    """Stop when the longest residual is short enough, as Theorem 2 asks (eta + 2 delta)."""

    limit: float  # the length
    sentence: ClassVar[str] = "no residual is longer than `residual_tol`"

    def __call__(self, history: History) -> bool:
        return bool(history["largest_residual"][-1] <= self.limit) if len(history) else False


@dataclass(frozen=True)
class RelativeChange:
    """Stop when an iteration changed the objective by at most a share of it."""

    tol: float  # the share
    sentence: ClassVar[str] = "the objective changed by at most the share `change_tol`"

    def __call__(self, history: History) -> bool:
        losses = history.loss
        return len(losses) > 1 and bool(abs(losses[-2] - losses[-1]) <= self.tol * abs(losses[-1]))


@dataclass(frozen=True)
class AnchorsUnchanged:
    """Stop when the anchors have been the same for some iterations."""

    window: int  # how many iterations in a row brought no other anchor
    sentence: ClassVar[str] = "the anchors were the same for `anchor_window` iterations"

    def __call__(self, history: History) -> bool:
        if len(history) < self.window:
            return False
        return not any(history["new_anchors"][-self.window :])
