"""Newton steps on the rows of both factors for any beta-divergence, one pass over the data per iteration.

A pass moves the rows of W, each along its own line, and returns the gradient and the diagonal of the Hessian
for every column of H. Columns of H move by steps of their own; the losses of the columns, which the next
pass returns, say how good the steps were. So the loss of the accepted pair is always known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._blas import single_threaded_blas
from nonneg._compiled import core
from nonneg._lazy import cached_property
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix
from nonneg.iteration import Checkpoint, Run, SlowDecrease, iterate
from nonneg.iteration.loop import Candidates, Descent, unchanged
from nonneg.iteration.progress import Progress, Reporter
from nonneg.kernels.beta_products import TRIES as LINE_TRIES
from nonneg.kernels.kl_newton import tiled_newton_pass
from nonneg.kernels.newton_targets import newton_targets
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.extrapolation import LOWEST_FRACTION, Schedule, extrapolate_bounded, extrapolates
from nonneg.solvers.newton_pass import RowPass, newton_pass
from nonneg.solvers.row_newton import (
    DAMPING,
    SHORTEST_STEP,
    correlations_of,
    damped_squares,
    shared_correlations,
)

# Steeper than for least squares (Ang & Gillis 2019), from a smaller first momentum.
SCHEDULE = Schedule(0.3, growth=1.1, ceiling_growth=1.02, decay=2.0)
# A rejected iteration is tried again with shorter steps of the columns that became worse.
TRIES = 8
# Steps of columns are powers of two, so that the rounding of losses does not change them, and at least this.
SHORTEST = 2.0**-4
# What is to be gained below this part of the loss drowns in rounding: in float32 losses of one pair differ by
# 5e-9 of themselves (mutations, 96 x 2700, k=20).
NOTHING = {"float64": 1e-14, "float32": 1e-9}


@dataclass(frozen=True)
class NewtonState:
    """The accepted pair, what the update of H needs there, and what extrapolation remembers."""

    W: SampleArray  # the accepted factors; X is about W H
    Ht: Array
    loss: float = float("inf")  # of the accepted pair, penalties included
    W_before: SampleArray | None = None  # the accepted W one iteration earlier
    Ht_plain: Array | None = None  # the last H' before it was extrapolated
    gradient: Array | None = None  # of the divergence with respect to Ht
    diagonal: Array | None = None  # of the Hessian of every column of H, and its curvatures' sum
    gram: Array | None = None  # whose correlations the Hessians share
    total: Array | None = None  # the weighted sum of the rows of W
    columns: Array | None = None  # the divergence of every column
    steps: Array | None = None  # of the columns, between 0 and 1
    momentum: float = 0.0  # see `extrapolation.Momentum`
    ceiling: float = 1.0


@dataclass(frozen=True)
class NewtonProblem:
    """Data, loss and the components that may change: all that an iteration needs besides its state."""

    data: DataMatrix
    loss: BetaLoss
    penalties: Penalties
    free: IntArray | None
    extrapolate: bool
    unit: float  # about the sum of a row of the data
    tiled: bool = False  # whether a pass is one call of the compiled core

    @cached_property
    def total_weight(self) -> float:
        """The sum of the row weights."""
        return self.data.total_weight()

    @property
    def nothing(self) -> float:
        """The part of the loss that drowns in rounding."""
        return NOTHING["float64" if "64" in str(self.data.dtype) else "float32"]

    def column_penalties(self, Ht: Array) -> Array | float:
        """Return the penalty on every row of Ht, in float64; 0 where there is none."""
        xp = self.data.xp
        if not self.penalties.l1_H and not self.penalties.l2_H:
            return 0.0
        wide = xp.astype(Ht, xp.float64)
        return xp.sum(wide * (self.penalties.l1_H + 0.5 * self.penalties.l2_H * wide), axis=1)

    def evaluate(self, state: NewtonState, Ht: Array, momentum: Any) -> tuple[dict[str, Any], Array]:
        """Pass over the data at Ht; return what changes, and the losses of the columns before it."""
        total = state.total
        means = self.data.xp.sum(Ht, axis=1) if total is None else Ht @ total
        if self.tiled:
            W, sums = self.tiled_pass(state, Ht, means, momentum)
        else:
            shared = RowPass(
                Ht,
                self.loss,
                self.penalties,
                shared_correlations(self.loss, Ht, means, None),
                momentum,
                self.unit,
            )
            moves = extrapolates(momentum) and state.W_before is not None
            rows = (state.W, state.W_before) if moves else (state.W,)
            (W,), sums = self.data.map_reduce_rows(newton_pass, *rows, shared=shared)
        at_start, columns, gradient, diagonal, gram, total, penalty = sums
        changes = {
            "W": W,
            "Ht": Ht,
            "loss": self.data.xp.sum(columns) + penalty + self.penalties.of_H(Ht),
            "gradient": gradient,
            "diagonal": diagonal,
            "gram": gram,
            "total": total,
            "columns": columns,
        }
        return changes, at_start

    def tiled_pass(
        self, state: NewtonState, Ht: Array, means: Array, momentum: float
    ) -> tuple[SampleArray, tuple[Any, ...]]:
        """Do what `newton_pass` does in one call of the compiled core."""
        W, sums = tiled_newton_pass(
            self.data,
            state.W,
            state.W if state.W_before is None else state.W_before,
            momentum,
            Ht,
            shared_correlations(self.loss, Ht, means, None),
            damped_squares(Ht),
            l1=self.penalties.l1_W,
            l2=self.penalties.l2_W,
            lower_bound=self.loss.lower_bound,
            unit=self.unit,
            fraction=LOWEST_FRACTION,
            shortest=SHORTEST_STEP,
            tries=LINE_TRIES,
        )
        return W, (*sums, self.penalties.of_W(W, self.data.weights))

    def direction(self, state: NewtonState) -> tuple[Array, Array]:
        """Return the step of every column of H, and the derivatives of their losses along it."""
        xp, Ht, penalties = self.data.xp, state.Ht, self.penalties
        gradient = state.gradient + (penalties.l1_H + penalties.l2_H * Ht)
        assert state.total is not None
        assert state.diagonal is not None
        damping = DAMPING * (state.total / self.total_weight) ** 2
        diagonal = state.diagonal[:, :-1] + (state.diagonal[:, -1:] * damping + penalties.l2_H)
        correlations = correlations_of(state.gram)
        direction, _, _, _, slopes = newton_targets(
            Ht, gradient, diagonal, correlations, self.free, penalties.l1_H, penalties.l2_H
        )
        slopes = xp.astype(slopes, xp.float64)
        # A column whose model misleads stays.
        down = slopes < 0
        direction = xp.where(down[:, None], direction, xp.zeros_like(direction))
        return direction, xp.where(down, slopes, xp.zeros_like(slopes))

    def attempt(self, state: NewtonState, momentum: Any) -> dict[str, Any]:
        """Move both factors by the steps of the state.

        Returns what changes, with the steps of the next iteration, what the steps were to gain, and shorter
        ones for the columns that became worse, None after extrapolation.
        """
        xp = self.data.xp
        direction, slopes = self.direction(state)
        steps = xp.ones_like(slopes) if state.steps is None else state.steps
        Ht = state.Ht + xp.astype(steps, direction.dtype)[:, None] * direction
        gained = steps * slopes
        of_pair = {"Ht_plain": Ht, "W_before": state.W, "gained": xp.sum(gained)}
        if extrapolates(momentum):
            chosen = extrapolate_bounded(Ht, state.Ht_plain, momentum)
            # What the columns gained by their own steps is not known.
            following = xp.where(steps < 0.5, 2.0 * steps, xp.ones_like(steps))
            changes, _ = self.evaluate(state, chosen, momentum)
            return changes | of_pair | {"steps": following, "shorter": None}
        changes, at_start = self.evaluate(state, Ht, 0.0)
        assert state.columns is not None
        change = at_start + self.column_penalties(Ht) - (state.columns + self.column_penalties(state.Ht))
        unclear = -gained < 1e-12 * changes["columns"]
        best = power_of_two(xp, gained, change, most=2.0)
        following = xp.clip(xp.where(unclear, 2.0 * steps, steps * best), min=SHORTEST, max=1.0)
        shorter = xp.where(change > 0, steps * power_of_two(xp, gained, change, most=0.5), steps)
        return changes | of_pair | {"steps": following, "shorter": shorter}

    def candidates(self, state: NewtonState) -> Candidates:
        """Yield the next state, and as long as its loss is higher, those after shorter steps."""
        begin, momentum, ceiling = state, state.momentum, state.ceiling
        # After an iteration that kept its pair, which the last line here returned, the same tries would fail.
        stuck = state.W_before is None and state.steps is not None
        for _ in range(1 if stuck else TRIES):
            following = self.schedule(momentum, ceiling)
            changes = yield replace(begin, **following), self.attempt, momentum
            if momentum:
                momentum, ceiling = 0.0, momentum
                continue
            if float(changes["gained"]) > -self.nothing * abs(float(state.loss)):
                break
            begin = replace(begin, steps=changes["shorter"])
        # Rounding only: keep the better pair and let the stopping rule end the run.
        yield replace(state, momentum=0.0, ceiling=1.0, W_before=None, Ht_plain=None), unchanged

    def schedule(self, momentum: float, ceiling: float) -> dict[str, float]:
        """Return the momentum of the next iteration and its ceiling, where this one is accepted."""
        if not self.extrapolate:
            return {}
        # A momentum of zero may have been a rejected one: the schedule goes on below it.
        rejected = not momentum and ceiling < 1.0
        following = SCHEDULE.rejected(ceiling) if rejected else SCHEDULE.accepted(momentum, ceiling)
        return {"momentum": following.momentum, "ceiling": following.ceiling}


def _is_dense_numpy(data: Any) -> bool:
    """Tell whether the data are a NumPy array without missing entries."""
    return data.container == "dense" and data.observed is None and isinstance(data.raw_rows(), np.ndarray)


def power_of_two(xp: Any, slope: Array, change: Array, *, most: float) -> Array:
    """Return about where a parabola with this slope at 0 and this change at 1 is lowest: a power of two."""
    bend = change - slope
    factor = xp.full_like(slope, 0.125)
    for power in (0.25, 0.5, 1.0, 2.0):
        # The lowest point is -slope / (2 bend).
        reached = -slope >= 2.0 * (0.7 * power) * bend
        if power <= most:
            factor = xp.where(reached, xp.full_like(factor, power), factor)
    return factor


def scaled_newton(
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    penalties: Penalties,
    beta: float = 1.0,
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Any,
) -> Run[NewtonState]:
    """Minimize a beta-divergence plus penalties by Newton steps on the rows of both factors."""
    # An iteration is one pass with six products of the size of the data, a multiplicative one has four.
    # Rejected iterations cost a pass more; they are rare.
    loss = BetaLoss.of(data, beta, float(options.get("offset", 0.0)))
    mean = data.mean() + loss.offset
    unit = data.shape[1] * mean if mean > 0 else 1.0
    extrapolate = bool(options.get("extrapolate", True))
    tiled = beta == 1.0 and not loss.offset and _is_dense_numpy(data) and core() is not None
    problem = NewtonProblem(data, loss, penalties, free, extrapolate, unit, tiled)
    descent = Descent(problem.candidates, data.container)

    def step(state: NewtonState) -> tuple[NewtonState, dict[str, float]]:
        if state.gradient is None:
            # The rows of W alone: nothing is known of the columns yet.
            changes, _ = problem.evaluate(state, state.Ht, 0.0)
            state = replace(state, **changes | {"loss": float(changes["loss"])})
        return descent(state)

    with single_threaded_blas():
        return iterate(
            step,
            NewtonState(W, Ht),
            max_iter=max_iter,
            stop=SlowDecrease(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
