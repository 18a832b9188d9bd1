"""Alternating Newton steps on rows for beta-divergences of dense data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._blas import single_threaded_blas
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.progress import Progress, Reporter
from nonneg.losses.beta import BetaLoss, objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers.mu import multiplicative
from nonneg.solvers.row_descent import DescentState, RowDescent
from nonneg.solvers.row_newton import RowSubproblem, newton_rows, shared_correlations


@dataclass(frozen=True)
class NewtonSteps:
    """The row subproblems of both factors, and the loss."""

    data: DataMatrix  # the data, dense
    loss: BetaLoss  # the divergence
    penalties: Penalties  # L1 and L2
    rows: RowSubproblem  # the rows of W against Ht, and of Ht against W
    columns: RowSubproblem

    def update_W(self, W: Array, Ht: Array) -> Array:
        """Move the rows of W."""
        xp, weights = self.data.xp, self.data.weights
        total = xp.sum(W if weights is None else W * weights[:, None], axis=0)
        shared = shared_correlations(self.loss, Ht, Ht @ total, None)
        return newton_rows(self.loss, self.rows, W, Ht, shared)[0]

    def update_H(self, W: Array, Ht: Array) -> tuple[Array, float]:
        """Move the rows of Ht and evaluate the pair."""
        weights = self.data.weights
        shared = shared_correlations(self.loss, W, W @ self.data.xp.sum(Ht, axis=0), weights)
        new, value, _ = newton_rows(self.loss, self.columns, Ht, W, shared, want_loss=True)
        return new, value + self.penalties.of_W(W, weights) + self.penalties.of_H(new)

    def safe(self, W: Array, Ht: Array) -> tuple[Array, Array, float]:
        """Do one multiplicative iteration, whose descent is guaranteed."""
        run = multiplicative(
            self.data,
            W,
            Ht,
            penalties=self.penalties,
            beta=self.loss.beta,
            max_iter=1,
            tol=0.0,
            free=self.columns.order,
            extrapolate=False,
            offset=self.loss.offset,
        )
        return run.state.W, run.state.Ht, float(run.history.loss[-1])


def scaled_newton(
    data: DataMatrix,
    W: Array,
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
) -> Run[DescentState]:
    """Minimize a beta-divergence of dense data plus penalties by Newton steps on rows of both factors."""
    # An iteration costs eight products of the size of the data, twice a multiplicative one, and did the work
    # of 6 to 50 of them on the sets where it was raced. Rows search along their own lines, so that the loss
    # falls; if it should not, a multiplicative iteration takes the place of the step.
    loss = BetaLoss.of(data, beta, float(options.get("offset", 0.0)))
    entries: Any = data.array  # type: ignore[attr-defined]
    n_rows, n_columns = data.shape

    def columns(start: int, stop: int) -> Array:
        part = entries[:, start:stop].T
        return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part

    steps = NewtonSteps(
        data,
        loss,
        penalties,
        RowSubproblem(lambda a, b: entries[a:b, :], n_rows, n_columns, None, penalties.l1_W, penalties.l2_W),
        RowSubproblem(columns, n_columns, n_rows, data.weights, penalties.l1_H, penalties.l2_H, free),
    )
    extrapolate = bool(options.get("extrapolate", True))
    problem = RowDescent(steps.update_W, steps.update_H, steps.safe, extrapolate)
    with single_threaded_blas():
        state = DescentState(
            W, Ht, objective(data, W, Ht, beta=beta, penalties=penalties, offset=loss.offset)
        )
        return iterate(
            problem.step,
            state,
            max_iter=max_iter,
            stop=RelativeDecrease(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
