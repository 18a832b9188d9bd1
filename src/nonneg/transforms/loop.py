"""A batch of restarts in the one loop: stopping rules, restart pruning, checkpoint, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._arrays import to_device, to_float64
from nonneg._lazy import cached_property
from nonneg._typing import BoolArray, FloatArray, IntArray
from nonneg.iteration import Checkpoint, History, Progress, Run, StopReason, iterate
from nonneg.iteration.loop import Stalled
from nonneg.iteration.progress import reporter
from nonneg.transforms.dispatch import Step, batch_step
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import REORTHOGONALIZATION_PERIOD, TransformState, reorthogonalized

# Iterations over which a decrease of the loss is judged: single ones are uneven.
WINDOW = 10


@dataclass(frozen=True)
class SmallDecrease:
    """Stop when no restart's loss decreased by more than `tol` per entry in ten iterations."""

    tol: float  # in the loss's own units over the number of variances; 0 never stops
    entries: int  # the number of variances

    def __call__(self, history: History) -> bool:
        losses = history.loss
        if self.tol <= 0 or len(losses) <= WINDOW:
            return False
        before, now = np.asarray(losses[-1 - WINDOW]), np.asarray(losses[-1])
        return not bool(np.any(before - now > self.tol * self.entries))


@dataclass(frozen=True)
class SmallGradient:
    """Stop when the skew gradients of all restarts are small."""

    tol: float  # the norm; 0 never stops

    def __call__(self, history: History) -> bool:
        return self.tol > 0 and not bool(np.any(np.asarray(history["gradient"][-1]) > self.tol))


