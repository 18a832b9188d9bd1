"""A batch of runs in the one loop: measures by start, stopping, hopeless starts, checkpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from nonneg._arrays import to_float64
from nonneg._typing import BoolArray, FloatArray
from nonneg.iteration import Checkpoint, History, Progress, Run, iterate
from nonneg.iteration.loop import Stalled
from nonneg.iteration.progress import reporter
from nonneg.iteration.stopping import StoppingRule
from nonneg.transforms.advance import Advance, advancer
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import RENEWAL, TransformState, renewed

WINDOW = 10


@dataclass(frozen=True)
class LossesSettled:
    """Stop when no start's loss decreased by more than `tol` an entry in ten iterations."""

    tol: float  # in the loss's own units over the number of variances; 0 never stops
    entries: int  # the number of variances

    def __call__(self, history: History) -> bool:
        losses = history.loss
        if self.tol <= 0 or len(losses) <= WINDOW:
            return False
        before, now = np.asarray(losses[-1 - WINDOW]), np.asarray(losses[-1])
        return not bool(np.any(before - now > self.tol * self.entries))


@dataclass(frozen=True)
class GradientsSmall:
    """Stop when the skew gradients of all starts are small."""

    tol: float  # the norm; 0 never stops

    def __call__(self, history: History) -> bool:
        return self.tol > 0 and not bool(np.any(np.asarray(history["gradient"][-1]) > self.tol))


class BatchStep:
    """The step of the loop."""

    def __init__(
        self,
        advance: Advance,
        data: Any,
        n_lanes: int,
        *,
        drop: int | None,
        max_iter: int,
        rotations_only: bool,
    ) -> None:
        self.advance = advance
        self.data = data
        self.n_lanes = n_lanes
        self.drop = drop
        self.max_iter = max_iter
        self.rotations_only = rotations_only
        self._stuck = False

    def __call__(self, state: Any) -> tuple[Any, dict[str, Any]]:
        """Advance the batch by one iteration."""
        if self._stuck:
            raise Stalled
        lanes = state.lanes
        state, found = self.advance(state)
        if self.data is not None and state.n_done % RENEWAL == 0:
            state = renewed(state, self.data)
        columns = {
            name: values
            if isinstance(values, np.ndarray) and values.dtype == np.float64
            else to_float64(values)
            for name, values in found.items()
        }
        self._stuck = self.rotations_only and not bool(np.any(columns["step"]))
        losses = columns["loss"]
        measures: dict[str, Any] = {name: float(values[0]) for name, values in columns.items()}
        if self.n_lanes > 1:
            measures = {name: np.full(self.n_lanes, np.nan) for name in columns}
            for name, values in columns.items():
                measures[name][lanes] = values
        if self.drop is not None and state.n_done % self.drop == 0 and state.n_done < self.max_iter:
            state = self._without_hopeless(state, losses)
        return state, measures

    def _without_hopeless(self, state: TransformState, losses: FloatArray) -> TransformState:
        """Leave out starts that would not reach the best one even at the rate of their last iterations."""
        assert self.drop is not None
        if state.marks is not None:
            rounds_left = (self.max_iter - state.n_done) / self.drop
            hopeful = losses - rounds_left * np.maximum(state.marks - losses, 0.0) <= losses.min()
            if not hopeful.all():
                kept = np.flatnonzero(hopeful)
                state, losses = state.part(kept), losses[kept]
        return replace(state, marks=losses)


def run_batch(
    method: str,
    state: Any,
    data: Any,
    options: TransformOptions,
    *,
    max_iter: int,
    stop: StoppingRule,
    drop: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    name: str = "",
) -> Run[Any]:
    """Advance a batch until a rule ends it."""
    step = BatchStep(
        advancer(method, data, options),
        data if method != "factors" else None,
        state.batch,
        drop=drop,
        max_iter=max_iter,
        rotations_only=method == "jd",
    )
    saved = None
    if checkpoint is not None:
        saved = _checkpoint(Path(checkpoint) / (name or method), method, state, data, options, drop, max_iter)
    return iterate(
        step,
        state,
        max_iter=max_iter,
        stop=stop,
        callback=callback,
        progress=reporter(name or method, verbose),
        checkpoint=saved,
    )


def lane_history(history: History, lane: int, n_lanes: int) -> History:
    """Return the history of one start."""
    if n_lanes == 1:
        return history
    found = History()
    for row, (n_iter, seconds) in enumerate(zip(history.n_iter, history.seconds, strict=True)):
        measures = {
            name: float(history[name][row][lane])
            for name in history.names
            if name not in ("n_iter", "seconds")
        }
        if np.isnan(measures["loss"]):
            break
        found.record(n_iter, seconds, measures)
    return found


def last_values(history: History, name: str, n_lanes: int) -> tuple[FloatArray, FloatArray]:
    """Return the last value that every start had, and when."""
    if name not in history or not len(history):
        return np.full(n_lanes, np.nan), np.zeros(n_lanes)
    table = np.asarray([np.broadcast_to(row, (n_lanes,)) for row in history[name]])
    made: BoolArray = ~np.isnan(table)
    counts = made.sum(axis=0)
    rows = np.maximum(counts - 1, 0)
    return np.where(counts > 0, table[rows, np.arange(n_lanes)], np.nan), counts


def _checkpoint(
    folder: Path,
    method: str,
    state: Any,
    data: Any,
    options: TransformOptions,
    drop: int | None,
    max_iter: int,
) -> Checkpoint:
    held = data if method == "factors" else data.virtual
    xp, place = array_namespace(held), device_of(held)

    def home(name: str, array: Any) -> Any:
        if isinstance(array, np.ndarray):
            return array
        return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)

    def away(name: str, array: Any) -> Any:
        return array if name in ("lanes", "marks") else xp.asarray(array, device=place)

    digest = hashlib.sha256()
    arrays = [held, *(getattr(state, name, None) for name in ("transform", "activations", "components"))]
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(home("", array)).tobytes())
    facts = [method, options.as_dict(), drop, max_iter if drop else None, digest.hexdigest()]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    return Checkpoint(folder, key, to_numpy=home, from_numpy=away)
