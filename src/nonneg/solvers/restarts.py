"""Restarts from random initializations: they share products with the data, and hopeless ones can be pruned.

Restarts are compared after the same numbers of iterations, 10, 20, 40 and so on. What is pruned therefore
depends on losses alone, not on timing or on the number of threads.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._blas import single_threaded_blas
from nonneg._threads import current_threads, parallel_for
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.exceptions import LostRowsError
from nonneg.initializers.random import random_inits
from nonneg.initializers.registry import INITS
from nonneg.iteration import Checkpoint, History, Progress, Run, StopReason
from nonneg.iteration.progress import StepCounter
from nonneg.losses.penalties import Penalties
from nonneg.solvers.recovery import continued
from nonneg.solvers.registry import SOLVERS, choose_solver
from nonneg.solvers.together import advance_together

FIRST_ROUND = 10
# A restart is pruned if it would stay above a loss that another one has reached even if it decreased by this
# many times what it gained in the second half of its iterations.
# Of 1, 2, 3, 5, 8 and 12, the first that discards no winner on the data that chose it.
OPTIMISM = 8.0
# Columns of the factors that share a product with the data. Per column, a product of ten columns costs 1.3
# (sparse) to 1.5 times (dense) as much, one of five columns 2.4 times; from here on the cost is the same.
COLUMNS = 64
# Bytes of the factors of restarts that wait for the next round; those beyond it begin when these have ended.
MEMORY = 1 << 29


class Paused(Checkpoint):
    """A run that waits in memory for its next round."""

    on_disk = False

    def __init__(self, run: Run[Any] | None = None) -> None:
        super().__init__(Path(), "")
        self.found: tuple[Any, int, float, History] | None = None
        if run is not None:
            self.save(run.state, run.n_iter, run.history["seconds"][-1], run.history)

    def due(self) -> bool:
        """Save at the end of a round only."""
        return False

    def save(self, state: Any, n_iter: int, seconds: float, history: History) -> None:
        """Keep the run."""
        self.found = state, n_iter, seconds, history

    def has_rows(self) -> bool:
        """Forget the run: its rows of W are where they were lost."""
        self.found = None
        return False

    def load(self, state: Any) -> tuple[Any, int, float, History] | None:
        """Return the run, if there is one."""
        return self.found


@dataclass
class Restart:
    """One restart: where it begins, and how far it has come."""

    W: SampleArray
    Ht: Array
    saved: Checkpoint = field(default_factory=Paused)
    options: dict[str, Any] = field(default_factory=dict)  # of the solver, for this restart alone
    run: Run[Any] | None = None

    @property
    def is_live(self) -> bool:
        """Whether another round can improve it."""
        return self.run is None or self.run.stop_reason is StopReason.MAX_ITER

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped it."""
        return self.run is not None and self.run.stop_reason in (StopReason.CALLBACK, StopReason.INTERRUPTED)