@dataclass(frozen=True)
class BatchRun:
    """How a batch of restarts ended."""

    run: Run[Any]  # of the loop
    n_restarts: int  # how many there were

    @cached_property
    def losses(self) -> FloatArray:
        """What was minimized, at the end of each restart."""
        return last_values(self.run.history, "loss", self.n_restarts)[0]

    @property
    def state(self) -> Any:
        """The state of the restarts that are left."""
        return self.run.state

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped it, so that no further part of a run is begun."""
        return self.run.stop_reason in (StopReason.INTERRUPTED, StopReason.CALLBACK)

    @property
    def best_history(self) -> History:
        """The history of the best restart."""
        return restart_history(self.run.history, self.best, self.n_restarts)

    @property
    def best(self) -> int:
        """The restart with the least loss among those that were not pruned."""
        kept = np.full(self.n_restarts, np.inf)
        restarts = self.run.state.restarts
        kept[restarts] = np.where(np.isnan(self.losses[restarts]), np.inf, self.losses[restarts])
        return int(restarts[0]) if not np.isfinite(kept).any() else int(np.argmin(kept))

    @property
    def pruned(self) -> BoolArray:
        """Which restarts were pruned."""
        found = np.ones(self.n_restarts, dtype=np.bool_)
        found[self.run.state.restarts] = False
        return found

    @property
    def best_index(self) -> int:
        """Where the best restart is in the batch that is left."""
        return int(np.flatnonzero(self.run.state.restarts == self.best)[0])

    @property
    def n_iter(self) -> IntArray:
        """Iterations of each restart."""
        return last_values(self.run.history, "loss", self.n_restarts)[1].astype(np.int64)


@dataclass(frozen=True)
class LoopOptions:
    """Options of the loop, the same for every part of a run."""

    max_iter: int
    tol: float = 0.0  # stop below this decrease of the loss per entry in ten iterations
    gradient_tol: float = 0.0  # joint diagonalization: stop below this norm of the skew gradient
    prune_every: int | None = None  # iterations between two prunings of restarts
    callback: Callable[[Progress], bool | None] | None = None
    verbose: int = 0
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        checked_verbose(self.verbose)
        checked_checkpoint(self.checkpoint)

    def run(self, method: str, state: Any, data: Any, options: TransformOptions, name: str = "") -> BatchRun:
        """Run one part ("tl", "jd" or "nmf") from the states of a batch; `name` is that of the part."""
        if method == "jd":
            stop: Any = SmallGradient(self.gradient_tol)
        else:
            entries = data.shape[1] * data.shape[2] if method == "nmf" else data.n_frames * data.frame_length
            stop = SmallDecrease(self.tol, entries)
        # The factors of all restarts belong to one transform: none is pruned.
        prune_every = None if method == "nmf" else self.prune_every
        step = _LoopStep(
            batch_step(method, data, options),
            None if method == "nmf" else data,
            state.batch,
            prune_every=prune_every,
            max_iter=self.max_iter,
            may_stall=method == "jd",
        )
        folder = None if self.checkpoint is None else Path(self.checkpoint) / (name or method)
        saved = _checkpoint(folder, method, state, data, options, prune_every, self.max_iter)
        run = iterate(
            step,
            state,
            max_iter=self.max_iter,
            stop=stop,
            callback=self.callback,
            progress=reporter(name or method, self.verbose),
            checkpoint=saved,
        )
        return BatchRun(run, state.batch)


class _LoopStep:
    """The step of the loop."""

    def __init__(
        self,
        step: Step,
        data: Any,
        n_restarts: int,
        *,
        prune_every: int | None,
        max_iter: int,
        may_stall: bool,
    ) -> None:
        self.step = step
        self.data = data
        self.n_restarts = n_restarts
        self.prune_every = prune_every
        self.max_iter = max_iter
        self.may_stall = may_stall
        self._stuck = False

    def __call__(self, state: Any) -> tuple[Any, dict[str, Any]]:
        """Advance the batch by one iteration."""
        if self._stuck:
            raise Stalled
        restarts = state.restarts
        state, found = self.step(state)
        if self.data is not None and state.n_done % REORTHOGONALIZATION_PERIOD == 0:
            state = reorthogonalized(state, self.data)
        columns = {
            name: values
            if isinstance(values, np.ndarray) and values.dtype == np.float64
            else to_float64(values)
            for name, values in found.items()
        }
        self._stuck = self.may_stall and not bool(np.any(columns["step"]))
        losses = columns["loss"]
        measures: dict[str, Any] = {name: float(values[0]) for name, values in columns.items()}
        if self.n_restarts > 1:
            measures = {name: np.full(self.n_restarts, np.nan) for name in columns}
            for name, values in columns.items():
                measures[name][restarts] = values
        if (
            self.prune_every is not None
            and state.n_done % self.prune_every == 0
            and state.n_done < self.max_iter
        ):
            state = self._pruned(state, losses)
        return state, measures

    def _pruned(self, state: TransformState, losses: FloatArray) -> TransformState:
        """Leave out restarts that would not reach the best one even at the rate of their last iterations."""
        assert self.prune_every is not None
        if state.pruning_losses is not None:
            rounds_left = (self.max_iter - state.n_done) / self.prune_every
            hopeful = losses - rounds_left * np.maximum(state.pruning_losses - losses, 0.0) <= losses.min()
            if not hopeful.all():
                kept = np.flatnonzero(hopeful)
                state, losses = state.part(kept), losses[kept]
        return replace(state, pruning_losses=losses)


def restart_history(history: History, restart: int, n_restarts: int) -> History:
    """Return the history of one restart."""
    if n_restarts == 1:
        return history
    found = History()
    for row, (n_iter, seconds) in enumerate(zip(history.n_iter, history.seconds, strict=True)):
        measures = {
            name: float(history[name][row][restart])
            for name in history.names
            if name not in ("n_iter", "seconds")
        }
        if np.isnan(measures["loss"]):
            break
        found.record(n_iter, seconds, measures)
    return found


def last_values(history: History, name: str, n_restarts: int) -> tuple[FloatArray, FloatArray]:
    """Return the last value that every restart had, and when."""
    if name not in history or not len(history):
        return np.full(n_restarts, np.nan), np.zeros(n_restarts)
    table = np.asarray([np.broadcast_to(row, (n_restarts,)) for row in history[name]])
    made: BoolArray = ~np.isnan(table)
    counts = made.sum(axis=0)
    rows = np.maximum(counts - 1, 0)
    return np.where(counts > 0, table[rows, np.arange(n_restarts)], np.nan), counts


def _checkpoint(
    folder: str | Path | None,
    method: str,
    state: Any,
    data: Any,
    options: TransformOptions,
    prune_every: int | None,
    max_iter: int,
) -> Checkpoint | None:
    """Return where a part of a run is saved and resumed."""
    held = data if method == "nmf" else data.virtual
    inits = [getattr(state, name, None) for name in ("transform", "activations", "components")]

    def from_numpy(name: str, array: Any) -> Any:
        return array if name in ("restarts", "pruning_losses") else to_device(array, held)

    # Where restarts are pruned depends on the last iteration.
    pruning = prune_every, max_iter if prune_every else None
    return Checkpoint.of(folder, method, options.as_dict(), pruning, held, inits, from_numpy=from_numpy)
