"""Multiplicative updates for any beta-divergence, extrapolated where that helps.

An iteration is one pass over the data: it evaluates the loss of the current pair, updates the rows of W and
sums up what the update of H needs at the new rows. So the loss of the accepted pair is always known, and the
state carries the updated W and the sums for the update of H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device
from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.progress import Progress, Reporter
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import Schedule, extrapolate_geometric
from nonneg.solvers.majorizer import update_ratio

# Steeper than for least squares (Ang & Gillis 2019): a rejected step costs two passes over the data.
SCHEDULE = Schedule(0.5, growth=1.1, ceiling_growth=1.01, decay=2.0)


@dataclass(frozen=True)
class MultiplicativeState:
    """The accepted pair, the updated W, and the sums for the update of H."""

    W: SampleArray  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_plain: SampleArray | None = None  # the update of W, which is guaranteed not to increase the loss
    W_next: SampleArray | None = None  # the same, extrapolated; None where it is `W_plain`
    ratio: Array | None = None  # the sums for the update of Ht at (W_next, Ht)
    power: Array | None = None
    Ht_plain: Array | None = None  # the last update of Ht before it was extrapolated
    momentum: float = 0.0  # see `extrapolation.Momentum`
    ceiling: float = 1.0


@dataclass(frozen=True)
class Rule:
    """How a factor is updated: the loss and the penalties."""

    loss: BetaLoss
    penalties: Penalties

    def update(self, factor: Array, ratio: Array, power: Array, l1: float, l2: float) -> Array:
        """Return the updated factor."""
        step = update_ratio(factor, ratio, power, l1=l1, l2=l2, beta=self.loss.beta)
        xp = array_namespace(factor)
        new = factor * step
        # Numbers too small to be normal are slow and carry no information.
        small = float(xp.finfo(new.dtype).smallest_normal) * 1e4
        return xp.where(new < small, xp.zeros_like(new), new)


def _forward(
    block: LocalMatrix, W: Array, W_plain: Array | None = None, *, Ht: Array, rule: Rule, momentum: float
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    # Loss at (W, Ht), the update of W, and the sums for the update of Ht.
    penalties = rule.penalties
    of_W = rule.loss.terms_of_W(block, W, Ht, want_loss=True)
    new = rule.update(W, of_W.ratio, of_W.power, penalties.l1_W, penalties.l2_W)
    chosen = extrapolate_geometric(new, W_plain, momentum)
    of_H = rule.loss.terms_of_H(block, chosen, Ht)
    rows = (new, chosen) if momentum else (new,)
    return rows, (of_W.loss + penalties.of_W(W, block.weights), of_H.ratio, of_H.power)


def _sums(block: LocalMatrix, W: Array, *, Ht: Array, rule: Rule) -> tuple[tuple[()], tuple[Array, Array]]:
    terms = rule.loss.terms_of_H(block, W, Ht)
    return (), (terms.ratio, terms.power)


@dataclass(frozen=True)
class MultiplicativeProblem:
    """Data, rule and the components that may change: all that a step needs besides its state."""

    data: DataMatrix  # the data
    rule: Rule  # the update, which never increases the loss
    free: Array | None  # which components of Ht may change
    extrapolate: bool  # whether steps are extrapolated

    def update_H(self, Ht: Array, ratio: Array, power: Array) -> Array:
        """Return the update of Ht; frozen components stay."""
        penalties = self.rule.penalties
        new = self.rule.update(Ht, ratio, power, penalties.l1_H, penalties.l2_H)
        return new if self.free is None else array_namespace(Ht).where(self.free, new, Ht)

    def evaluate(
        self, state: MultiplicativeState, W: SampleArray, Ht: Array, **changes: Any
    ) -> MultiplicativeState:
        """Pass over the data at (W, Ht) and return the state in which this pair is accepted."""
        state = replace(state, W=W, Ht=Ht, **changes)
        momentum = state.momentum if state.W_plain is not None else 0.0
        sample_arrays = (W, state.W_plain) if momentum else (W,)
        rows, (loss, ratio, power) = self.data.map_reduce_rows(
            _forward, *sample_arrays, n_out=len(sample_arrays), Ht=Ht, rule=self.rule, momentum=momentum
        )
        loss += self.rule.penalties.of_H(Ht)
        return replace(
            state,
            loss=loss,
            W_plain=rows[0],
            W_next=rows[1] if momentum else None,
            ratio=ratio,
            power=power,
        )

    def step(self, state: MultiplicativeState) -> tuple[MultiplicativeState, dict[str, float]]:
        """Do one iteration that does not increase the loss."""
        if state.ratio is None:
            state = self.evaluate(state, state.W, state.Ht)
        new = self.update_H(state.Ht, state.ratio, state.power)
        chosen = extrapolate_geometric(new, state.Ht_plain, state.momentum)
        if self.free is not None:
            chosen = array_namespace(new).where(self.free, chosen, new)
        W = state.W_plain if state.W_next is None else state.W_next
        momentum, ceiling, _ = SCHEDULE.accepted(state.momentum, state.ceiling)
        after = self.evaluate(
            state, W, chosen, Ht_plain=new, momentum=momentum if self.extrapolate else 0.0, ceiling=ceiling
        )
        if not after.loss <= state.loss:
            after = self.fall_back(state)
        return after, {"loss": after.loss}

    def fall_back(self, state: MultiplicativeState) -> MultiplicativeState:
        """Do the plain iteration from the accepted pair, whose descent is guaranteed."""
        momentum, ceiling, _ = SCHEDULE.rejected(state.momentum)
        (W,), _ = self.data.map_reduce_rows(_plain_rows, state.W, Ht=state.Ht, rule=self.rule)
        _, (ratio, power) = self.data.map_reduce_rows(_sums, W, n_out=0, Ht=state.Ht, rule=self.rule)
        Ht = self.update_H(state.Ht, ratio, power)
        after = self.evaluate(state, W, Ht, W_plain=W, Ht_plain=Ht, momentum=momentum, ceiling=ceiling)
        if after.loss <= state.loss:
            return after
        return self.evaluate(state, state.W, state.Ht, W_plain=None, Ht_plain=None, momentum=0.0)


def _plain_rows(block: LocalMatrix, W: Array, *, Ht: Array, rule: Rule) -> tuple[tuple[Array], tuple[()]]:
    terms = rule.loss.terms_of_W(block, W, Ht)
    return (rule.update(W, terms.ratio, terms.power, rule.penalties.l1_W, rule.penalties.l2_W),), ()


def multiplicative(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 2.0,
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Any,
) -> Run[MultiplicativeState]:
    """Minimize a beta-divergence plus penalties by multiplicative updates."""
    # An iteration is one pass with four products of the size of the data (two more for beta other than 1 and
    # 2); a rejected extrapolation costs two passes more.
    # Fevotte & Idier (2011), Neural Computation 23(9), Algorithm 1 and Section 4. Ang & Gillis (2019), Neural
    # Computation 31(2), Algorithm 3 (extrapolation with restarts).
    loss = BetaLoss.of(data, beta, float(options.get("offset", 0.0)))
    mask = None
    if free is not None:
        chosen = np.zeros(Ht.shape[1], dtype=bool)
        chosen[free] = True
        mask = to_device(chosen, Ht)
    extrapolate = bool(options.get("extrapolate", True))
    problem = MultiplicativeProblem(data, Rule(loss, penalties), mask, extrapolate)
    with single_threaded_blas():
        return iterate(
            problem.step,
            MultiplicativeState(W, Ht),
            max_iter=max_iter,
            stop=RelativeDecrease(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
