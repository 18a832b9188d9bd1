"""The Frank-Wolfe loop, its steps, and how an iterate of the self-dictionary problem takes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from nonneg._typing import IntArray
from nonneg.iteration import Checkpoint, FirstOf, History, Progress, Run, StopReason, iterate
from nonneg.iteration.loop import Finished
from nonneg.iteration.progress import Reporter
from nonneg.iteration.stopping import StoppingRule
from nonneg.kernels.column_residuals import advance_residuals, residuals_of
from nonneg.kernels.sparse_columns import raised_row_facts, row_facts, step_columns
from nonneg.kernels.sparse_columns import torch as tensor_columns
from nonneg.separable.merit.problem import FrankWolfeIterate, SelfDictionary

State = TypeVar("State")

# Residuals are recomputed from the coefficients after this number of steps, so that rounding errors do not
# accumulate; so rarely that the cost does not show.
REFRESH = 1000


@dataclass
class _Converged:
    # What `converged` said of the last state; the history need not contain it.
    sentence: str
    met: bool = False

    def __call__(self, history: History) -> bool:
        return self.met


def frank_wolfe(
    initial: State,
    *,
    oracle: Callable[[State], tuple[State, Mapping[str, Any]]],
    step_rule: Callable[[State], Any],
    take_step: Callable[[State, Any], State],
    has_vertices: Callable[[State], bool],
    max_iter: int,
    converged: Callable[[State], bool] | None = None,
    converged_sentence: str = "the duality gap is small enough",
    stop: StoppingRule | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run[State]:
    """Minimize a smooth convex function over a polytope, given its linear minimization oracle."""
    rule = _Converged(converged_sentence)

    def step(state: State) -> tuple[State, Mapping[str, Any]]:
        if not has_vertices(state):
            state, _ = oracle(state)
        # An initial state, or a run that is resumed where it had ended.
        if converged is not None and converged(state):
            raise Finished(converged_sentence)
        new, measures = oracle(take_step(state, step_rule(state)))
        rule.met = converged is not None and converged(new)
        return new, measures

    # The loop alone holds the initial state, which may be large and is not needed after the first step.
    held = [initial]
    del initial
    run = iterate(
        step,
        held.pop(),
        max_iter=max_iter,
        stop=rule if stop is None else FirstOf((rule, stop)),
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
    )
    state = run.state
    if not has_vertices(state):
        state, _ = oracle(state)
    reason, sentence = run.stop_reason, run.sentence
    if converged is not None and reason in (StopReason.STALLED, StopReason.MAX_ITER) and converged(state):
        reason, sentence = StopReason.CONVERGED, converged_sentence
    return replace(run, state=state, stop_reason=reason, sentence=sentence)


@dataclass(frozen=True)
class Step:
    """The new column: keep times the old one + gain at the entering vertex - cut at the leaving one."""

    entering: IntArray
    keep: Any  # a number, or one for every column; so are `gain` and `cut`
    gain: Any
    leaving: IntArray | None = None  # the vertex of an away or pairwise step; -1 for none
    cut: Any = 0.0
    exact: bool = False  # whether it is an open-loop step of all columns, which keeps integer weights


def open_loop_size(t: int) -> float:
    """Return the step size of iteration t that does not depend on the objective."""
    return 2.0 / (t + 2)


def open_loop(problem: SelfDictionary, state: FrankWolfeIterate) -> Step:
    """Return the published step: 2 / (t + 2) toward the vertex, in all columns that are not skipped."""
    assert state.vertices is not None
    size = open_loop_size(state.t)
    if state.active is None:
        return Step(state.vertices, 1.0 - size, size, exact=True)
    return Step(state.vertices, np.where(state.active, 1.0 - size, 1.0), np.where(state.active, size, 0.0))


def advance(problem: SelfDictionary, state: FrankWolfeIterate, step: Step) -> FrankWolfeIterate:
    """Take a step and return the next iterate, for which the oracle has not been called yet."""
    # An open-loop step of all columns adds t + 1 to one weight per column and makes the total (t+1)(t+2)/2;
    # from a cold start the weights are integers.
    t = state.t
    if step.exact:
        total = (t + 1) * (t + 2) / 2
        add, raised = (
            (tensor_columns.add_to_columns, tensor_columns.raised_row_facts)
            if state.on_device
            else (step_columns, raised_row_facts)
        )
        columns, reached = add(state.columns, step.entering, t + 1, total=total)
        fresh = columns.counts > state.counts
        row_max, row_count = raised(state.row_max, state.row_count, step.entering, reached, fresh)
    else:
        columns, _ = step_columns(
            state.columns,
            step.entering,
            step.gain,
            total=1.0,
            keep=step.keep,
            leaving=step.leaving,
            cut=step.cut,
        )
        row_max, row_count = row_facts(columns)
    if (t + 1) % REFRESH == 0:
        lists = tensor_columns.columns_to_numpy(columns) if state.on_device else columns
        residual = residuals_of(problem.dictionary, lists)
    else:
        residual = advance_residuals(
            problem.dictionary,
            state.residual,
            step.entering,
            keep=step.keep,
            gain=step.gain,
            leaving=step.leaving,
            cut=step.cut,
        )
    return state.changed(
        rows=columns.rows,
        weights=columns.weights,
        counts=columns.counts,
        total=columns.total,
        row_max=row_max,
        row_count=row_count,
        residual=residual,
        t=t + 1,
        # Columns that are skipped keep their vertices; the others need a new call of the oracle.
        vertices=state.vertices if state.active is not None else None,
        gap=float("nan"),
    )
