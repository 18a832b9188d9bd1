"""Alternating least squares with extrapolation: the iteration of HALS and of block pivoting.

An iteration updates W given H, then H given W, by an inner update that is all in which the methods differ.
Both factors are extrapolated after their update. The accepted pair is the extrapolated W with the H fitted to
it: its loss comes out of the products of the update of H, so that the safeguard costs no pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import on_gpu
from nonneg._lazy import cached_property
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import Gram, SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.rows import absolute_sum, gram_of, product_sum, sum_rows
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import Schedule, extrapolate

Update: TypeAlias = Callable[[Array, Gram, Array], tuple[Array, Any]]

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
    momentum: float = 0.5  # see `extrapolation.Momentum`
    ceiling: float = 1.0
    restarts: int = 0
    level: int = 0  # see `acceleration`: on which data, after how many iterations, and the first violation
    n_iter: int = 0
    first: float = 0.0

    def initial_Ht(self, momentum: Any) -> Array:
        """Return the H' with which the next iteration begins."""
        return self.Ht_next if extrapolates(momentum) and self.Ht_next is not None else self.Ht


def dot(a: Array, b: Array) -> Any:
    """Return the sum of the products of the entries, accumulated in float64; on a GPU it stays there."""
    if isinstance(a, np.ndarray):
        return product_sum(a, b)
    xp = array_namespace(a)
    return sum_rows(lambda x, y: xp.sum(xp.astype(x, xp.float64) * xp.astype(y, xp.float64)), a, b)


def rounding(cross: Array) -> Any:
    """Return what rounding alone adds to the violation, so that an optimum has none."""
    xp = array_namespace(cross)
    numpy = isinstance(cross, np.ndarray)
    total = absolute_sum(cross) if numpy else xp.linalg.vector_norm(cross, ord=1)
    return 8 * float(xp.finfo(cross.dtype).eps) * total


