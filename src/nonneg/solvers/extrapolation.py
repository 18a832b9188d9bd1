"""Extrapolation with restarts: the momentum schedule of all alternating solvers.

Ang & Gillis (2019), Neural Computation 31(2), Algorithm 3: the momentum grows while extrapolated steps lower
the loss. A step that raises the loss is rejected, the momentum shrinks, and its ceiling becomes the rejected
value. The accepted pair is the extrapolated W with the H fitted to it: its loss comes out of the update of H,
so that the safeguard costs nothing while extrapolation helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, SampleArray
from nonneg.iteration.loop import Candidates, changed, unchanged

# An extrapolated entry is at least this fraction of the plain one: a zero could make the model zero where the
# data are not.
LOWEST_FRACTION = 0.1


# Momentum at first, its growth and that of its ceiling after a step that lowered the loss, and by what it is
# divided after one that raised it: as in public implementations of the same schedule for any block updates
# (Ang, Cohen, Gillis & Hien 2021, Numerical Linear Algebra with Applications 28(5)).
INITIAL, GROWTH, CEILING_GROWTH, DECAY = 0.5, 1.05, 1.01, 1.5
# Rejected steps in a row after which the momentum stays zero: each of them costs a second iteration.
MAX_RESTARTS = 4


def accepted(momentum: float, ceiling: float) -> dict[str, float]:
    """Return what becomes of the momentum, in the state of a solver, after a step that lowered the loss."""
    ceiling = min(1.0, CEILING_GROWTH * ceiling)
    return {"momentum": min(ceiling, GROWTH * momentum) if momentum else INITIAL, "ceiling": ceiling}


def rejected(momentum: float) -> dict[str, float]:
    """Return what becomes of it after a step that raised the loss."""
    return {"momentum": momentum / DECAY, "ceiling": momentum}


def extrapolates(momentum: Any) -> bool:
    """Tell whether there is a momentum; one in an array is not zero, and nobody waits for its value."""
    return not isinstance(momentum, float) or momentum != 0.0


def extrapolate_bounded(new: Array, old: Array | None, momentum: Any) -> Array:
    """Return new + momentum (new - old), bounded below by a fraction of `new`."""
    if old is None or not extrapolates(momentum):
        return new
    out = new + momentum * (new - old)
    lowest = LOWEST_FRACTION * new
    # The small arrays of small fits are done sooner than a namespace is found.
    xp = np if isinstance(new, np.ndarray) else array_namespace(new)
    return xp.where(out < lowest, lowest, out)


@dataclass(frozen=True)
class ExtrapolatedState:
    """The accepted pair, and what extrapolation remembers."""

    W: SampleArray  # the accepted factors; X is about W H
    Ht: Array
    W_plain: SampleArray | None = None  # the last factors before extrapolation
    Ht_plain: Array | None = None
    Ht_next: Array | None = None  # the extrapolated H' with which the next iteration begins
    loss: float = float("inf")  # of the accepted pair, penalties included
    slack: float = 0.0  # what rounding may have added to it
    momentum: float = INITIAL  # fraction of the last change that is added again
    ceiling: float = 1.0  # its present limit
    restarts: int = 0  # rejected extrapolations in a row


def extrapolated_or_plain(
    advance: Callable[..., dict[str, Any]], state: Any, *, slack: float = 0.0
) -> Candidates:
    """Yield the extrapolated iteration, and in case its loss is higher, the plain one."""
    slower = changed(state, slack=slack)
    # The first iteration has nothing to extrapolate from.
    if state.momentum and state.W_plain is not None:
        momentum = state.momentum
        faster = accepted(momentum, state.ceiling)
        yield changed(state, **faster, restarts=0, slack=0.0), advance, momentum
        restarts = state.restarts + 1
        following = {"momentum": 0.0} if restarts >= MAX_RESTARTS else {}
        slower = changed(slower, **rejected(momentum) | following, restarts=restarts)
    changes = yield slower, advance, 0.0
    # Rounding only: keep the better pair and let the stopping rule end the run.
    better = changed(state, momentum=0.0, W_plain=state.W, Ht_plain=state.Ht)
    yield changed(better, **{name: changes[name] for name in changes if name == "violation"}), unchanged
