"""`nonneg` as a contender: fitted from the given start until its loss is at most the target, then encoded."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.contender import Outcome, Task, quiet, stopwatch

MAX_ITER = 100_000


class Finish:
    """The callback that stops a fit at the target loss or when the time is up.

    Parameters
    ----------
    target : float
        The loss to reach.
    max_seconds : float
        Wall time after which the fit is stopped anyway.
    """

    def __init__(self, target: float, max_seconds: float) -> None:
        self.target = target
        self.deadline = time.perf_counter() + max_seconds
        self.begun = time.perf_counter()
        self.fitted = float("nan")

    def __call__(self, progress: Any) -> bool:
        """Say whether to stop, and note the time.

        Parameters
        ----------
        progress : object
            What `nonneg` passes to a callback: `n_iter`, `state`, `history`.

        Returns
        -------
        bool
            True stops the fit.
        """
        now = time.perf_counter()
        self.fitted = now - self.begun
        losses = progress.history.loss
        return (bool(losses) and losses[-1] <= self.target) or now > self.deadline


def nonneg_nmf(task: Task, target: float, max_seconds: float, solver: str = "auto") -> Outcome:
    """Run `nonneg.NMF` to the target, encoding included.

    Parameters
    ----------
    task : Task
        Data and start.
    target : float
        The loss to reach.
    max_seconds : float
        When to give up.
    solver : str, default "auto"
        The solver's name.

    Returns
    -------
    Outcome
        `seconds` is the wall time of ``fit_transform``; in the notes are the clock's time (steps only), the
        time until the target was seen, and the rest, in which the final encoding was done.
    """
    from nonneg import NMF

    finish = Finish(target, max_seconds)
    model = NMF(
        task.n_components,
        init="custom",
        solver=solver,
        beta_loss=task.loss,
        tol=0,
        max_iter=MAX_ITER,
        n_jobs=task.threads,
        callback=finish,
    )
    W, H = task.W.copy(), task.H.copy()
    with quiet(), stopwatch() as seconds:
        finish.begun = time.perf_counter()
        W = model.fit_transform(task.X, W=W, H=H)
        taken = seconds()
    history = model.history_
    return Outcome(
        np.asarray(W),
        np.asarray(model.components_),
        taken,
        int(model.n_iter_),
        {
            "solver": str(getattr(getattr(model, "result_", None), "solver", solver)),
            "clock_seconds": float(history.seconds[-1]) if len(history) else float("nan"),
            "fit_seconds": finish.fitted,
            "encoding_seconds": taken - finish.fitted,
            "loss_seen": float(history.loss[-1]) if len(history.loss) else float("nan"),
        },
    )
