"""Alternating Newton steps on rows for beta divergences of dense data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._threads import current_threads, single_threaded_blas
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix
from nonneg.iteration import Checkpoint, RelativeDecrease, Run, iterate
from nonneg.iteration.progress import Progress, Reporter
from nonneg.losses.beta import BetaLoss, objective
from nonneg.losses.newton import Side, newton_rows, shared_correlations
from nonneg.losses.penalties import Penalties
from nonneg.solvers.multiplicative import multiplicative


@dataclass(frozen=True)
class NewtonState:
    """The accepted pair.

    Parameters
    ----------
    W, B : array
        The accepted factors; X is about W B'.
    loss : float
        Of the pair, penalties included; infinite before the first iteration.
    """

    W: Array
    B: Array
    loss: float = float("inf")


@dataclass(frozen=True)
class NewtonProblem:
    """Both sides of the data, and the loss: all that a step needs beside its state.

    Parameters
    ----------
    data : DataMatrix
        The data, dense.
    loss : BetaLoss
        The divergence.
    penalties : Penalties
        L1 and L2.
    left, right : Side
        The rows of W against B, and of B against W.
    """

    data: DataMatrix
    loss: BetaLoss
    penalties: Penalties
    left: Side
    right: Side

    def advance(self, state: NewtonState) -> NewtonState:
        """Move the rows of W, then those of B.

        Parameters
        ----------
        state : NewtonState
            The accepted pair.

        Returns
        -------
        NewtonState
            The next pair, whatever its loss.
        """
        xp, weights, loss = self.data.xp, self.data.weights, self.loss
        total = xp.sum(state.W if weights is None else state.W * weights[:, None], axis=0)
        shared = shared_correlations(loss, state.B, state.B @ total, None)
        W, _, _ = newton_rows(loss, self.left, state.W, state.B, shared)
        shared = shared_correlations(loss, W, W @ xp.sum(state.B, axis=0), weights)
        B, value, _ = newton_rows(loss, self.right, state.B, W, shared, want_loss=True)
        return NewtonState(W, B, value + self.penalties.left(W, weights) + self.penalties.right(B))

    def step(self, state: NewtonState) -> tuple[NewtonState, dict[str, float]]:
        """Do one iteration that does not raise the loss.

        Parameters
        ----------
        state : NewtonState
            The accepted pair.

        Returns
        -------
        state : NewtonState
            The next accepted pair.
        measures : dict
            Its loss.
        """
        after = self.advance(state)
        if not after.loss <= state.loss:
            after = self.fall_back(state)
        return after, {"loss": after.loss}

    def fall_back(self, state: NewtonState) -> NewtonState:
        """Do one multiplicative iteration, whose descent is guaranteed.

        Parameters
        ----------
        state : NewtonState
            The accepted pair.

        Returns
        -------
        NewtonState
            The next accepted pair; the same one where rounding alone is left to gain.
        """
        run = multiplicative(
            self.data,
            state.W,
            state.B,
            penalties=self.penalties,
            beta=self.loss.beta,
            max_iter=1,
            tol=0.0,
            free=self.right.order,
            extrapolate=False,
            offset=self.loss.offset,
        )
        loss = float(run.history.loss[-1])
        return NewtonState(run.state.W, run.state.B, loss) if loss <= state.loss else state


def scaled_newton(
    data: DataMatrix,
    W: Array,
    B: Array,
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
    """Minimise a beta divergence plus penalties of dense data by Newton steps on rows of both factors.

    Parameters
    ----------
    data : DataMatrix
        The data X, dense: NumPy, PyTorch or another array; all entries observed.
    W, B : array
        The start; not changed. Zeros may become positive.
    penalties : Penalties
        L1 and L2, already scaled.
    beta : float
        The divergence; the data must be positive where it is 0 or below.
    max_iter : int
        At most so many iterations.
    tol : float
        Stop when 10 iterations took less than this share of the first error off the error.
    free : array of int, optional
        The components of B that may change; all by default.
    callback, progress, checkpoint : optional
        As in `iterate`.
    **options : Any
        `offset` is added to data and model.

    Returns
    -------
    Run
        Its state has the factors `W` and `B`.

    Notes
    -----
    An iteration costs eight products of the size of the data, twice a multiplicative one, and does the
    work of ten or more of them. Rows search along their own lines, so that the loss falls; if it
    should not, a multiplicative iteration takes the place of the step.
    """
    loss = BetaLoss.of(data, beta, float(options.get("offset", 0.0)))
    entries: Any = data.array  # type: ignore[attr-defined]
    n_rows, n_columns = data.shape

    def columns(start: int, stop: int) -> Array:
        part = entries[:, start:stop].T
        return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part

    problem = NewtonProblem(
        data,
        loss,
        penalties,
        Side(lambda a, b: entries[a:b, :], n_rows, n_columns, None, penalties.l1_W, penalties.l2_W),
        Side(columns, n_columns, n_rows, data.weights, penalties.l1_H, penalties.l2_H, free),
    )
    with single_threaded_blas(data.kind == "dense" and current_threads() > 1):
        state = NewtonState(W, B, objective(data, W, B, beta=beta, penalties=penalties, offset=loss.offset))
        return iterate(
            problem.step,
            state,
            max_iter=max_iter,
            stop=RelativeDecrease(tol),
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
        )
