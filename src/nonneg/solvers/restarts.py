"""Restarts from random initializations: side by side on the threads, or as one batch on a GPU."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from nonneg._interruption import end_run
from nonneg._threads import current_threads, parallel_for, single_threaded_blas
from nonneg._typing import Array, IntArray, SampleArray
from nonneg._warnings import warn_user
from nonneg.data import DataMatrix
from nonneg.exceptions import LostRowsError, NonnegWarning
from nonneg.initializers.random import random_init
from nonneg.iteration import History, Progress, Run, StopReason
from nonneg.iteration.progress import StepCounter
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.registry import SOLVERS, choose_solver

# Start of a restart: W, H', and the options of the solver for it alone.
Restart: TypeAlias = tuple[SampleArray, Array, dict[str, Any]]


def run_restarts(
    data: DataMatrix,
    k: int,
    rngs: Sequence[np.random.Generator],
    *,
    solver: str = "auto",
    beta: float = 2.0,
    penalties: Penalties | None = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    begin: Callable[[int, np.random.Generator], Restart] | None = None,
    finish: Callable[[int, Run[Any]], Any] | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    caller: str = "restarts",
    **options: Any,
) -> list[Any]:
    """Run a solver from one initialization per generator; return the runs in order.

    `begin` makes a restart from its number and generator, by default a random one. `finish` takes number
    and run of a restart that has ended, maybe on several threads; what it returns takes the place of the run.
    Restarts that did not begin because the user stopped an earlier one are left out.
    """
    from nonneg.solvers.batched import can_be_batched, run_in_batches  # not every fit has restarts

    solver = choose_solver(solver, data, k, beta)
    if solver == "hals":
        options = options | {"accelerate": False}  # beside each other they would hold many forms of X
    options = {"beta": beta, "penalties": penalties or Penalties(), "tol": tol, "free": free, **options}
    counter = StepCounter(caller, len(rngs), verbose)
    stopped = threading.Event()
    kept: dict[int, tuple[int, Any]] = {}  # number of iterations and what is returned

    def ended(number: int, run: Run[Any]) -> Any:
        counter.done(f"restarts ({run.n_iter} iterations)")
        if run.stop_reason in (StopReason.CALLBACK, StopReason.INTERRUPTED):
            stopped.set()
        kept[number] = run.n_iter, run if finish is None else finish(number, run)
        return kept[number][1]

    def work(first: int, last: int) -> list[Any]:
        results = []
        for number in range(first, last):
            if stopped.is_set():
                break
            if begin is None:
                W, Ht = random_init(data, k, rng=rngs[number])
                own: dict[str, Any] = {}
            else:
                W, Ht, own = begin(number, rngs[number])
            results.append(ended(number, run_solver(solver, data, W, Ht, **options | own)))
        return results

    if begin is None and callback is None and len(rngs) > 1 and can_be_batched(data, solver, options):
        return run_in_batches(data, solver, k, rngs, max_iter, tol, ended)
    options |= {"max_iter": max_iter, "callback": callback}
    # On all threads if each gets one; kernels use the threads otherwise.
    local = data.container in ("dense", "sparse") and callback is None
    with single_threaded_blas():
        if local and len(rngs) >= current_threads():
            try:
                return [each for part in parallel_for(work, len(rngs), chunk_size=1) for each in part]
            except KeyboardInterrupt:
                if not kept:
                    raise
                end_run(max(n_iter for n_iter, _ in kept.values()))
                return [kept[number][1] for number in sorted(kept)]  # all that had begun have ended
        return work(0, len(rngs))


def run_solver(
    solver: str, data: DataMatrix, W: SampleArray, Ht: Array, *, max_iter: int, **options: Any
) -> Run[Any]:
    """Run a solver, and continue where workers of a cluster lose rows of W with all their copies.

    It continues from the checkpoint, or from the last H, for which W is recomputed.
    """
    history, done = History(), 0
    while True:
        try:
            run = SOLVERS[solver].run(data, W, Ht, max_iter=max_iter - done, **options)
            break
        except LostRowsError as lost:
            before = lost.run
            if before is None:
                raise
        saved = options.get("checkpoint") is not None
        then = "The fit resumes from its checkpoint." if saved else "W is recomputed for the current H."
        warn_user(
            f"All copies of some rows of W were lost with their workers in iteration "
            f"{done + before.n_iter + 1}. {then}",
            NonnegWarning,
        )
        if not saved:
            Ht = before.state.Ht
            W, _ = encode(data, Ht, beta=options["beta"], penalties=options["penalties"])
            history.extend(before.history)
            done += before.n_iter
    if not done:
        return run
    history.extend(run.history)
    return replace(run, n_iter=done + run.n_iter, history=history)


def best_run(data: DataMatrix, k: int, rngs: Sequence[np.random.Generator], **options: Any) -> Run[Any]:
    """Return the restart with the lowest loss, the first of several."""
    best: list[tuple[float, int, Run[Any]]] = []
    lock = threading.Lock()

    def keep_best(number: int, run: Run[Any]) -> None:
        loss = float(run.history.loss[-1]) if len(run.history) else math.inf
        loss = math.inf if math.isnan(loss) else loss
        with lock:
            if not best or (loss, number) < best[0][:2]:
                best[:] = [(loss, number, run)]

    run_restarts(data, k, rngs, finish=keep_best, **options)
    return best[0][2]
