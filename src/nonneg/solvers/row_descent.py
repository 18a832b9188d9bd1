"""One engine for methods that improve the rows of W, then those of Ht: extrapolation with a safeguard.

The accepted pair is the extrapolated W with the Ht that answers it: its loss comes out of the update of Ht,
so that the safeguard costs nothing while extrapolation helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from array_api_compat import array_namespace

from nonneg._typing import Array

# Growth of the momentum and of its ceiling, and the division after a rejected step (Ang & Gillis 2019).
MOMENTUM, GROWTH, CEILING_GROWTH, DECAY = 0.3, 1.1, 1.02, 2.0
# An extrapolated entry is at least this share of the plain one: a zero may make the model zero where the
# data are not.
LOWEST_SHARE = 0.1


@dataclass(frozen=True)
class DescentState:
    """The accepted pair, and what extrapolation remembers."""

    W: Array  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_plain: Array | None = None  # the last factors before extrapolation
    Ht_plain: Array | None = None
    Ht_next: Array | None = None  # the extrapolated right factor with which the next iteration begins
    momentum: float = 0.0  # share of the last change that is added again, and its present limit
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
        W = extrapolated(new_W, state.W_plain, momentum)
        new_B, loss = self.right(W, Ht)
        Ht_next = extrapolated(new_B, state.Ht_plain, momentum) if momentum else None
        return replace(state, W=W, Ht=new_B, loss=loss, W_plain=new_W, Ht_plain=new_B, Ht_next=Ht_next)

    def step(self, state: DescentState) -> tuple[DescentState, dict[str, float]]:
        """Do one iteration that does not raise the loss."""
        momentum = state.momentum
        after = self.advance(state, momentum)
        if momentum and not after.loss <= state.loss:
            plain = replace(state, momentum=momentum / DECAY, ceiling=momentum)
            after = self.advance(plain, 0.0)
        elif self.extrapolate:
            ceiling = min(1.0, CEILING_GROWTH * state.ceiling)
            faster = min(ceiling, GROWTH * momentum) if momentum else MOMENTUM
            after = replace(after, momentum=faster, ceiling=ceiling)
        if not after.loss <= state.loss and self.safe is not None:
            W, Ht, loss = self.safe(state.W, state.Ht)
            after = DescentState(W, Ht, loss)
        if not after.loss <= state.loss:
            # Rounding only: keep the better pair and let the stopping rule end the run.
            after = replace(state, momentum=0.0)
        return after, {"loss": after.loss}


def extrapolated(new: Array, old: Array | None, momentum: float) -> Array:
    """Return new + momentum (new - old), held above a share of `new`."""
    if not momentum or old is None:
        return new
    out = new + momentum * (new - old)
    lowest = LOWEST_SHARE * new
    return array_namespace(new).where(out < lowest, lowest, out)
