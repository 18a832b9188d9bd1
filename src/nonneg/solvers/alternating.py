"""Alternating least squares with extrapolation: the iteration of HALS and of block pivoting.

An iteration updates W given H, then H given W, by an inner update that is all in which the methods differ.
Both factors are extrapolated after their update; see `extrapolation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from nonneg._arrays import on_gpu
from nonneg._lazy import cached_property
from nonneg._typing import Array
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration.loop import Descent
from nonneg.kernels.factor_update import CoordinateDescent, Update, compiled_entries, rounding, update_factor
from nonneg.kernels.grams import Gram, SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import gram_of
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import ExtrapolatedState, extrapolated_or_plain, extrapolates


@dataclass(frozen=True)
class AlternatingState(ExtrapolatedState):
    """The accepted pair, what extrapolation remembers, and what acceleration does."""

    violation: float = 0.0  # of the optimality conditions, where the iteration began
    level: int = 0  # see `acceleration`: how many forms of cheaper data were left
    n_iter: int = 0  # after how many iterations
    first: float = 0.0  # the violation in the first one
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
    system = penalties.system_W(block.row_grams(Ht) if gram is None else gram, Ht)
    entries = compiled_entries(update, W, system, block)
    other = block.times(Ht) if entries is None else Ht
    rows = update_factor(
        update, W, system, other, data=entries, l1=penalties.l1_W, old=W_plain, momentum=momentum
    )
    W_new, violation = rows.chosen, rows.violation
    if block.weights is not None:
        # A row of weight w counts w times in the violation, and scaled rows have scaled gradients.
        target = block.weighted(other - penalties.l1_W)
        _, violation = hals_passes(block.weighted(W), system, target)
        violation = violation - rounding(target)
        del target
    del other
    if rows.products is not None:
        cross, data = rows.products, None
    elif entries is None or not whole:
        cross, data = block.transposed_times(W_new), None
    else:
        cross, data = W_new, entries.T
    shared = rows.gram is not None and block.weights is None and not block.has_missing
    sums = (
        violation,
        SharedGram(rows.gram) if shared else block.column_grams(W_new),
        (cross, data) if whole else cross,
        penalties.of_W(W_new, block.weights),
    )
    return (rows.new,) if W_plain is None else (rows.new, W_new), sums


def takes_whole(block: LocalMatrix, **shared: Any) -> bool:
    """Tell whether `update_W_block` is faster with a whole chunk than with pieces of it."""
    gram = shared["gram"]
    return gram is not None and compiled_entries(shared["update"], shared["Ht"], gram, block) is not None


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

    def advance(self, state: AlternatingState, momentum: Any) -> dict[str, Any]:
        """Do one iteration; return what changes."""
        penalties, moves = self.penalties, extrapolates(momentum)
        Ht = state.Ht_next if moves and state.Ht_next is not None else state.Ht
        sample_arrays = (state.W, state.W_plain) if moves else (state.W,)
        whole = isinstance(self.data, LocalMatrix) and isinstance(self.update_H, CoordinateDescent)
        whole = whole and penalties.smooth_H is None
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
            penalties.system_H(gram, rows[-1]),
            cross,
            data=data,
            l1=penalties.l1_H,
            old=state.Ht_plain if moves else None,
            momentum=momentum,
            quadratic=True,
        )
        new = columns.new
        # The quadratic form is that of the update, with the L2 penalty and smoothness.
        loss = 0.5 * self.squared_norm - columns.dot + 0.5 * columns.quadratic + penalty
        return {
            "W": rows[-1],
            "Ht": new,
            "W_plain": rows[0],
            "Ht_plain": new,
            "Ht_next": columns.chosen if moves else None,
            # Rounding may take the difference below zero where the fit is exact.
            "loss": at_least_zero(loss + Penalties(l1_H=penalties.l1_H).of_H(new)),
            "violation": at_least_zero(violation) + at_least_zero(columns.violation),
        }

    @cached_property
    def step(self) -> Descent:
        """One iteration that does not increase the loss."""
        slack = slack_of(self.data.dtype, self.squared_norm)
        candidates = partial(extrapolated_or_plain, self.advance, slack=slack)
        return Descent(candidates, self.data.container)
