"""A batch of restarts in the one loop: steps, stopping rules, checkpoint, and how it ended.

An iteration is made by compiled kernels for small problems in NumPy, and by array code for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._arrays import to_device, to_float64
from nonneg._threads import parallel_for
from nonneg._typing import FloatArray
from nonneg.iteration import Checkpoint, History, Progress, Run, StopReason, iterate
from nonneg.iteration.loop import Stalled
from nonneg.iteration.progress import reporter
from nonneg.kernels import transforms as kernels
from nonneg.kernels.majorization_equalization import is_supported
from nonneg.transforms.options import DEFAULTS, TransformOptions
from nonneg.transforms.state import (
    REORTHOGONALIZATION_PERIOD,
    TransformState,
    concatenated,
    part_of,
    reorthogonalized,
)
from nonneg.transforms.steps import Measures, jd_step, nmf_step, tl_step

# Iterations over which a decrease of the loss is judged: single ones are uneven.
WINDOW = 10

Step = Callable[[Any], tuple[Any, Measures]]
"""From a batch of restarts to the batch after one more iteration, with its measures."""

ARRAY_STEPS: dict[str, Callable[[Any, Any, TransformOptions], tuple[Any, Measures]]] = {
    "tl": tl_step,
    "jd": jd_step,
    "nmf": nmf_step,
}
"""The array code of each method: ``step(state, data, options) -> state, measures``."""


def batch_step(method: str, data: Any, options: TransformOptions) -> Step:
    """Return the function that makes one iteration of a batch."""
    # On NumPy the restarts of a batch are advanced one by one, on the pool's threads, small ones by compiled
    # kernels: the numbers do not depend on the batch or the threads. Elsewhere the batch is one computation.
    if (compiled := compiled_step(method, data, options)) is not None:
        return compiled
    step = ARRAY_STEPS[method]
    held = data if method == "nmf" else data.virtual

    def whole_batch(state: Any) -> tuple[Any, Measures]:
        return step(state, data, options)

    def one_by_one(state: Any) -> tuple[Any, Measures]:
        if state.batch == 1 or (
            method == "nmf" and is_supported(data, state.components.shape[1], options.eps0)
        ):
            return whole_batch(state)  # the kernel takes one restart after another

        def work(start: int, stop: int) -> list[tuple[Any, Measures]]:
            return [whole_batch(part_of(state, slice(i, i + 1))) for i in range(start, stop)]

        parts = [pair for part in parallel_for(work, state.batch, chunk_size=1) for pair in part]
        states, measures = [pair[0] for pair in parts], [pair[1] for pair in parts]
        columns = {name: np.concatenate([part[name] for part in measures]) for name in measures[0]}
        return concatenated(states), columns

    return one_by_one if is_numpy_array(held) else whole_batch


def compiled_step(method: str, data: Any, options: TransformOptions) -> Step | None:
    """Return the compiled kernel as a step of the loop, where it supports the problem."""
    # Factors of a fixed transform have a kernel of their own, `kernels.majorization_equalization`.
    if method == "nmf" or options.line_search != DEFAULTS[method]["line_search"]:
        return None
    supported = kernels.is_supported(data.virtual, options.eps0 if method == "tl" else None)
    return _CompiledStep(method, data, options) if supported else None


class _CompiledStep:
    """The moments of the frames are kept for the next iteration, if it begins where this one ended."""

    def __init__(self, method: str, data: Any, options: TransformOptions) -> None:
        self.learns, self.options = method == "tl", options
        self.columns = np.ascontiguousarray(data.virtual.swapaxes(1, 2))
        self._frames: FloatArray | None = None
        self._moments: tuple[FloatArray, FloatArray] | None = None

    def __call__(self, state: TransformState) -> tuple[TransformState, Measures]:
        options = self.options
        factors: tuple[Any, Any] = (state.activations, state.components)
        done = kernels.transform_step(
            self.columns,
            options.eps0,
            state.transform,
            state.frames,
            factors if self.learns else None,
            n_nmf_updates=options.n_nmf_updates,
            n_rotation_updates=options.n_rotation_updates,
            max_trials=options.max_trials,
            moments=self._moments if state.frames is self._frames else None,
        )
        self._frames, self._moments = done.frames, done.moments
        # Not `replace`, which takes as long as some updates of the factors.
        activations, components = done.factors or factors
        new = TransformState(done.transform, done.frames, activations, components, state.n_done + 1)
        measures = done.measures
        measures["loss"] = measures["C" if self.learns else "L"]
        return new, measures


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
            *(method, vars(options), held, inits),
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
