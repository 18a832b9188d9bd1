"""A batch of restarts in the one loop: stopping rules, checkpoint, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._arrays import to_device, to_float64
from nonneg._typing import FloatArray
from nonneg.iteration import Checkpoint, History, Progress, Run, StopReason, iterate
from nonneg.iteration.loop import Stalled
from nonneg.iteration.progress import reporter
from nonneg.transforms.dispatch import Step, batch_step
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import REORTHOGONALIZATION_PERIOD, reorthogonalized

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
    """End of a batch of restarts."""

    run: Run[Any]  # of the loop
    n_restarts: int  # how many there were

    @property
    def state(self) -> Any:
        """The state of the restarts."""
        return self.run.state

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped it, so that no further part of a run is begun."""
        return self.run.stop_reason in (StopReason.INTERRUPTED, StopReason.CALLBACK)

    def last(self, name: str) -> FloatArray:
        """Return the last value of a measure for every restart; NaN where there is none."""
        history = self.run.history
        value = history[name][-1] if name in history and len(history) else np.nan
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (self.n_restarts,)).copy()

    @property
    def losses(self) -> FloatArray:
        """Final objective of each restart; infinite where it is NaN."""
        losses = self.last("loss")
        return np.where(np.isnan(losses), np.inf, losses)

    @property
    def best(self) -> int:
        """The restart with the least loss."""
        return int(np.argmin(self.losses))

    @property
    def best_history(self) -> History:
        """The history of the best restart."""
        history = self.run.history
        if self.n_restarts == 1:
            return history
        alone = History()
        names = [name for name in history.names if name not in ("n_iter", "seconds")]
        for row, (n_iter, seconds) in enumerate(zip(history.n_iter, history.seconds, strict=True)):
            alone.record(n_iter, seconds, {name: float(history[name][row][self.best]) for name in names})
        return alone


@dataclass(frozen=True)
class LoopOptions:
    """Options of the loop, the same for every part of a run."""

    max_iter: int
    tol: float = 0.0  # stop below this decrease of the loss per entry in ten iterations
    gradient_tol: float = 0.0  # joint diagonalization: stop below this norm of the skew gradient
    callback: Callable[[Progress], bool | None] | None = None
    verbose: int = 0
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        checked_verbose(self.verbose)
        checked_checkpoint(self.checkpoint)

    def run(self, method: str, state: Any, data: Any, options: TransformOptions, name: str = "") -> BatchRun:
        """Run one part ("tl", "jd" or "nmf") from the states of a batch; `name` is that of the part."""
        if method == "jd":
            stop: SmallGradient | SmallDecrease = SmallGradient(self.gradient_tol)
        else:
            entries = data.shape[1] * data.shape[2] if method == "nmf" else data.n_frames * data.frame_length
            stop = SmallDecrease(self.tol, entries)
        step = _LoopStep(method, data, options, state.batch)
        folder = None if self.checkpoint is None else Path(self.checkpoint) / (name or method)
        held = data if method == "nmf" else data.virtual
        inits = [getattr(state, field, None) for field in ("transform", "activations", "components")]
        saved = Checkpoint.of(
            folder,
            *(method, options.as_dict(), held, inits),
            from_numpy=lambda _, array: to_device(array, held),
        )
        run = iterate(
            step,
            state,
            max_iter=self.max_iter,
            stop=stop,
            callback=self.callback,
            progress=reporter(f"transform ({name or method})", self.verbose),
            checkpoint=saved,
        )
        return BatchRun(run, state.batch)


class _LoopStep:
    """The step of the loop."""

    def __init__(self, method: str, data: Any, options: TransformOptions, n_restarts: int) -> None:
        self.step: Step = batch_step(method, data, options)
        self.method, self.data, self.n_restarts = method, data, n_restarts
        self._stuck = False

    def __call__(self, state: Any) -> tuple[Any, dict[str, Any]]:
        """Advance the batch by one iteration."""
        if self._stuck:
            raise Stalled
        state, measures = self.step(state)
        if self.method != "nmf" and state.n_done % REORTHOGONALIZATION_PERIOD == 0:
            state = reorthogonalized(state, self.data)
        columns = {
            name: values
            if isinstance(values, np.ndarray) and values.dtype == np.float64
            else to_float64(values)
            for name, values in measures.items()
        }
        # A joint diagonalization that no restart continues has nothing else to change.
        self._stuck = self.method == "jd" and not bool(np.any(columns["step"]))
        if self.n_restarts > 1:
            return state, columns
        return state, {name: float(values[0]) for name, values in columns.items()}
