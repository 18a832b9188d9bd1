"""The one outer loop of all iterative methods, and steps that never increase the loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from nonneg._arrays import on_gpu, to_torch
from nonneg._interruption import end_run, pending
from nonneg._threads import single_threaded_blas
from nonneg.exceptions import InvalidParameterError, LostRowsError
from nonneg.iteration.captured import Captured, factor_entries
from nonneg.iteration.checkpoint import Checkpoint, check_factors
from nonneg.iteration.history import History
from nonneg.iteration.progress import Progress, Reporter
from nonneg.iteration.stopping import StoppingRule, StopReason

State = TypeVar("State")
# Entries of the larger factor up to which the next iteration is queued on a GPU: both are in memory then. At
# this size each of its copies takes 32 megabytes in float32.
AHEAD_ENTRIES = 1 << 23
# Containers on a GPU whose iterations are the same launches every time, with nothing copied from the host.
ON_DEVICE = frozenset({"array", "sparse-array"})
# The measures that a state may carry.
MEASURES = ("loss", "violation")


class Stalled(Exception):
    """Raised by a step that can make no further progress; the last state is the result."""


class Finished(Exception):
    """Raised by a step whose state is good enough as it is; the message says why."""


@dataclass(frozen=True)
class Run(Generic[State]):
    """Outcome of the loop, from which each family builds its result."""

    state: State  # the last accepted one
    n_iter: int
    stop_reason: StopReason
    history: History
    sentence: str  # the reason in words: that of the rule which ended it, where it has one


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

    A step takes a state, which it does not modify, and returns the next one with its measures; it may raise
    `Stalled` or `Finished`. A measure that is callable is evaluated outside the measured time; "iterations"
    says how many iterations a step did, where that is not one. A rule takes the history; its ``sentence``, if
    it has one, is shown when it ends the run. The state is a dataclass where there is a checkpoint.
    """
    if callback is not None and not callable(callback):
        raise InvalidParameterError(f"callback must be None or a function of one argument, got {callback!r}.")
    stop = stop or (lambda history: False)
    history, seconds, done = History(), 0.0, 0
    if checkpoint is not None and (saved := checkpoint.load(state)) is not None:
        state, done, seconds, history = saved
        if progress is not None:
            progress.resume(done)
    reason, sentence = StopReason.MAX_ITER, ""
    n_iter = done
    # A run that had ended by its rule is not continued.
    finished = done > 0 and stop(history)
    try:
        while n_iter < max_iter and not finished:
            if pending.is_set():
                raise KeyboardInterrupt
            started = time.perf_counter()
            new, measures = step(state)
            elapsed = time.perf_counter() - started
            values = _evaluate(measures)
            # Ctrl-C until here leaves state and history as they were after the last iteration.
            state = new
            seconds, n_iter = seconds + elapsed, n_iter + int(values.pop("iterations", 1))
            history.record(n_iter, seconds, values)
            now = Progress(n_iter, state, history)
            if progress is not None:
                progress.update(now, max_iter)
            if callback is not None:
                stopped = callback(now)
                check_factors(state, "after the callback, which must not modify it")
                if stopped:
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
        end_run(n_iter)
        reason = StopReason.INTERRUPTED
    if finished:
        reason, sentence = StopReason.CONVERGED, getattr(stop, "sentence", "")
    if checkpoint is not None and not finished and n_iter > done:
        checkpoint.save(state, n_iter, seconds, history)
    if progress is not None:
        progress.close(sentence or reason.value)
    return Run(state, n_iter, reason, history, sentence or reason.value)


def solver(
    rule: Callable[[float], StoppingRule], *, limits: bool = False
) -> Callable[..., Callable[..., Run[Any]]]:
    """Make a solver of a method that returns its step and its initial state; `rule` takes `tol`.

    With `limits` the method takes `max_iter` and `tol` as well.
    """

    def runs(method: Callable[..., tuple[Any, Any]]) -> Callable[..., Run[Any]]:
        @wraps(method)
        def run(
            data: Any,
            W: Any,
            Ht: Any,
            *,
            max_iter: int = 200,
            tol: float = 1e-4,
            callback: Callable[[Progress], bool | None] | None = None,
            progress: Reporter | None = None,
            checkpoint: Checkpoint | None = None,
            **options: Any,
        ) -> Run[Any]:
            if limits:
                options |= {"max_iter": max_iter, "tol": tol}
            with single_threaded_blas():
                step, state = method(data, W, Ht, **options)
                return iterate(
                    step, state, max_iter=max_iter, stop=rule(tol), callback=callback, progress=progress,
                    checkpoint=checkpoint,
                )  # fmt: skip

        return run

    return runs