def extrapolates(momentum: Any) -> bool:
    """Tell whether there is a momentum; one on a GPU may be zero, but nobody waits for its value."""
    return on_gpu(momentum) or momentum != 0.0


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
    order: Sequence[int] | None,
    penalties: Penalties,
    momentum: Any,
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Update the rows of W in a block and return the sums that the update of H needs."""
    if takes_whole(block, gram=gram, update=update, order=order):
        from nonneg.solvers.fused import updated_chunk

        return updated_chunk(
            block, W, W_plain, Ht=Ht, gram=gram, update=update, penalties=penalties, momentum=momentum
        )
    system = (block.row_grams(Ht) if gram is None else gram).plus_ridge(penalties.l2_W)
    cross = block.times(Ht)
    if penalties.l1_W:
        cross = cross - penalties.l1_W
    new, violation = update(W, system, cross)
    if block.weights is not None:
        # A row of weight w counts w times in the violation, and scaled rows have scaled gradients.
        W, cross = block.weighted(W), block.weighted(cross)
        _, violation = hals_passes(W, system, cross, order=order)
    violation = violation - rounding(cross)
    del cross
    chosen = new if W_plain is None else extrapolate(new, W_plain, momentum)
    rows = (new,) if W_plain is None else (new, chosen)
    sums = (
        violation,
        block.column_grams(chosen),
        block.transposed_times(chosen),
        penalties.of_W(chosen, block.weights),
    )
    return rows, sums


def takes_whole(block: Any, **shared: Any) -> bool:
    """Tell whether `update_W_block` is faster with a whole chunk than with pieces of it."""
    if not isinstance(getattr(block, "array", None), np.ndarray) or shared["order"] is None:
        return False
    from nonneg.solvers.fused import takes_chunk

    return takes_chunk(block, **shared)


update_W_block.takes_whole = takes_whole  # type: ignore[attr-defined]


@dataclass(frozen=True)
class AlternatingProblem:
    """Data, updates and penalties: all that a step needs besides its state."""

    data: DataMatrix
    update_W: Update  # the inner updates
    update_H: Update
    penalties: Penalties
    order: tuple[int, ...] | None = None  # in which coordinate descent visits the components of W

    @cached_property
    def squared_norm(self) -> float:
        """The squared Frobenius norm of X."""
        return self.data.squared_norm()

    @cached_property
    def slack(self) -> float:
        """By how much rounding may increase the loss."""
        small = 2e-13 if "64" in str(self.data.dtype) else 2e-6
        return small * 0.5 * self.squared_norm

    @cached_property
    def _fused(self) -> Any:
        """Iterations of HALS on NumPy arrays, in two tasks; None for other problems."""
        if self.data.container != "dense" or self.order is None:
            return None
        from nonneg.solvers.fused import FusedIterations

        return FusedIterations.of(self)

    @cached_property
    def of_products(self) -> Any:
        """Iterations of HALS on NumPy arrays with given products; None for other problems."""
        if self.order is None:
            return None
        from nonneg.solvers.fused import FusedIterations

        return FusedIterations.of_products(self)

    def advance(self, state: AlternatingState, momentum: Any) -> tuple[AlternatingState, Any]:
        """Do one iteration; a momentum on a GPU gives a loss and a violation there (see `DeviceProblem`)."""
        if self._fused is not None:
            return self._fused.advance(state, momentum)
        sample_arrays, shared = self.first_half(state, momentum)
        rows, sums = self.data.map_reduce_rows(
            update_W_block, *sample_arrays, n_out=len(sample_arrays), **shared
        )
        return self.second_half(state, momentum, rows, sums)

    def first_half(
        self, state: AlternatingState, momentum: Any
    ) -> tuple[tuple[SampleArray, ...], dict[str, Any]]:
        """Return what `update_W_block` needs: arrays with one row per sample, and what all blocks share."""
        moves = extrapolates(momentum)
        Ht = state.initial_Ht(momentum)
        sample_arrays = (state.W, state.W_plain) if moves else (state.W,)
        shared = {
            "Ht": Ht,
            "gram": None if self.data.has_missing else SharedGram(gram_of(Ht)),
            "update": self.update_W,
            "order": self.order,
            "penalties": self.penalties,
            "momentum": momentum,
        }
        return sample_arrays, shared

    def second_half(
        self, state: AlternatingState, momentum: Any, rows: tuple[SampleArray, ...], sums: tuple[Any, ...]
    ) -> tuple[AlternatingState, Any]:
        """Update H, given the new W and the sums of `update_W_block`."""
        violation, gram, cross, penalty = sums
        penalties, moves = self.penalties, extrapolates(momentum)
        Ht = state.initial_Ht(momentum)
        target = cross - penalties.l1_H if penalties.l1_H else cross
        new, violation_H = self.update_H(Ht, gram.plus_ridge(penalties.l2_H), target)
        loss = 0.5 * self.squared_norm - dot(cross, new) + 0.5 * quadratic_form(new, gram) + penalty
        # Rounding may take the difference below zero where the fit is exact.
        loss = at_least_zero(loss + penalties.of_H(new))
        state = replace(
            state,
            W=rows[-1],
            Ht=new,
            W_plain=rows[0],
            Ht_plain=new,
            Ht_next=extrapolate(new, state.Ht_plain, momentum) if moves else None,
            loss=loss,
        )
        violation_H = violation_H - rounding(target)
        return state, at_least_zero(violation) + at_least_zero(violation_H)

    def step(self, state: AlternatingState) -> tuple[AlternatingState, dict[str, float]]:
        """Do one iteration that does not increase the loss."""
        turns = self.turns(state)
        wanted = next(turns)
        while True:
            try:
                wanted = turns.send(self.advance(*wanted))
            except StopIteration as end:
                return end.value

    def turns(
        self, before: AlternatingState
    ) -> Generator[
        tuple[AlternatingState, float],
        tuple[AlternatingState, float],
        tuple[AlternatingState, dict[str, float]],
    ]:
        """Yield what to pass to `advance`, whose result is sent back; return what `step` returns."""
        # A generator, so that the iterations of several restarts can share their products with the data.
        # The first iteration has nothing to extrapolate from.
        momentum = before.momentum if before.W_plain is not None else 0.0
        after, violation = yield before, momentum
        if momentum and after.loss > before.loss:
            slower = SCHEDULE.rejected(momentum, before.restarts)
            after, violation = yield replace(before, **slower._asdict()), 0.0
        elif momentum:
            after = replace(after, **SCHEDULE.accepted(momentum, before.ceiling)._asdict())
        if after.loss > before.loss + self.slack:
            # Rounding only: keep the better pair and let the stopping rule end the run.
            after = replace(before, momentum=0.0, W_plain=before.W, Ht_plain=before.Ht)
        return after, {"loss": after.loss, "violation": violation}