def run_restarts(
    data: DataMatrix,
    k: int,
    rngs: Sequence[np.random.Generator],
    *,
    solver: str = "auto",
    beta: float = 2.0,
    penalties: Penalties | None = None,
    init: str = "random",
    max_iter: int = 200,
    tol: float = 1e-4,
    free: IntArray | None = None,
    prune: bool = False,
    begin: Callable[[int, np.random.Generator], Restart] | None = None,
    finish: Callable[[Run[Any]], Any] | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    caller: str = "restarts",
    **options: Any,
) -> list[Any]:
    """Run a solver from one initialization per generator.

    Parameters
    ----------
    data : DataMatrix
        The data; their transpose is computed once for all restarts.
    k : int
        Number of components.
    rngs : sequence of Generator
        One per restart.
    solver, beta, penalties
        As for a single run.
    init : str, default "random"
        A name in `INITS`.
    max_iter, tol, free
        As for a single run.
    prune : bool, default False
        Whether to stop restarts that fall behind. Without it, all of them end as single runs do.
    begin : callable, optional
        Returns a restart, given its number and generator; by default one from `init`.
    finish : callable, optional
        Takes a run as soon as it has ended. What it returns is kept in place of the run.
    callback
        As for a single run; it sees the restarts in turns.
    verbose, caller
        Progress is shown under the name of the caller.
    **options
        As for a single run.

    Returns
    -------
    list
        One run per restart, in order, or what `finish` made of it. Restarts that did not begin because the
        user stopped an earlier one are left out.
    """
    from nonneg.solvers.batched import can_be_batched, dense_twin  # not every fit has restarts

    shape = (round(data.counted_rows()), data.shape[1])
    solver = choose_solver(
        solver, container=data.container, shape=shape, k=k, beta=beta, missing=data.has_missing
    )
    if SOLVERS[solver].accelerates:
        # Restarts save by sharing products. Pruning compares them iteration by iteration.
        options = options | {"accelerate": False}
    options = {"beta": beta, "penalties": penalties or Penalties(), "tol": tol, "free": free, **options}
    batched = begin is None and callback is None and can_be_batched(data, solver, options)
    if batched and len(rngs) > 1:
        data = dense_twin(data)
    cohort = Cohort(data, solver, options, callback)
    counter = StepCounter(f"{caller}, restarts", len(rngs), verbose)
    start = begin or (lambda number, rng: Restart(*INITS.find(init)(data, k, rng=rng)))
    at_once = batched and init == "random" and isinstance(data, DenseMatrix)
    of_one = 5 * k * (data.shape[0] + data.shape[1]) * 8  # accepted, plain and next factors
    size = max(1, MEMORY // of_one)
    results: list[Any] = []
    lowest = math.inf
    with single_threaded_blas():
        for first in range(0, len(rngs), size):
            some = range(first, min(first + size, len(rngs)))
            if at_once:
                restarts = [Restart(*pair) for pair in random_inits(data, k, [rngs[i] for i in some])]  # type: ignore[arg-type]
            else:
                restarts = [
                    each
                    for part in cohort.spread(
                        lambda a, b, some=some: [start(i, rngs[i]) for i in some[a:b]],  # type: ignore[misc]
                        len(some),
                    )
                    for each in part
                ]
            ended = 0
            for until in _rounds(max_iter) if prune else [max_iter]:
                cohort.advance(restarts, until)
                if prune and until < max_iter:
                    _prune(restarts, until, lowest)
                before, ended = ended, sum(until == max_iter or not each.is_live for each in restarts)
                if ended > before:
                    counter.done(f"{until} iterations", ended - before)
                if any(each.was_stopped for each in restarts):
                    break
            runs = [each.run for each in restarts if each.run is not None]
            lowest = min([lowest, *(final_loss(run) for run in runs)])
            results += runs if finish is None else [finish(run) for run in runs]
            if any(each.was_stopped for each in restarts):
                break
    return results


def best_run(data: DataMatrix, k: int, rngs: Sequence[np.random.Generator], **options: Any) -> Run[Any]:
    """Return the restart with the lowest loss, the first of several."""
    best: list[Run[Any]] = []

    def keep_best(run: Run[Any]) -> None:
        if not best or final_loss(run) < final_loss(best[0]):
            best[:] = [run]

    # Pruning saves 2% of the iterations and loses the best restart on small tables
    # so all restarts run to their end.
    run_restarts(data, k, rngs, finish=keep_best, **options)
    return best[0]


def final_loss(run: Run[Any]) -> float:
    """Return the last loss of a run; infinity where there is none."""
    loss = float(run.history.loss[-1]) if len(run.history) else math.inf
    return math.inf if math.isnan(loss) else loss


def _rounds(max_iter: int) -> list[int]:
    rounds, until = [], FIRST_ROUND
    while until < max_iter:
        rounds.append(until)
        until *= 2
    return [*rounds, max_iter]


def _prune(restarts: Sequence[Restart], n_iter: int, lowest: float) -> None:
    """End the restarts that are not expected to reach the lowest loss so far."""
    runs = [each.run for each in restarts if each.run is not None and len(each.run.history)]
    lowest = min([lowest, *(_loss_after(run, n_iter) for run in runs)])
    for each in restarts:
        if each.run is None or not each.is_live:
            continue
        half, now = _loss_after(each.run, (n_iter + 1) // 2), _loss_after(each.run, n_iter)
        if hopeless(half, now, lowest):
            each.run = replace(each.run, stop_reason=StopReason.PRUNED, sentence=StopReason.PRUNED.value)


def _loss_after(run: Run[Any], n_iter: int) -> float:
    # Not every iteration has a row of the history. What has ended earlier keeps its last loss.
    row = int(np.searchsorted(run.history["n_iter"], n_iter, side="right")) - 1
    return float(run.history.loss[max(row, 0)])


def hopeless(half: float, now: float, lowest: float) -> bool:
    """Tell whether a restart is not expected to reach a loss, from its losses halfway and now."""
    return now - OPTIMISM * (half - now) > lowest


@dataclass(frozen=True)
class Cohort:
    """How a number of restarts advance."""

    data: DataMatrix
    solver: str
    options: dict[str, Any]  # of the solver
    callback: Callable[[Progress], bool | None] | None

    def spread(self, work: Callable[[int, int], Any], n: int) -> list[Any]:
        """Call `work` on ranges, on all threads if each gets one; kernels use the threads otherwise."""
        local = self.data.container in ("dense", "sparse") and self.callback is None
        if local and n >= current_threads():
            return parallel_for(work, n, chunk_size=1)
        return [work(0, n)]

    def advance(self, restarts: Sequence[Restart], until: int) -> None:
        """Continue all restarts until they have done a number of iterations."""
        live = [each for each in restarts if each.is_live]
        # A callback and a checkpoint in a file take one restart after the other.
        alone = self.callback is not None or any(not isinstance(each.saved, Paused) for each in live)
        from nonneg.solvers.batched import advance_batched

        if not alone and advance_batched(self.data, self.solver, self.options, live, until):
            return
        local = isinstance(self.data, LocalMatrix) and self.data.container in ("dense", "sparse")
        together = self.solver == "hals" and local and not alone and self.data.observed is None
        size = max(1, COLUMNS // live[0].Ht.shape[1]) if together and live else 1
        groups = [live[at : at + size] for at in range(0, len(live), size)]
        # Always the same arithmetic, so that what is left of an interrupted consensus ends as it would have.
        shared = together and self.data.container == "sparse"
        if shared:
            # A column of a sparse product does not depend on the others: whoever has room takes the next.
            queue = deque(live)
            waiting = [queue] * min(len(groups), current_threads())
        else:
            waiting = [deque(group) for group in groups]

        def work(start: int, stop: int) -> None:
            for group in waiting[start:stop]:
                if together and (shared or len(group) > 1):
                    advance_together(self.data, self.options, group, until, size)
                else:
                    self.advance_one(group[0], until)
                if any(each.was_stopped for each in live):
                    return

        self.spread(work, len(waiting))

    def advance_one(self, each: Restart, until: int) -> None:
        """Continue one restart by its solver."""
        # The order of the components is drawn once per restart, not once per round.
        options = self.options | copy.deepcopy(each.options)
        options |= {"max_iter": until, "callback": self.callback, "checkpoint": each.saved}
        run = SOLVERS[self.solver].run
        try:
            each.run = run(self.data, each.W, each.Ht, **options)
        except LostRowsError as lost:
            each.run = continued(lost, run, self.data, each.W, each.Ht, **options)
        if isinstance(each.saved, Paused) and each.saved.found and each.saved.found[1] < each.run.n_iter:
            each.saved = Paused(each.run)  # after a loss it knows the iterations since then only