class DeviceNumber:
    """A number on a GPU whose copy to the host is on its way; `float` waits for it, not for later work."""

    def __init__(self, tensor: Any) -> None:
        import torch

        self._host, self._done = tensor, None
        if tensor.is_cuda:
            self._host = torch.empty((), dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._done = torch.cuda.Event()
            self._done.record()

    def __float__(self) -> float:
        if self._done is not None:
            self._done.synchronize()
        return float(self._host)


def read_later(value: Any) -> Any:
    """Return a number as a float, or as a `DeviceNumber` if it is on a GPU."""
    if type(value) is float or isinstance(value, DeviceNumber):
        return value
    return DeviceNumber(to_torch(value)) if on_gpu(value) else float(value)


def changed(state: State, **changes: Any) -> State:
    """Return a copy of a dataclass with other values; `dataclasses.replace` takes ten times as long."""
    new = object.__new__(type(state))
    new.__dict__.update(state.__dict__, **changes)
    return new


# Candidate for the next state: the state with the numbers that it will have, a function that returns the new
# values of other fields by name, and the numbers that this function takes besides the state.
Candidate: TypeAlias = tuple[Any, ...]
Candidates: TypeAlias = Generator[Candidate, dict[str, Any], None]


class Descent:
    """A step that takes the first of several candidates whose loss is not higher; else nothing changes.

    On a GPU the first candidate of the next iteration is queued before the loss of the present one is known,
    because most first candidates are good enough. The decisions are the same. Iterations are recorded there.
    """

    # `candidates(state)` yields what to try, and is sent what its function returned, also the names that are
    # no fields. A state has a `loss`, and maybe a `violation` and a `slack`: what rounding may have added to
    # the loss. `container`: that of the data; passes over those of a cluster or a file keep the host busy.

    def __init__(self, candidates: Callable[[Any], Candidates], container: str) -> None:
        self._candidates = candidates
        self._on_device = container in ON_DEVICE
        self._captured = Captured()
        # A state, the candidates for its next iteration, and the first of them with what changed.
        self._queued: tuple[Any, Candidates, Any] | None = None

    def __call__(self, state: Any) -> tuple[Any, dict[str, float]]:
        """Do one iteration that does not increase the loss."""
        queued, self._queued = self._queued, None
        if queued is not None and queued[0] is state:
            _, tries, first = queued
        else:
            tries, first = self._candidates(state), None
        before, is_first = float(state.loss), True
        changes: Any = None
        while True:
            if first is not None:
                after, changes = first
            elif (candidate := _next(tries, changes)) is None:
                after, ahead = state, None
                break
            else:
                begin, function, *numbers = candidate
                changes = self._recorded(function)(begin, *numbers)
                after = _after(begin, changes)
            ahead = self._look_ahead(after) if is_first else None
            # From a state without a loss any step is taken; a loss of NaN is then seen in the history.
            if before == math.inf or float(after.loss) <= before + getattr(after, "slack", 0.0):
                break
            # The memory of rejected arrays is free for the next ones.
            changes = {
                name: changes[name] for name in changes if name in MEASURES or not hasattr(after, name)
            }
            is_first, first, ahead, after = False, None, None, None
        measures = {name: float(getattr(after, name)) for name in MEASURES if hasattr(after, name)}
        after = changed(after, **measures)
        if ahead is not None:
            self._queued = (after, *ahead)
        return after, measures

    def _recorded(self, function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        return partial(self._captured, function) if self._on_device else function

    def _look_ahead(self, after: Any) -> tuple[Candidates, Any] | None:
        """Queue the next iteration where the loss of this one is still on its way."""
        on_its_way = self._on_device and isinstance(after.loss, DeviceNumber)
        if not on_its_way or factor_entries(after) > AHEAD_ENTRIES:
            return None
        following = self._candidates(after)
        begin, function, *numbers = next(following)
        changes = self._recorded(function)(begin, *numbers)
        return following, (_after(begin, changes), changes)


def unchanged(state: Any) -> dict[str, Any]:
    """Return that nothing changes: the last candidate of a method that keeps its pair."""
    return {}


def _next(tries: Candidates, changes: dict[str, Any] | None) -> Candidate | None:
    try:
        return next(tries) if changes is None else tries.send(changes)
    except StopIteration:
        return None


def _after(begin: Any, changes: dict[str, Any]) -> Any:
    """Return the state after its changes; numbers on a GPU are on their way to the host."""
    names = begin.__dict__
    new = {name: changes[name] for name in changes if name in names}
    new |= {name: read_later(new.get(name, names[name])) for name in MEASURES if name in names}
    return changed(begin, **new)
