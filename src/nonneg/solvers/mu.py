"""Multiplicative updates for any beta-divergence, extrapolated where that helps.

An iteration is one pass over the data: it evaluates the loss of the current pair, updates the rows of W and
sums up what the update of H needs at the new rows. So the loss of the accepted pair is always known, and the
state carries the updated W and the sums for the update of H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device
from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.loop import Candidates, Descent, changed
from nonneg.iteration.progress import Progress, Reporter
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import Schedule, extrapolate_geometric, extrapolates
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

    def step_W(self, W: Array, ratio: Array, power: Array) -> Array:
        """Return the updated rows of W."""
        return self._step(W, ratio, power, self.penalties.l1_W, self.penalties.l2_W)

    def step_H(self, Ht: Array, ratio: Array, power: Array) -> Array:
        """Return the updated Ht."""
        return self._step(Ht, ratio, power, self.penalties.l1_H, self.penalties.l2_H)

    def _step(self, factor: Array, ratio: Array, power: Array, l1: float, l2: float) -> Array:
        xp = array_namespace(factor)
        new = factor * update_ratio(factor, ratio, power, l1=l1, l2=l2, beta=self.loss.beta)
        # Numbers too small to be normal are slow and carry no information.
        small = float(xp.finfo(new.dtype).smallest_normal) * 1e4
        return xp.where(new < small, xp.zeros_like(new), new)


def _forward(
    block: LocalMatrix, W: Array, W_plain: Array | None = None, *, Ht: Array, rule: Rule, momentum: Any
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Return the update of W, its loss at (W, Ht) and the sums for the update of Ht."""
    of_W = rule.loss.terms_of_W(block, W, Ht, want_loss=True)
    new = rule.step_W(W, of_W.ratio, of_W.power)
    loss = of_W.loss + rule.penalties.of_W(W, block.weights)
    del of_W  # its memory serves the other sums
    chosen = extrapolate_geometric(new, W_plain, momentum)
    of_H = rule.loss.terms_of_H(block, chosen, Ht)
    rows = (new, chosen) if extrapolates(momentum) else (new,)
    return rows, (loss, of_H.ratio, of_H.power)


def _plain_rows(block: LocalMatrix, W: Array, *, Ht: Array, rule: Rule) -> tuple[tuple[Array], tuple[()]]:
    terms = rule.loss.terms_of_W(block, W, Ht)
    return (rule.step_W(W, terms.ratio, terms.power),), ()


def _sums(block: LocalMatrix, W: Array, *, Ht: Array, rule: Rule) -> tuple[tuple[()], tuple[Any, ...]]:
    terms = rule.loss.terms_of_H(block, W, Ht)
    return (), (terms.ratio, terms.power)


@dataclass(frozen=True)
class MultiplicativeProblem:
    """Data, rule and the components that may change: all that a step needs besides its state."""

    data: DataMatrix  # the data
    rule: Rule  # the update, which never increases the loss
    free: Array | None  # which components of Ht may change
    extrapolate: bool  # whether steps are extrapolated

    def update_H(self, state: MultiplicativeState, momentum: Any) -> tuple[Array, Array]:
        """Return the update of Ht, and the same extrapolated; frozen components stay."""
        Ht = state.Ht
        assert state.ratio is not None
        assert state.power is not None
        new = self.rule.step_H(Ht, state.ratio, state.power)
        chosen = extrapolate_geometric(new, state.Ht_plain, momentum)
        if self.free is None:
            return new, chosen
        where = array_namespace(Ht).where
        return where(self.free, new, Ht), where(self.free, chosen, Ht)

    def evaluate(
        self, W: SampleArray, Ht: Array, W_plain: SampleArray | None, momentum: Any
    ) -> dict[str, Any]:
        """Pass over the data at (W, Ht) and return what changes where this pair is accepted."""
        moves = extrapolates(momentum) and W_plain is not None
        sample_arrays = (W, W_plain) if moves else (W,)
        rows, (loss, ratio, power) = self.data.map_reduce_rows(
            _forward,
            *sample_arrays,
            n_out=len(sample_arrays),
            Ht=Ht,
            rule=self.rule,
            momentum=momentum if moves else 0.0,
        )
        return {
            "W": W,
            "Ht": Ht,
            "loss": loss + self.rule.penalties.of_H(Ht),
            "W_plain": rows[0],
            "W_next": rows[1] if moves else None,
            "ratio": ratio,
            "power": power,
        }

    def advance(self, state: MultiplicativeState, momentum_H: Any, momentum_W: Any) -> dict[str, Any]:
        """Do an iteration; return what changes."""
        new, chosen = self.update_H(state, momentum_H)
        W = state.W_plain if state.W_next is None else state.W_next
        return self.evaluate(W, chosen, state.W_plain, momentum_W) | {"Ht_plain": new}

    def advance_plain(self, state: MultiplicativeState, momentum_W: Any) -> dict[str, Any]:
        """Do the plain iteration from the accepted pair, whose descent is guaranteed."""
        (W,), _ = self.data.map_reduce_rows(_plain_rows, state.W, Ht=state.Ht, rule=self.rule)
        _, (ratio, power) = self.data.map_reduce_rows(_sums, W, n_out=0, Ht=state.Ht, rule=self.rule)
        Ht, _ = self.update_H(changed(state, ratio=ratio, power=power), 0.0)
        return self.evaluate(W, Ht, W, momentum_W) | {"Ht_plain": Ht}

    def stay(self, state: MultiplicativeState) -> dict[str, Any]:
        """Forget what was extrapolated."""
        return self.evaluate(state.W, state.Ht, None, 0.0) | {"Ht_plain": None}

    def candidates(self, state: MultiplicativeState) -> Candidates:
        """Yield the next state, and in case its loss is higher, what to fall back to."""
        momentum, ceiling, _ = SCHEDULE.accepted(state.momentum, state.ceiling)
        momentum = momentum if self.extrapolate else 0.0
        faster = changed(state, momentum=momentum, ceiling=ceiling)
        yield faster, self.advance, state.momentum, momentum
        momentum, ceiling, _ = SCHEDULE.rejected(state.momentum)
        yield changed(state, momentum=momentum, ceiling=ceiling), self.advance_plain, momentum
        yield changed(state, momentum=0.0), self.stay


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
    descent = Descent(problem.candidates, data.container)

    def step(state: MultiplicativeState) -> tuple[MultiplicativeState, dict[str, float]]:
        if state.ratio is None:
            # The first pass finds the loss and the sums of the initial pair.
            changes = problem.evaluate(state.W, state.Ht, None, 0.0)
            state = changed(state, **changes | {"loss": float(changes["loss"])})
        return descent(state)

    with single_threaded_blas():
        return iterate(
            step,
            MultiplicativeState(W, Ht),
            max_iter=max_iter,
            stop=RelativeDecrease(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
