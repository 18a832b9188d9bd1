"""Alternating least squares with extrapolation: one engine for HALS and block pivoting.

Each half-step improves one factor given the other, by an inner update that is the only thing in which
the methods differ. Between half-steps the factors are extrapolated. The accepted pair is the
extrapolated left factor with the right factor that answers it: its loss comes out of the products of
the half-step, so that the safeguard costs no pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.iteration import Checkpoint, Run, iterate
from nonneg.iteration.progress import Progress, Reporter
from nonneg.iteration.stopping import StoppingRule
from nonneg.kernels.grams import Gram, SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes
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
    Ht_next: Array | None = None  # the extrapolated right factor with which the next iteration begins
    loss: float = float("inf")  # of the accepted pair
    momentum: float = 0.5  # see `extrapolation.Momentum`
    ceiling: float = 1.0
    restarts: int = 0


def dot(left: Array, right: Array) -> float:
    """Return the sum of the products of the entries, accumulated in float64."""
    xp = array_namespace(left)
    if isinstance(left, np.ndarray) and left.dtype == np.float64:
        return float(np.vdot(left, right))
    return float(xp.sum(xp.astype(left, xp.float64) * xp.astype(right, xp.float64)))


def rounding(cross: Array) -> Any:
    """Return what rounding alone adds to the violation, so that an optimum has none."""
    xp = array_namespace(cross)
    return 8 * float(xp.finfo(cross.dtype).eps) * xp.sum(xp.abs(cross))


def left_half(
    block: LocalMatrix,
    W: Array,
    W_plain: Array | None = None,
    *,
    Ht: Array,
    gram: Gram | None,
    update: Update,
    penalties: Penalties,
    momentum: float,
) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Update the rows of a block and return what the other half needs."""
    system = (block.row_grams(Ht) if gram is None else gram).plus_ridge(penalties.l2_W)
    cross = block.times(Ht)
    if penalties.l1_W:
        cross = cross - penalties.l1_W
    new, violation = update(W, system, cross)
    if block.weights is not None:
        # Rows that count several times violate several times, and scaled rows have scaled slopes.
        W, cross = block.weighted(W), block.weighted(cross)
        _, violation = hals_passes(W, system, cross, order=getattr(update, "order", None))
    violation = violation - rounding(cross)
    del cross
    chosen = extrapolate(new, W_plain, momentum) if momentum else new
    rows = (new, chosen) if momentum else (new,)
    sums = (
        violation,
        block.column_grams(chosen),
        block.transposed_times(chosen),
        penalties.left(chosen, block.weights),
    )
    return rows, sums


@dataclass(frozen=True)
class AlternatingProblem:
    """Data, updates and penalties: all that a step needs beside its state."""

    data: DataMatrix  # the data
    left_update: Update  # the inner updates of W and of Ht
    right_update: Update
    penalties: Penalties  # L1 and L2
    squared_norm: float  # of the data

    @property
    def slack(self) -> float:
        """By how much rounding may raise the loss."""
        small = 2e-13 if "64" in str(self.data.dtype) else 2e-6
        return small * 0.5 * self.squared_norm

    def advance(self, state: AlternatingState, momentum: float) -> tuple[AlternatingState, float]:
        """Do one iteration."""
        Ht = state.Ht_next if momentum and state.Ht_next is not None else state.Ht
        sample_arrays = (state.W, state.W_plain) if momentum else (state.W,)
        shared_gram = None if self.data.has_missing else SharedGram(Ht.T @ Ht)
        rows, (violation, gram, cross, penalty) = self.data.map_reduce_rows(
            left_half,
            *sample_arrays,
            n_out=len(sample_arrays),
            Ht=Ht,
            gram=shared_gram,
            update=self.left_update,
            penalties=self.penalties,
            momentum=momentum,
        )
        penalties = self.penalties
        target = cross - penalties.l1_H if penalties.l1_H else cross
        new, violation_H = self.right_update(Ht, gram.plus_ridge(penalties.l2_H), target)
        loss = 0.5 * self.squared_norm - dot(cross, new) + 0.5 * quadratic_form(new, gram) + penalty
        # Rounding may take the difference below zero where the fit is exact.
        loss = max(loss + penalties.right(new), 0.0)
        state = replace(
            state,
            W=rows[-1],
            Ht=new,
            W_plain=rows[0],
            Ht_plain=new,
            Ht_next=extrapolate(new, state.Ht_plain, momentum) if momentum else None,
            loss=loss,
        )
        violation_H = violation_H - rounding(target)
        return state, max(float(violation), 0.0) + max(float(violation_H), 0.0)

    def step(self, state: AlternatingState) -> tuple[AlternatingState, dict[str, float]]:
        """Do one iteration that does not raise the loss."""
        before = state
        # The first step has nothing to extrapolate from.
        momentum = state.momentum if state.W_plain is not None else 0.0
        after, violation = self.advance(state, momentum)
        if momentum and after.loss > before.loss:
            slower = SCHEDULE.rejected(momentum, before.restarts)
            after, violation = self.advance(replace(before, **slower._asdict()), 0.0)
        elif momentum:
            after = replace(after, **SCHEDULE.accepted(momentum, state.ceiling)._asdict())
        if after.loss > before.loss + self.slack:
            # Rounding only: keep the better pair and let the stopping rule end the run.
            after = replace(before, momentum=0.0, W_plain=before.W, Ht_plain=before.Ht)
        return after, {"loss": after.loss, "violation": violation}


def alternate(
    problem: AlternatingProblem,
    W: SampleArray,
    Ht: Array,
    *,
    momentum: float,
    max_iter: int,
    stop: StoppingRule,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run[AlternatingState]:
    """Run the engine."""
    state = AlternatingState(W, Ht, momentum=momentum)
    with single_threaded_blas():
        return iterate(
            problem.step,
            state,
            max_iter=max_iter,
            stop=stop,
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
