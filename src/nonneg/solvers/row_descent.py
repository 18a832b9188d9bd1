"""One engine for methods that improve the rows of W, then those of Ht: extrapolation with a safeguard.

The accepted pair is the extrapolated W with the Ht that answers it: its loss comes out of the update of Ht,
so that the safeguard costs nothing while extrapolation helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nonneg._typing import Array
from nonneg.solvers.extrapolation import Schedule, extrapolate_bounded

# Steeper than for least squares (Ang & Gillis 2019), from a smaller first momentum.
SCHEDULE = Schedule(0.3, growth=1.1, ceiling_growth=1.02, decay=2.0)


@dataclass(frozen=True)
class DescentState:
    """The accepted pair, and what extrapolation remembers."""

    W: Array  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_plain: Array | None = None  # the last factors before extrapolation
    Ht_plain: Array | None = None
    Ht_next: Array | None = None  # the extrapolated right factor with which the next iteration begins
    momentum: float = 0.0  # see `extrapolation.Momentum`
    ceiling: float = 1.0


@dataclass(frozen=True)
class RowDescent:
    """The two halves of an iteration."""

    left: Callable[[Array, Array], Array]  # takes W and Ht and returns a better W
    # Takes W and Ht and returns a better Ht with the loss of the pair; components that are frozen stay.
    right: Callable[[Array, Array], tuple[Array, float]]
    # Takes W and Ht and returns a pair whose loss is certainly not higher, with its loss. None where `left`
    # and `right` are such themselves.
    safe: Callable[[Array, Array], tuple[Array, Array, float]] | None = None
    extrapolate: bool = True  # whether iterations are extrapolated

    def advance(self, state: DescentState, momentum: float) -> DescentState:
        """Improve W, then Ht."""
        Ht = state.Ht_next if momentum and state.Ht_next is not None else state.Ht
        new_W = self.left(state.W, Ht)
        W = extrapolate_bounded(new_W, state.W_plain, momentum)
        new_B, loss = self.right(W, Ht)
        Ht_next = extrapolate_bounded(new_B, state.Ht_plain, momentum) if momentum else None
        return replace(state, W=W, Ht=new_B, loss=loss, W_plain=new_W, Ht_plain=new_B, Ht_next=Ht_next)

    def step(self, state: DescentState) -> tuple[DescentState, dict[str, float]]:
        """Do one iteration that does not raise the loss."""
        momentum = state.momentum
        after = self.advance(state, momentum)
        if momentum and not after.loss <= state.loss:
            slower, ceiling, _ = SCHEDULE.rejected(momentum)
            after = self.advance(replace(state, momentum=slower, ceiling=ceiling), 0.0)
        elif self.extrapolate:
            faster, ceiling, _ = SCHEDULE.accepted(momentum, state.ceiling)
            after = replace(after, momentum=faster, ceiling=ceiling)
        if not after.loss <= state.loss and self.safe is not None:
            W, Ht, loss = self.safe(state.W, state.Ht)
            after = DescentState(W, Ht, loss)
        if not after.loss <= state.loss:
            # Rounding only: keep the better pair and let the stopping rule end the run.
            after = replace(state, momentum=0.0)
        return after, {"loss": after.loss}
