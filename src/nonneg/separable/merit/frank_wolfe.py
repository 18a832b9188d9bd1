"""Frank-Wolfe: move towards the vertex that a linear model prefers; the oracle and the step are arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from nonneg.iteration import Checkpoint, FirstOf, History, Progress, Run, StopReason, iterate
from nonneg.iteration.loop import Finished
from nonneg.iteration.progress import Reporter
from nonneg.iteration.stopping import StoppingRule

State = TypeVar("State")


def open_loop_step(t: int) -> float:
    """Return the step of iteration t that asks nothing of the objective."""
    return 2.0 / (t + 2)


@dataclass
class _GoodEnough:
    # What the last state's measure said, which the history need not contain.
    sentence: str
    met: bool = False

    def __call__(self, history: History) -> bool:
        return self.met


def frank_wolfe(
    start: State,
    *,
    oracle: Callable[[State], tuple[State, Mapping[str, Any]]],
    step_rule: Callable[[State], Any],
    move: Callable[[State, Any], State],
    answered: Callable[[State], bool],
    max_iter: int,
    enough: Callable[[State], bool] | None = None,
    enough_sentence: str = "the duality gap is small enough",
    stop: StoppingRule | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run[State]:
    """Minimise a smooth convex function over the hull of some vertices."""

    good = _GoodEnough(enough_sentence)

    def step(state: State) -> tuple[State, Mapping[str, Any]]:
        if not answered(state):
            state, _ = oracle(state)
        # A start, or a run that is taken up again where it had ended.
        if enough is not None and enough(state):
            raise Finished(enough_sentence)
        new, measures = oracle(move(state, step_rule(state)))
        good.met = enough is not None and enough(new)
        return new, measures

    # The loop alone holds the start, which may be large and is not needed once the first step is done.
    held = [start]
    del start
    run = iterate(
        step,
        held.pop(),
        max_iter=max_iter,
        stop=good if stop is None else FirstOf((good, stop)),
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
    )
    state = run.state
    if not answered(state):
        state, _ = oracle(state)
    reason, sentence = run.stop_reason, run.sentence
    if enough is not None and reason in (StopReason.STALLED, StopReason.MAX_ITER) and enough(state):
        reason, sentence = StopReason.CONVERGED, enough_sentence
    return replace(run, state=state, stop_reason=reason, sentence=sentence)
