"""The one outer loop of all iterative methods."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from nonneg._interruption import check_interrupt, forget_interrupt
from nonneg.exceptions import InterruptedFitWarning, InvalidParameterError, LostRowsError
from nonneg.iteration.checkpoint import Checkpoint, check_factors
from nonneg.iteration.history import History
from nonneg.iteration.progress import Progress, Reporter, SilentReporter
from nonneg.iteration.stopping import Never, StoppingRule, StopReason, sentence_of

State = TypeVar("State")


class Stalled(Exception):
    """Raised by a step that can make no further progress; the last state is the result."""


class Finished(Exception):
    """Raised by a step whose state is good enough as it is; the message says why."""


@dataclass(frozen=True)
class Run(Generic[State]):
    """Outcome of the loop, from which each family builds its result.

    Parameters
    ----------
    state : Any
        The last accepted state.
    n_iter : int
        Number of iterations.
    stop_reason : StopReason
        Why it ended.
    history : History
        What was measured.
    sentence : str
        The reason in words: that of the rule which ended it, where it has one.
    """

    state: State
    n_iter: int
    stop_reason: StopReason
    history: History
    sentence: str


def _evaluate(measures: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value() if callable(value) else value for name, value in measures.items()}
    return {name: value if isinstance(value, np.ndarray) else float(value) for name, value in values.items()}


def iterate(
    step: Callable[[State], tuple[State, Mapping[str, Any]]],
    state: State,
    *,
    max_iter: int,
    stop: StoppingRule | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run[State]:
    """Repeat `step` until a rule, the callback, Ctrl-C or `max_iter` ends it.

    Parameters
    ----------
    step : callable
        Takes a state and returns the next one with its measures; a measure that is callable is evaluated
        outside the measured time. It may raise `Stalled` or `Finished`. It must not modify its argument. The
        measure "iterations" says how many iterations it did, where that is not one.
    state : Any
        The initial state; a dataclass if a checkpoint is used.
    max_iter : int
        Maximum number of iterations.
    stop : callable, optional
        Takes the history and says whether to stop; its ``sentence``, if it has one, is shown then.
    callback : callable, optional
        Takes a `Progress`; returning True stops the run.
    progress : Reporter, optional
        Shows the run.
    checkpoint : Checkpoint, optional
        Saves and resumes the run.

    Returns
    -------
    Run
        The last accepted state and how it was reached.
    """
    if callback is not None and not callable(callback):
        raise InvalidParameterError(f"callback must be None or a function of one argument, got {callback!r}.")
    stop = stop or Never()
    shown: Reporter = progress or SilentReporter()
    history, seconds, done = History(), 0.0, 0
    if checkpoint is not None and (saved := checkpoint.load(state)) is not None:
        state, done, seconds, history = saved
        shown.resume(done)
    reason, sentence = StopReason.MAX_ITER, ""
    n_iter = done
    # A run that had ended by its rule is not continued.
    finished = done > 0 and stop(history)
    try:
        while n_iter < max_iter and not finished:
            check_interrupt()
            started = time.perf_counter()
            new, measures = step(state)
            elapsed = time.perf_counter() - started
            values = _evaluate(measures)
            # Ctrl-C until here leaves state and history as they were after the last iteration.
            state = new
            seconds, n_iter = seconds + elapsed, n_iter + int(values.pop("iterations", 1))
            history.record(n_iter, seconds, values)
            now = Progress(n_iter, state, history)
            shown.update(now, max_iter)
            if callback is not None:
                asked = callback(now)
                check_factors(state, "after the callback, which must not modify it")
                if asked:
                    reason = StopReason.CALLBACK
                    break
            finished = stop(history)
            if checkpoint is not None and (finished or checkpoint.due()):
                checkpoint.save(state, n_iter, seconds, history)
    except Stalled:
        reason = StopReason.STALLED
    except Finished as found_enough:
        reason, sentence = StopReason.CONVERGED, str(found_enough)
    except LostRowsError as lost:
        # The caller has the means to go on from the last accepted H.
        lost.run = Run(state, n_iter, StopReason.STALLED, history, "")
        raise
    except KeyboardInterrupt:
        forget_interrupt()
        reason = StopReason.INTERRUPTED
        warnings.warn(
            f"Interrupted after {n_iter} iterations; the best factors so far are returned.",
            InterruptedFitWarning,
            stacklevel=2,
        )
    if finished:
        reason, sentence = StopReason.CONVERGED, sentence_of(stop, history)
    if checkpoint is not None and not finished and n_iter > done:
        checkpoint.save(state, n_iter, seconds, history)
    shown.close(sentence or reason.value)
    return Run(state, n_iter, reason, history, sentence or reason.value)
