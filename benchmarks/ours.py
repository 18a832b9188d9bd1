"""`nonneg` as a contender: fitted from the given initialization to the target loss, then encoded."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.contender import Outcome, Task, quiet, stopwatch

MAX_ITER = 100_000


class Finish:
    """The callback that stops a fit at the target loss or when the time is up."""

    def __init__(self, target: float, max_seconds: float) -> None:
        self.target = target
        self.max_seconds = max_seconds
        self.begun = time.perf_counter()
        self.fitted = float("nan")

    def begin(self) -> None:
        """Start the clock."""
        self.begun = time.perf_counter()

    def __call__(self, progress: Any) -> bool:
        """Say whether to stop, and note the time."""
        self.fitted = time.perf_counter() - self.begun
        losses = progress.history.loss
        return (len(losses) > 0 and losses[-1] <= self.target) or self.fitted > self.max_seconds


def nonneg_factorize(
    task: Task, target: float, max_seconds: float, solver: str = "auto", init: str | None = None
) -> Outcome:
    """Fit `nonneg.NMF` to the target, the call that users make: checks, iterations, encoding, certificate."""
    from nonneg import NMF

    finish = Finish(target, max_seconds)
    given = {"W": task.W.copy(), "H": task.H.copy()} if init is None else {}
    model = NMF(
        task.n_components,
        init=init or "custom",
        solver=solver,
        beta_loss=task.loss,
        tol=0,
        max_iter=MAX_ITER,
        n_jobs=task.threads,
        callback=finish,
    )
    with quiet(), stopwatch() as seconds:
        finish.begin()
        result = model.fit(task.X, **given).result_
        taken = seconds()
    history = result.history
    return Outcome(
        np.asarray(result.W),
        np.asarray(result.H),
        taken,
        int(result.n_iter),
        {
            "solver": result.solver,
            "stop_reason": str(result.stop_reason),
            "clock_seconds": float(history.seconds[-1]),
            "fit_seconds": finish.fitted,
            "rest_seconds": taken - finish.fitted,
            "loss_seen": float(history.loss[-1]),
        },
    )
