"""Iterations on a GPU without waiting for it: few trials of the search, recorded once and replayed.

A program that asks after every trial of a search whether all have ended waits for the device each time. Here
every run of a batch makes a fixed number of trials. Where the search of a few has not ended by then, these
few make the iteration again with more; where that of many has not, all do. What is still open after the most
is done in the way that reads. The numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray, IntArray
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import RENEWAL
from nonneg.transforms.transform_learning import Measures

# Numbers of trials of every run that are recorded.
TRIALS = (1, 2, 3, 5, 8)
# Up to this share of a batch are few.
FEW = 1.0 / 16.0
# Few runs are made up to one of so many, so that as many numbers of runs are recorded.
LEAST_PART, PART_FACTOR = 64, 4
# After so many iterations in which few runs had to search alone, which takes about as long as an iteration of
# all, all make more trials; after so many in which none had to, fewer are tried again.
LATE, PATIENCE = 3, 25
# Calls before the operations are recorded, so that libraries have set up what they need.
WARM_UP = 2

Step = Callable[[Any, Any, TransformOptions], tuple[Any, Measures]]
Values = dict[str, FloatArray]
"""One array of shape (batch,) by name, at home."""
ARRAYS = ("transform", "frames", "activations", "components")


class DeviceAdvance:
    """Advances a batch on a device."""

    def __init__(
        self, step: Step, data: Any, options: TransformOptions, *, searches: bool, stays: bool
    ) -> None:
        self.step, self.data, self.options = step, data, options
        self.searches, self.stays = searches, stays
        most = options.max_trials
        self.trials = sorted({min(count, most) for count in TRIALS}) if searches else [most]
        self.level = min(1, len(self.trials) - 1)
        self._options = [replace(options, reads=False, max_trials=count) for count in self.trials]
        self._idle, self._late, self._patience = 0, 0, PATIENCE
        self._recorded: dict[tuple[int, int], _Recorded] = {}
        self._failed: set[int] = set()

    def __call__(self, state: Any) -> tuple[Any, Values]:
        """Make an iteration."""
        if state.n_done % RENEWAL == 0:
            self._failed = set()
        most = len(self.trials) - 1
        if self._idle >= self._patience:
            self._go_to(max(0, self.level - 1))
        elif self._late >= LATE and self.level < most:
            # Fewer were too few: they are tried again later than last time.
            self._patience = 2 * PATIENCE
            self._go_to(self.level + 1)
        while True:
            new, measures = self.quick_step(state)
            open_ends = self._open_ends(state, measures)
            if len(open_ends) <= FEW * state.batch or self.level == most:
                break
            self._go_to(self.level + 1)
        self._late, self._idle = (self._late + 1, 0) if len(open_ends) else (self._late, self._idle + 1)
        level = self.level
        while len(open_ends) and level < most:
            level = min(level + 2, most)
            part = state.part(_filled(open_ends, state.batch))
            again, found = self.quick_step(part, level)
            new, measures = _put(new, measures, again, found, open_ends)
            open_ends = open_ends[found["searched"][: len(open_ends)] == 0]
        if len(open_ends):
            again, found = _at_home(*self.step(state.part(open_ends), self.data, self.options))
            if self.stays:
                failed = open_ends[found["searched"] == 0]
                self._failed |= {int(lane) for lane in state.lanes[failed]}
            new, measures = _put(new, measures, again, found, open_ends)
        return new, measures

    def _go_to(self, level: int) -> None:
        self.level, self._idle, self._late = level, 0, 0

    def _open_ends(self, state: Any, measures: Values) -> IntArray:
        """Return the runs whose search has not ended and may still succeed."""
        if not self.searches:
            return np.empty(0, np.int64)
        found = np.flatnonzero(measures["searched"] == 0)
        if self.stays and len(found) and self._failed:
            found = np.array([at for at in found if int(state.lanes[at]) not in self._failed], np.int64)
        return found

    def quick_step(self, state: Any, level: int | None = None) -> tuple[Any, Values]:
        """Make an iteration with a fixed number of trials."""
        level = self.level if level is None else level
        options = self._options[level]
        held = state.activations if state.activations is not None else state.transform
        if not getattr(held, "is_cuda", False):
            return _at_home(*self.step(state, self.data, options))
        key = (state.batch, level)
        if key not in self._recorded:
            if level == self.level:
                # Batches shrink when starts are given up: what was recorded for larger ones is let go.
                self._recorded = {at: what for at, what in self._recorded.items() if at[0] <= state.batch}
            self._recorded[key] = _Recorded(self.step, self.data, options, state)
        return self._recorded[key](state)


class _Recorded:
    """One iteration as a CUDA graph, with places from which it reads and to which it writes."""

    def __init__(self, step: Step, data: Any, options: TransformOptions, state: Any) -> None:
        import torch

        given = {name: getattr(state, name, None) for name in ARRAYS}
        self._places = {
            name: array.clone(memory_format=torch.contiguous_format)
            for name, array in given.items()
            if array is not None
        }
        self._state = replace(state, **self._places)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                step(self._state, data, options)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._new, measures = step(self._state, data, options)
            # One table, so that the device is waited for once.
            self._names = list(measures)
            self._table = torch.stack([measures[name] for name in self._names])

    def __call__(self, state: Any) -> tuple[Any, Values]:
        for name, place in self._places.items():
            place.copy_(getattr(state, name))
        self._graph.replay()
        # Copies: the next replay writes to the same places.
        new = {name: getattr(self._new, name).clone() for name in self._places}
        rows = self._table.cpu().numpy()
        measures = dict(zip(self._names, rows, strict=True))
        return replace(state, **new, n_done=state.n_done + 1), measures


def _at_home(state: Any, measures: Measures) -> tuple[Any, Values]:
    """Bring measures home."""
    return state, {name: to_float64(values) for name, values in measures.items()}


def _filled(rows: IntArray, batch: int) -> IntArray:
    """Return rows, the last one repeated until there are one of a few numbers of them."""
    size = LEAST_PART
    while size < len(rows):
        size *= PART_FACTOR
    return rows[np.minimum(np.arange(min(size, batch)), len(rows) - 1)]


def _put(state: Any, measures: Values, part: Any, found: Values, rows: IntArray) -> tuple[Any, Values]:
    """Replace some runs of a batch, and their measures, by the first ones of another batch."""
    n = len(rows)
    changed = {}
    for name in ARRAYS:
        whole = getattr(state, name, None)
        if whole is not None:
            xp = array_namespace(whole)
            changed[name] = xp.asarray(whole, copy=True)
            changed[name][xp.asarray(rows, device=device_of(whole))] = getattr(part, name)[:n, ...]
    values = {name: column.copy() for name, column in measures.items()}
    for name, column in values.items():
        column[rows] = found[name][:n]
    return replace(state, **changed), values
