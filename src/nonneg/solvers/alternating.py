"""Alternating least squares with extrapolation: the iteration of HALS and of block pivoting.

An iteration updates W given H, then H given W, by an inner update that is all in which the methods differ.
Both factors are extrapolated after their update. The accepted pair is the extrapolated W with the H fitted to
it: its loss comes out of the products of the update of H, so that the safeguard costs no pass over the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nonneg._arrays import on_gpu
from nonneg._lazy import cached_property
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration.loop import Candidates, Descent, unchanged
from nonneg.kernels.factor_update import Update, compiled_data, rounding, update_factor
from nonneg.kernels.grams import Gram, SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import gram_of
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import Schedule, extrapolates

# The values of Ang & Gillis (2019), Section 4. Where four extrapolated steps in a row are rejected, the
# momentum is given up: each of them costs a second iteration.
SCHEDULE = Schedule(0.5, growth=1.05, ceiling_growth=1.01, decay=1.5, max_restarts=4)


@dataclass(frozen=True)
class AlternatingState:
    """The accepted pair, and what extrapolation remembers."""

    W: SampleArray  # the accepted factors; X is about W H
    Ht: Array
    W_plain: SampleArray | None = None  # the last factors before extrapolation
    Ht_plain: Array | None = None
    Ht_next: Array | None = None  # the extrapolated H' with which the next iteration begins
    loss: float = float("inf")  # of the accepted pair
    slack: float = 0.0  # what rounding may have added to it
    violation: float = 0.0  # of the optimality conditions, where the iteration began
    momentum: float = 0.5  # see `extrapolation.Momentum`
    ceiling: float = 1.0
    restarts: int = 0
    level: int = 0  # see `acceleration`: on which data, after how many iterations, and the first violation
    n_iter: int = 0
    first: float = 0.0


def at_least_zero(value: Any) -> Any:
    """Return the number, or zero if it is negative: rounding may take it there."""
    return value.clip(0.0) if on_gpu(value) else max(float(value), 0.0)


def update_W_block(
    block: LocalMatrix,
    W: Array,
    W_plain: Array | None = None,
    *,
    Ht: Array,
    gram: Gram | None,
    update: Update,
    penalties: Penalties,
    momentum: Any,
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Update the rows of W in a block and return the sums that the update of H needs."""
    system = (block.row_grams(Ht) if gram is None else gram).plus_ridge(penalties.l2_W)
    data = compiled_data(update, W, system, block)
    options: dict[str, Any] = {"data": data, "l1": penalties.l1_W, "old": W_plain, "momentum": momentum}
    violation: Any = None
    if block.weights is None:
        rows = update_factor(update, W, system, block.times(Ht) if data is None else Ht, **options)
        violation = rows.violation
    else:
        cross = block.times(Ht)
        rows = update_factor(update, W, system, cross, **options | {"data": None})
        # A row of weight w counts w times in the violation, and scaled rows have scaled gradients.
        target = block.weighted(cross - penalties.l1_W)
        _, violation = hals_passes(block.weighted(W), system, target)
        violation = violation - rounding(target)
        del cross, target
    chosen = rows.chosen
    whole = rows.gram is not None and block.weights is None and not block.has_missing
    sums = (
        violation,
        SharedGram(rows.gram) if whole else block.column_grams(chosen),
        block.transposed_times(chosen) if rows.products is None else rows.products,
        penalties.of_W(chosen, block.weights),
    )
    return (rows.new,) if W_plain is None else (rows.new, chosen), sums


def takes_whole(block: LocalMatrix, **shared: Any) -> bool:
    """Tell whether `update_W_block` is faster with a whole chunk than with pieces of it."""
    plain = shared["gram"] is not None and block.weights is None
    return plain and compiled_data(shared["update"], shared["Ht"], shared["gram"], block) is not None


update_W_block.takes_whole = takes_whole  # type: ignore[attr-defined]


@dataclass(frozen=True)
class AlternatingProblem:
    """Data, updates and penalties: all that a step needs besides its state."""

    data: DataMatrix
    update_W: Update  # the inner updates
    update_H: Update
    penalties: Penalties

    @cached_property
    def squared_norm(self) -> float:
        """The squared Frobenius norm of X."""
        return self.data.squared_norm()

    @cached_property
    def slack(self) -> float:
        """By how much rounding may increase the loss."""
        small = 2e-13 if "64" in str(self.data.dtype) else 2e-6
        return small * 0.5 * self.squared_norm

    def advance(self, state: AlternatingState, momentum: Any) -> dict[str, Any]:
        """Do one iteration; return what changes."""
        penalties, moves = self.penalties, extrapolates(momentum)
        Ht = state.Ht_next if moves and state.Ht_next is not None else state.Ht
        sample_arrays = (state.W, state.W_plain) if moves else (state.W,)
        rows, (violation, gram, cross, penalty) = self.data.map_reduce_rows(
            update_W_block,
            *sample_arrays,
            n_out=len(sample_arrays),
            Ht=Ht,
            gram=None if self.data.has_missing else SharedGram(gram_of(Ht)),
            update=self.update_W,
            penalties=penalties,
            momentum=momentum,
        )
        columns = update_factor(
            self.update_H,
            Ht,
            gram.plus_ridge(penalties.l2_H),
            cross,
            l1=penalties.l1_H,
            old=state.Ht_plain if moves else None,
            momentum=momentum,
        )
        new = columns.new
        loss = 0.5 * self.squared_norm - columns.dot + 0.5 * quadratic_form(new, gram) + penalty
        return {
            "W": rows[-1],
            "Ht": new,
            "W_plain": rows[0],
            "Ht_plain": new,
            "Ht_next": columns.chosen if moves else None,
            # Rounding may take the difference below zero where the fit is exact.
            "loss": at_least_zero(loss + penalties.of_H(new)),
            "violation": at_least_zero(violation) + at_least_zero(columns.violation),
        }

    def candidates(self, state: AlternatingState) -> Candidates:
        """Yield the extrapolated iteration, and in case its loss is higher, the plain one."""
        slower = replace(state, slack=self.slack)
        # The first iteration has nothing to extrapolate from.
        if state.momentum and state.W_plain is not None:
            momentum = state.momentum
            faster = SCHEDULE.accepted(momentum, state.ceiling)._asdict()
            yield replace(state, **faster, slack=0.0), self.advance, momentum
            slower = replace(slower, **SCHEDULE.rejected(momentum, state.restarts)._asdict())
        violation = (yield slower, self.advance, 0.0)["violation"]
        # Rounding only: keep the better pair and let the stopping rule end the run.
        better = replace(state, momentum=0.0, W_plain=state.W, Ht_plain=state.Ht, violation=violation)
        yield better, unchanged

    @cached_property
    def step(self) -> Descent:
        """One iteration that does not increase the loss."""
        return Descent(self.candidates, self.data.container)
