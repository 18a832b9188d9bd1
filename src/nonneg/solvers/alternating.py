"""Alternating least squares with extrapolation: the iteration of HALS and of block pivoting.

An iteration updates W given H, then H given W, by an inner update that is all in which the methods differ.
Both factors are extrapolated after their update. The accepted pair is the extrapolated W with the H fitted to
it: its loss comes out of the products of the update of H, so that the safeguard costs no pass over the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._arrays import on_gpu
from nonneg._lazy import cached_property
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration.loop import Candidates, Descent, changed, unchanged
from nonneg.kernels.factor_update import CoordinateDescent, Update, compiled_factors, rounding, update_factor
from nonneg.kernels.grams import Gram, SharedGram
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
    signed: bool = False  # whether H may have any sign


def slack_of(dtype: Any, squared_norm: float) -> float:
    """Return by how much rounding may increase the loss."""
    return (2e-13 if "64" in str(dtype) else 2e-6) * 0.5 * squared_norm


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
    whole: bool,
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Update the rows of W in a block and return the sums that the update of H needs.

    Instead of products with the `whole` data it returns what the update of H multiplies itself.
    """
    system = (block.row_grams(Ht) if gram is None else gram).plus_ridge(penalties.l2_W)
    factors = compiled_factors(update, W, system, block)
    left, right = factors or (None, None)
    other = block.times(Ht) if left is None else Ht if right is None else gram_of(right, Ht)
    rows = update_factor(
        update, W, system, other, data=left, l1=penalties.l1_W, old=W_plain, momentum=momentum
    )
    chosen, violation = rows.chosen, rows.violation
    if block.weights is not None:
        # A row of weight w counts w times in the violation, and scaled rows have scaled gradients.
        target = block.weighted(other - penalties.l1_W)
        _, violation = hals_passes(block.weighted(W), system, target)
        violation = violation - rounding(target)
        del target
    del other
    if right is None and rows.products is not None:
        cross, data = rows.products, None
    elif left is None or not whole:
        cross, data = block.transposed_times(chosen), None
    elif right is None:
        cross, data = chosen, left.T
    else:
        cross, data = gram_of(left, chosen) if rows.products is None else rows.products, right
    shared = rows.gram is not None and block.weights is None and not block.has_missing
    sums = (
        violation,
        SharedGram(rows.gram) if shared else block.column_grams(chosen),
        (cross, data) if whole else cross,
        penalties.of_W(chosen, block.weights),
    )
    return (rows.new,) if W_plain is None else (rows.new, chosen), sums


def takes_whole(block: LocalMatrix, **shared: Any) -> bool:
    """Tell whether `update_W_block` is faster with a whole chunk than with pieces of it."""
    gram = shared["gram"]
    return gram is not None and compiled_factors(shared["update"], shared["Ht"], gram, block) is not None


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
        return slack_of(self.data.dtype, self.squared_norm)

    @cached_property
    def l1_H(self) -> Penalties:
        """The L1 penalty on H alone."""
        return Penalties(l1_H=self.penalties.l1_H)

    def advance(self, state: AlternatingState, momentum: Any) -> dict[str, Any]:
        """Do one iteration; return what changes."""
        penalties, moves = self.penalties, extrapolates(momentum)
        Ht = state.Ht_next if moves and state.Ht_next is not None else state.Ht
        sample_arrays = (state.W, state.W_plain) if moves else (state.W,)
        whole = isinstance(self.data, LocalMatrix) and isinstance(self.update_H, CoordinateDescent)
        rows, (violation, gram, cross, penalty) = self.data.map_reduce_rows(
            update_W_block,
            *sample_arrays,
            n_out=len(sample_arrays),
            Ht=Ht,
            gram=None if self.data.has_missing else SharedGram(gram_of(Ht)),
            update=self.update_W,
            penalties=penalties,
            momentum=momentum,
            whole=whole,
        )
        cross, data = cross if whole else (cross, None)
        columns = update_factor(
            self.update_H,
            Ht,
            gram.plus_ridge(penalties.l2_H),
            cross,
            data=data,
            l1=penalties.l1_H,
            old=state.Ht_plain if moves else None,
            momentum=momentum,
            quadratic=True,
        )
        new = columns.new
        # The quadratic form is that of the update, with the L2 penalty.
        loss = 0.5 * self.squared_norm - columns.dot + 0.5 * columns.quadratic + penalty
        return {
            "W": rows[-1],
            "Ht": new,
            "W_plain": rows[0],
            "Ht_plain": new,
            "Ht_next": columns.chosen if moves else None,
            # Rounding may take the difference below zero where the fit is exact.
            "loss": at_least_zero(loss + self.l1_H.of_H(new)),
            "violation": at_least_zero(violation) + at_least_zero(columns.violation),
        }

    def candidates(self, state: AlternatingState) -> Candidates:
        """Yield the extrapolated iteration, and in case its loss is higher, the plain one."""
        slower = changed(state, slack=self.slack)
        # The first iteration has nothing to extrapolate from.
        if state.momentum and state.W_plain is not None:
            momentum = state.momentum
            faster = SCHEDULE.accepted(momentum, state.ceiling)._asdict()
            yield changed(state, **faster, slack=0.0), self.advance, momentum
            slower = changed(slower, **SCHEDULE.rejected(momentum, state.restarts)._asdict())
        violation = (yield slower, self.advance, 0.0)["violation"]
        # Rounding only: keep the better pair and let the stopping rule end the run.
        better = changed(state, momentum=0.0, W_plain=state.W, Ht_plain=state.Ht, violation=violation)
        yield better, unchanged

    @cached_property
    def step(self) -> Descent:
        """One iteration that does not increase the loss."""
        return Descent(self.candidates, self.data.container)
