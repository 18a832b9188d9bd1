"""Multiplicative updates for any beta-divergence, extrapolated where that helps.

An iteration is one pass over the data: it evaluates the loss of the current pair, updates the rows of W and
sums up what the update of H needs at the new rows. So the loss of the accepted pair is always known, and the
state carries the updated W and the sums for the update of H.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_cuda_tensor, to_device
from nonneg._blas import single_threaded_blas
from nonneg._lazy import cached_property
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.captured import RECORDED_ENTRIES, Captured, factor_entries
from nonneg.iteration.lookahead import AHEAD_ENTRIES, Descent, read_later
from nonneg.iteration.progress import Progress, Reporter
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.alternating import extrapolates
from nonneg.solvers.device import CAPTURED
from nonneg.solvers.extrapolation import Schedule
from nonneg.solvers.majorizer import multiplicative_step

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

    def step_W(
        self, W: Array, ratio: Array, power: Array, previous: Array | None, momentum: Any
    ) -> tuple[Array, Array]:
        """Return the updated rows of W, and the same extrapolated."""
        penalty = {"l1": self.penalties.l1_W, "l2": self.penalties.l2_W}
        return multiplicative_step(W, ratio, power, previous, momentum, beta=self.loss.beta, **penalty)

    def step_H(
        self, Ht: Array, ratio: Array, power: Array, previous: Array | None, momentum: Any
    ) -> tuple[Array, Array]:
        """Return the updated Ht, and the same extrapolated."""
        penalty = {"l1": self.penalties.l1_H, "l2": self.penalties.l2_H}
        return multiplicative_step(Ht, ratio, power, previous, momentum, beta=self.loss.beta, **penalty)


def _forward(
    block: LocalMatrix, W: Array, W_plain: Array | None = None, *, Ht: Array, rule: Rule, momentum: Any
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Return the update of W, its loss at (W, Ht) and the sums for the update of Ht."""
    penalties = rule.penalties
    of_W = rule.loss.terms_of_W(block, W, Ht, want_loss=True)
    new, chosen = rule.step_W(W, of_W.ratio, of_W.power, W_plain, momentum)
    loss = of_W.loss + penalties.of_W(W, block.weights)
    del of_W  # its memory serves the other sums
    of_H = rule.loss.terms_of_H(block, chosen, Ht)
    rows = (new, chosen) if extrapolates(momentum) else (new,)
    return rows, (loss, of_H.ratio, of_H.power)


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
        Ht, ratio, power = state.Ht, state.ratio, state.power
        new, chosen = self.rule.step_H(Ht, ratio, power, state.Ht_plain, momentum)
        if self.free is None:
            return new, chosen
        where = array_namespace(Ht).where
        return where(self.free, new, Ht), where(self.free, chosen, Ht)

    def evaluate(
        self, state: MultiplicativeState, W: SampleArray, Ht: Array, **changes: Any
    ) -> MultiplicativeState:
        """Pass over the data at (W, Ht) and return the state in which this pair is accepted."""
        state = replace(state, W=W, Ht=Ht, **changes)
        momentum = state.momentum if state.W_plain is not None else 0.0
        rows, loss, ratio, power = self.forward(W, state.W_plain, Ht, momentum)
        return replace(
            state,
            loss=read_later(loss),
            W_plain=rows[0],
            W_next=rows[1] if momentum else None,
            ratio=ratio,
            power=power,
        )

    def forward(
        self, W: SampleArray, W_plain: SampleArray | None, Ht: Array, momentum: Any
    ) -> tuple[Any, Any, Array, Array]:
        """Return the update of W, the same extrapolated, the loss at (W, Ht) and the sums for Ht."""
        sample_arrays = (W, W_plain) if extrapolates(momentum) else (W,)
        rows, (loss, ratio, power) = self.data.map_reduce_rows(
            _forward, *sample_arrays, n_out=len(sample_arrays), Ht=Ht, rule=self.rule, momentum=momentum
        )
        return rows, loss + self.rule.penalties.of_H(Ht), ratio, power

    @cached_property
    def captured(self) -> Captured:
        """Recordings of `advance_arrays`."""
        return Captured()

    def advance_arrays(self, _: Any, arrays: Any, momenta: Any) -> list[Array]:
        """Do what `advance` does with the arrays of a state."""
        W, W_plain, Ht, Ht_plain, ratio, power = arrays
        state = MultiplicativeState(W, Ht, ratio=ratio, power=power, Ht_plain=Ht_plain)
        new, chosen = self.update_H(state, momenta[0])
        rows, loss, ratio, power = self.forward(W, W_plain, chosen, momenta[1])
        return [chosen, new, *rows, loss, ratio, power]

    def advance(self, state: MultiplicativeState, momentum: float, ceiling: float) -> MultiplicativeState:
        """Do an iteration, recorded where launches on a GPU take longer than the work."""
        W = state.W_plain if state.W_next is None else state.W_next
        arrays = [W, state.W_plain, state.Ht, state.Ht_plain, state.ratio, state.power]
        recorded = self.data.container in CAPTURED and is_cuda_tensor(state.W)
        recorded = recorded and factor_entries(state.W, state.Ht) <= RECORDED_ENTRIES
        moves = state.momentum and momentum and all(array is not None for array in arrays)
        if not recorded or not moves:
            new, chosen = self.update_H(state, state.momentum)
            return self.evaluate(state, W, chosen, Ht_plain=new, momentum=momentum, ceiling=ceiling)
        Ht, Ht_plain, W_plain, W_next, loss, ratio, power = self.captured(
            self.advance_arrays, None, arrays, [state.momentum, momentum]
        )
        return MultiplicativeState(
            W, Ht, read_later(loss), W_plain, W_next, ratio, power, Ht_plain, momentum, ceiling
        )

    def candidates(self, state: MultiplicativeState) -> Iterator[MultiplicativeState]:
        """Yield the next state, and in case its loss is higher, what to fall back to."""
        momentum, ceiling, _ = SCHEDULE.accepted(state.momentum, state.ceiling)
        yield self.advance(state, momentum if self.extrapolate else 0.0, ceiling)
        # The plain iteration from the accepted pair, whose descent is guaranteed.
        momentum, ceiling, _ = SCHEDULE.rejected(state.momentum)
        (W,), _ = self.data.map_reduce_rows(_plain_rows, state.W, Ht=state.Ht, rule=self.rule)
        _, (ratio, power) = self.data.map_reduce_rows(_sums, W, n_out=0, Ht=state.Ht, rule=self.rule)
        Ht, _ = self.update_H(replace(state, ratio=ratio, power=power), 0.0)
        yield self.evaluate(state, W, Ht, W_plain=W, Ht_plain=Ht, momentum=momentum, ceiling=ceiling)
        yield self.evaluate(state, state.W, state.Ht, W_plain=None, Ht_plain=None, momentum=0.0)


def _plain_rows(block: LocalMatrix, W: Array, *, Ht: Array, rule: Rule) -> tuple[tuple[Array], tuple[()]]:
    terms = rule.loss.terms_of_W(block, W, Ht)
    return (rule.step_W(W, terms.ratio, terms.power, None, 0.0)[0],), ()


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
    ahead = data.container == "array" and factor_entries(W, Ht) <= AHEAD_ENTRIES
    descent = Descent(problem.candidates, ahead=ahead)

    def step(state: MultiplicativeState) -> tuple[MultiplicativeState, dict[str, float]]:
        # The first pass finds the loss and the sums of the initial pair.
        return descent(problem.evaluate(state, state.W, state.Ht) if state.ratio is None else state)

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
