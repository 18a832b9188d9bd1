"""How MERIT runs, by step rule: Frank-Wolfe iterations, or fully corrective steps on a working set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_device
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.iteration import Checkpoint, FirstOf, Progress, Run, iterate
from nonneg.iteration.progress import Reporter
from nonneg.kernels.column_residuals import residuals_of
from nonneg.kernels.self_dictionary import runs_fused
from nonneg.kernels.sparse_columns import SparseColumns, no_entries, scaled_columns
from nonneg.separable.merit.choice import row_maxima_anchors
from nonneg.separable.merit.frank_wolfe import Step, advance, frank_wolfe
from nonneg.separable.merit.fully_corrective import (
    FullyCorrective,
    RelativeGap,
    WorkingSetIterate,
)
from nonneg.separable.merit.initialization import LONGEST_EXACT, WarmStart, first_iteration, initial_columns
from nonneg.separable.merit.line_search import STEP_RULES, take_corrective_steps
from nonneg.separable.merit.problem import FrankWolfeIterate, SelfDictionary

# Bytes per second that checkpoints may write on average: a large run is saved less often, so that saving
# takes little of its time.
SAVED_PER_SECOND = 2e7
# Corrective steps after each call of the oracle, by step rule, unless the user says otherwise.
CORRECTIVE_STEPS = {"pairwise": 10}

State = TypeVar("State", FrankWolfeIterate, WorkingSetIterate)


@dataclass(frozen=True)
class RunSettings:
    """What decides when a run ends and what it shows."""

    tol: float
    max_iter: int
    n_components: int | None  # the number of anchors, and the largest number that is considered without one
    most: int
    anchor_window: int | None
    stop: FirstOf | None  # rules besides the duality gap
    callback: Callable[[Progress], bool | None] | None
    progress: Reporter
    folder: Any  # of the checkpoint

    def tracked(self, state: State, measures: Mapping[str, Any]) -> tuple[State, Mapping[str, Any]]:
        """Count new anchors, where a rule needs that."""
        if self.anchor_window is None:
            return state, measures
        anchors = np.sort(row_maxima_anchors(state.row_maxima, self.n_components, self.most))
        before = state.anchors
        new = len(anchors) if before is None else len(np.setxor1d(anchors, before))
        return replace(state, anchors=anchors), {**measures, "new_anchors": new}


@dataclass(frozen=True)
class Outcome:
    """The final iterate of a run and how it was reached."""

    run: Run[Any]
    state: FrankWolfeIterate
    initial: tuple[SparseColumns, int]  # the initial coefficients and iteration
    row_bounds: FloatArray | None = None  # upper bounds on the row maxima of every solution, where known


def run_frank_wolfe(
    data: LocalMatrix,
    problem: SelfDictionary,
    warm: WarmStart,
    settings: RunSettings,
    *,
    steps: str,
    t_init: str | int,
    corrective_steps: int | None,
) -> Outcome:
    """Run Frank-Wolfe with one of its step rules."""
    n, tol = data.shape[0], settings.tol
    open_loop = steps == "open-loop" and not problem.skip
    columns = initial_columns(warm, n, exact=open_loop and settings.max_iter <= LONGEST_EXACT)
    residual = residuals_of(problem.dictionary, columns)
    t = 0
    if warm.coefficients is not None:
        scale = math.sqrt(data.squared_norm() / n)
        t = first_iteration(t_init, residual, data.xp if data.container == "array" else np, scale=scale)
        columns = scaled_columns(columns, t * (t + 1) / 2) if open_loop else columns
    # On a GPU the lists of C stay there; the other step rules read them on the host.
    on_device = open_loop and runs_fused(residual)
    initial = [problem.initial_iterate(columns, t, residual, on_device=on_device)]
    del residual
    rule = STEP_RULES[steps]
    n_corrective = CORRECTIVE_STEPS.get(steps, 0) if corrective_steps is None else corrective_steps
    saved = None
    if settings.folder is not None:
        params = [problem.lam, problem.mu, tol, t, steps, n_corrective, problem.skip]
        saved = _checkpoint(settings, data, initial[0], params)

    def oracle(state: FrankWolfeIterate) -> tuple[FrankWolfeIterate, Mapping[str, Any]]:
        return settings.tracked(*problem.call_oracle(state))

    def take_step(state: FrankWolfeIterate, step: Step) -> FrankWolfeIterate:
        return take_corrective_steps(problem, advance(problem, state, step), rule, n_corrective)

    run = frank_wolfe(
        initial.pop(),
        oracle=oracle,
        step_rule=lambda state: rule(problem, state),
        take_step=take_step,
        has_vertices=lambda state: state.has_vertices,
        # At zero, which is infeasible, a large penalty makes the gap negative: it bounds nothing there.
        converged=(lambda state: state.gap <= tol and (state.t > 0 or state.gap >= 0)) if tol > 0 else None,
        converged_sentence="the duality gap is at most `tol`",
        max_iter=settings.max_iter,
        stop=settings.stop,
        callback=settings.callback,
        progress=settings.progress,
        checkpoint=saved,
    )
    return Outcome(run, problem.complete(run.state).as_numpy, (columns, t))


def run_fully_corrective(
    data: LocalMatrix, problem: SelfDictionary, warm: WarmStart, anchors: IntArray, settings: RunSettings
) -> Outcome:
    """Run fully corrective steps, beginning with anchors and with the rows of a warm start."""
    solver = FullyCorrective(problem, settings.tol)
    if warm.coefficients is not None and warm.anchors is None:
        used = np.unique(sp.csc_array(warm.coefficients).nonzero()[0])
        anchors = np.union1d(used, anchors)
    initial = [solver.initial_iterate(anchors, warm.coefficients)]
    saved = None
    if settings.folder is not None:
        saved = _checkpoint(settings, data, initial[0], [problem.lam, settings.tol, "fully-corrective"])
    relative = RelativeGap(settings.tol)
    run = iterate(
        lambda state: settings.tracked(*solver.step(state)),
        initial.pop(),
        max_iter=settings.max_iter,
        stop=relative if settings.stop is None else FirstOf((relative, *settings.stop.rules)),
        callback=settings.callback,
        progress=settings.progress,
        checkpoint=saved,
    )
    state = solver.as_frank_wolfe(run.state)
    return Outcome(run, state, (no_entries(data.shape[0]), 0), run.state.row_bounds)


def _checkpoint(
    settings: RunSettings,
    data: DataMatrix,
    initial: FrankWolfeIterate | WorkingSetIterate,
    params: list[Any],
) -> Checkpoint | None:
    if isinstance(initial, WorkingSetIterate):
        moved, like = {"split", "dual", "caps"}, initial.split
        begin: tuple[Any, ...] = (initial.rows, initial.split)
    else:
        moved, like = {"residual"}, initial.residual
        begin = (initial.weights, initial.counts)
        if initial.on_device:
            moved |= {"rows", "weights", "counts", "row_max", "row_count", "vertices", "column_gaps"}

    def from_numpy(name: str, array: Any) -> Any:
        return to_device(array, like) if name in moved and data.container == "array" else array

    facts = ("merit", params, settings.n_components, settings.anchor_window, data.container)
    # Residuals and lists, in bytes.
    size = 24.0 * math.prod(data.shape)
    return Checkpoint.of(
        settings.folder,
        *facts,
        fingerprint(data),
        *begin,
        interval=max(5.0, size / SAVED_PER_SECOND),
        from_numpy=from_numpy,
    )
