"""Multiplicative updates for any beta-divergence: each minimizes a majorizer, so that no step is rejected.

An iteration is one pass over the data: it evaluates the loss of the current pair, updates the rows of W and
sums up what the update of H needs at the new rows. So the loss of the accepted pair is always known, and the
state carries the updated W and the sums for the update of H.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import clipped, to_device
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import RelativeDecrease
from nonneg.iteration.loop import Candidates, Descent, changed, solver, unchanged
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties

# Newton iterations for the ratio of an update with an L2 penalty.
NEWTON_STEPS = 8


def descent_exponent(beta: float) -> float:
    """Return the exponent with which a multiplicative update never increases the loss."""
    if beta < 1:
        return 1.0 / (2.0 - beta)
    return 1.0 / (beta - 1.0) if beta > 2 else 1.0


def update_ratio(factor: Array, ratio: Array, power: Array, *, l1: float, l2: float, beta: float) -> Array:
    """Return the factor by which every entry is multiplied: the minimizer u of the majorizer."""
    # Without L2 this is (ratio / (power + l1))^g with Fevotte & Idier's exponent g. With it the root of
    # (power + l1) u^a + l2 w u^(a + b) = ratio, a = 1/g, b = 2 - beta between 1 and 2 and 1 below 1, which
    # for Kullback-Leibler is a quadratic equation. From 2 on the penalty joins the denominator: there its
    # majorizer has the same power as the divergence's.
    # Fevotte & Idier (2011), Neural Computation 23(9), Section 4.
    xp = array_namespace(factor)
    cost = power + l1 if l1 else power
    if l2 and beta >= 2:
        cost = cost + l2 * factor
    tiny = float(xp.finfo(factor.dtype).smallest_normal)
    # Where both are zero nothing depends on the entry.
    base = ratio / clipped(cost, tiny)
    base = xp.where(ratio > 0, base, xp.zeros_like(base))
    base = clipped(base, high=float(xp.finfo(factor.dtype).max) ** 0.25)
    if not 1 <= beta <= 2:
        base = base ** descent_exponent(beta)
    if not l2 or beta >= 2:
        return base
    ridge = l2 * factor
    if beta == 1:
        # The root of ridge u^2 + cost u - ratio without cancellation.
        return 2 * ratio / clipped(cost + xp.sqrt(cost**2 + 4 * ridge * ratio), tiny)
    a, b = (1.0, 2.0 - beta) if beta > 1 else (2.0 - beta, 1.0)
    u = base
    for _ in range(NEWTON_STEPS):
        # Convex and increasing in u: Newton's iterates come down to the root and never pass it.
        rest = cost * u**a + ridge * u ** (a + b) - ratio
        slope = a * cost * u ** (a - 1) + (a + b) * ridge * u ** (a + b - 1)
        u = clipped(u - rest / clipped(slope, tiny), 0.0)
    return u


@dataclass(frozen=True)
class MultiplicativeState:
    """The accepted pair, the updated W, and the sums for the update of H."""

    W: SampleArray  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_next: SampleArray | None = None  # the update of W
    ratio: Array | None = None  # the sums for the update of Ht at (W_next, Ht)
    power: Array | None = None


def _updated(factor: Array, ratio: Array, power: Array, l1: float, l2: float, beta: float) -> Array:
    xp = array_namespace(factor)
    new = factor * update_ratio(factor, ratio, power, l1=l1, l2=l2, beta=beta)
    # Numbers too small to be normal are slow and carry no information.
    small = float(xp.finfo(new.dtype).smallest_normal) * 1e4
    return xp.where(new < small, xp.zeros_like(new), new)


def _update_rows(
    block: LocalMatrix, W: Array, *, Ht: Array, loss: BetaLoss, penalties: Penalties
) -> tuple[tuple[Array], tuple[Any, ...]]:
    """Return the update of W, the loss at (W, Ht) and the sums for the update of Ht."""
    terms = loss.terms_of_W(block, W, Ht, want_loss=True)
    new = _updated(W, terms.ratio, terms.power, penalties.l1_W, penalties.l2_W, loss.beta)
    value = terms.loss + penalties.of_W(W, block.weights)
    del terms  # its memory serves the other sums
    of_H = loss.terms_of_H(block, new, Ht)
    return (new,), (value, of_H.ratio, of_H.power)


@solver(RelativeDecrease)
def multiplicative(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 2.0,
    free: IntArray | None = None,
) -> tuple[Any, MultiplicativeState]:
    """Minimize a beta-divergence plus penalties by multiplicative updates."""
    # An iteration is one pass with four products of the size of the data, two more for beta other than 1 and
    # 2. Fevotte & Idier (2011), Neural Computation 23(9), Algorithm 1 and Section 4.
    loss = BetaLoss.of(data, beta)
    may_change: Array | None = None
    if free is not None:
        is_free = np.zeros(Ht.shape[1], dtype=bool)
        is_free[free] = True
        may_change = to_device(is_free, Ht)

    def evaluate(W: SampleArray, Ht: Array) -> dict[str, Any]:
        (W_next,), (value, ratio, power) = data.map_reduce_rows(
            _update_rows, W, Ht=Ht, loss=loss, penalties=penalties
        )
        value = value + penalties.of_H(Ht)
        return {"W": W, "Ht": Ht, "loss": value, "W_next": W_next, "ratio": ratio, "power": power}

    def advance(state: Any) -> dict[str, Any]:
        Ht = _updated(state.Ht, state.ratio, state.power, penalties.l1_H, penalties.l2_H, beta)
        if may_change is not None:
            Ht = array_namespace(Ht).where(may_change, Ht, state.Ht)
        return evaluate(state.W_next, Ht)

    def candidates(state: MultiplicativeState) -> Candidates:
        yield state, advance
        yield state, unchanged  # rounding only: the stopping rule ends the run

    descent = Descent(candidates, data.container)

    def step(state: MultiplicativeState) -> tuple[MultiplicativeState, dict[str, float]]:
        if state.ratio is None:
            # The first pass finds the loss and the sums of the initial pair.
            changes = evaluate(state.W, state.Ht)
            state = changed(state, **changes | {"loss": float(changes["loss"])})
        return descent(state)

    return step, MultiplicativeState(W, Ht)
