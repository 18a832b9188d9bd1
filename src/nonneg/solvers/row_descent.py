"""Alternating descent with extrapolation: the iteration of `kl-cd`.

The accepted pair is the extrapolated W with the H fitted to it: its loss comes out of the update of H, so
that the safeguard costs nothing while extrapolation helps.
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
    Ht_next: Array | None = None  # the extrapolated H' with which the next iteration begins
    momentum: float = 0.0  # see `extrapolation.Momentum`
    ceiling: float = 1.0


@dataclass(frozen=True)
class RowDescent:
    """The updates of an iteration."""

    update_W: Callable[[Array, Array], Array]  # takes W and Ht and returns a better W
    # Takes W and Ht and returns a better Ht with the loss of the pair; frozen components stay.
    update_H: Callable[[Array, Array], tuple[Array, float]]
    extrapolate: bool = True  # whether iterations are extrapolated

    def advance(self, state: DescentState, momentum: float) -> DescentState:
        """Improve W, then Ht."""
        Ht = state.Ht_next if momentum and state.Ht_next is not None else state.Ht
        new_W = self.update_W(state.W, Ht)
        W = extrapolate_bounded(new_W, state.W_plain, momentum)
        new_Ht, loss = self.update_H(W, Ht)
        Ht_next = extrapolate_bounded(new_Ht, state.Ht_plain, momentum) if momentum else None
        return replace(state, W=W, Ht=new_Ht, loss=loss, W_plain=new_W, Ht_plain=new_Ht, Ht_next=Ht_next)

    def step(self, state: DescentState) -> tuple[DescentState, dict[str, float]]:
        """Do one iteration that does not increase the loss."""
        momentum = state.momentum
        after = self.advance(state, momentum)
        if momentum and not after.loss <= state.loss:
            slower, ceiling, _ = SCHEDULE.rejected(momentum)
            after = self.advance(replace(state, momentum=slower, ceiling=ceiling), 0.0)
        elif self.extrapolate:
            faster, ceiling, _ = SCHEDULE.accepted(momentum, state.ceiling)
            after = replace(after, momentum=faster, ceiling=ceiling)
        if not after.loss <= state.loss:
            # Rounding only: keep the better pair and let the stopping rule end the run.
            after = replace(state, momentum=0.0)
        return after, {"loss": after.loss}
