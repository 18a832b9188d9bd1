"""Stopping rules of MERIT besides the duality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nonneg.iteration import History


@dataclass(frozen=True)
class ResidualBelow:
    """Stop when the largest residual is small enough, as Theorem 2 requires (eta + 2 delta)."""

    limit: float  # a norm
    sentence: ClassVar[str] = "the largest residual is at most `residual_tol`"

    def __call__(self, history: History) -> bool:
        return bool(history["largest_residual"][-1] <= self.limit) if len(history) else False


@dataclass(frozen=True)
class RelativeChange:
    """Stop when an iteration changed the objective by at most a fraction of it."""

    tol: float  # the fraction
    sentence: ClassVar[str] = "the relative change of the objective is at most `change_tol`"

    def __call__(self, history: History) -> bool:
        losses = history.loss
        return len(losses) > 1 and bool(abs(losses[-2] - losses[-1]) <= self.tol * abs(losses[-1]))


@dataclass(frozen=True)
class AnchorsUnchanged:
    """Stop when the anchors have not changed for some iterations."""

    window: int  # the number of iterations without a new anchor
    sentence: ClassVar[str] = "the anchors have not changed for `anchor_window` iterations"

    def __call__(self, history: History) -> bool:
        if len(history) < self.window:
            return False
        return not any(history["new_anchors"][-self.window :])
