"""CUDA graph capture and replay of iterations, without synchronizing with the GPU in between.

A program that asks after every trial of a line search whether all have ended synchronizes each time. Here
every restart of a batch makes a fixed number of trials. Where the searches of a few have not ended by then,
these few make the iteration again with more trials; where those of many have not, all do. What is unfinished
after the maximum is done by the code that synchronizes. The numbers are the same.
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
from nonneg.transforms.state import REORTHOGONALIZATION_PERIOD
from nonneg.transforms.steps import Measures

# Numbers of trials that are captured: few graphs, as each costs a warm-up and device memory.
TRIALS = (1, 2, 3, 5, 8)
# Up to this share of a batch are few, and make their searches again alone.
FEW = 1.0 / 16.0
# Few restarts are padded to one of these sizes, so that few sizes are captured.
SMALLEST_PART, PART_GROWTH = 64, 4
# After this many iterations in which few restarts had to search again, which takes about as long as an
# iteration of all, all make more trials; after this many in which none had to, fewer are tried again.
LATE, PATIENCE = 3, 25
# Calls before the capture, so that libraries have set up what they need.
WARM_UP = 2

ArrayStep = Callable[[Any, Any, TransformOptions], tuple[Any, Measures]]
Values = dict[str, FloatArray]
"""One NumPy array of shape (batch,) by name."""
ARRAYS = ("transform", "frames", "activations", "components")


class GraphedStep:
    """One iteration of a batch on a GPU."""

    def __init__(
        self, step: ArrayStep, data: Any, options: TransformOptions, *, retries: bool, skip_failed: bool
    ) -> None:
        self.step, self.data, self.options = step, data, options
        self.retries, self.skip_failed = retries, skip_failed
        most = options.max_trials
        self.trials = sorted({min(count, most) for count in TRIALS}) if retries else [most]
        self.level = min(1, len(self.trials) - 1)
        self._options = [replace(options, synchronize=False, max_trials=count) for count in self.trials]
        self._idle, self._late, self._patience = 0, 0, PATIENCE
        self._graphs: dict[tuple[int, int], _CapturedStep] = {}
        self._failed: set[int] = set()

    def __call__(self, state: Any) -> tuple[Any, Values]:
        """Make an iteration."""
        if state.n_done % REORTHOGONALIZATION_PERIOD == 0:
            self._failed = set()
        most = len(self.trials) - 1
        if self._idle >= self._patience:
            self._go_to(max(0, self.level - 1))
        elif self._late >= LATE and self.level < most:
            # Fewer were too few: they are tried again later than last time.
            self._patience = 2 * PATIENCE
            self._go_to(self.level + 1)
        while True:
            new, measures = self.fixed_step(state)
            unfinished = self._unfinished(state, measures)
            if len(unfinished) <= FEW * state.batch or self.level == most:
                break
            self._go_to(self.level + 1)
        self._late, self._idle = (self._late + 1, 0) if len(unfinished) else (self._late, self._idle + 1)
        level = self.level
        while len(unfinished) and level < most:
            level = min(level + 2, most)
            part = state.part(_padded(unfinished, state.batch))
            again, found = self.fixed_step(part, level)
            new, measures = _merged(new, measures, again, found, unfinished)
            unfinished = unfinished[found["search_succeeded"][: len(unfinished)] == 0]
        if len(unfinished):
            again, found = _on_host(*self.step(state.part(unfinished), self.data, self.options))
            if self.skip_failed:
                failed = unfinished[found["search_succeeded"] == 0]
                self._failed |= {int(restart) for restart in state.restarts[failed]}
            new, measures = _merged(new, measures, again, found, unfinished)
        return new, measures

    def _go_to(self, level: int) -> None:
        self.level, self._idle, self._late = level, 0, 0

    def _unfinished(self, state: Any, measures: Values) -> IntArray:
        """Return the restarts whose line search has not ended and may still succeed."""
        if not self.retries:
            return np.empty(0, np.int64)
        found = np.flatnonzero(measures["search_succeeded"] == 0)
        if self.skip_failed and len(found) and self._failed:
            found = np.array([at for at in found if int(state.restarts[at]) not in self._failed], np.int64)
        return found

    def fixed_step(self, state: Any, level: int | None = None) -> tuple[Any, Values]:
        """Make an iteration with a fixed number of trials."""
        level = self.level if level is None else level
        options = self._options[level]
        held = state.activations if state.activations is not None else state.transform
        if not getattr(held, "is_cuda", False):
            return _on_host(*self.step(state, self.data, options))
        key = (state.batch, level)
        if key not in self._graphs:
            if level == self.level:
                # Batches shrink when restarts are pruned: graphs of larger ones are released.
                self._graphs = {at: graph for at, graph in self._graphs.items() if at[0] <= state.batch}
            self._graphs[key] = _CapturedStep(self.step, self.data, options, state)
        return self._graphs[key](state)


class _CapturedStep:
    """One iteration as a CUDA graph, with buffers that it reads from and writes to."""

    def __init__(self, step: ArrayStep, data: Any, options: TransformOptions, state: Any) -> None:
        import torch

        given = {name: getattr(state, name, None) for name in ARRAYS}
        self._buffers = {
            name: array.clone(memory_format=torch.contiguous_format)
            for name, array in given.items()
            if array is not None
        }
        self._state = replace(state, **self._buffers)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                step(self._state, data, options)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._new, measures = step(self._state, data, options)
            # One table: one synchronization.
            self._names = list(measures)
            self._table = torch.stack([measures[name] for name in self._names])

    def __call__(self, state: Any) -> tuple[Any, Values]:
        for name, buffer in self._buffers.items():
            buffer.copy_(getattr(state, name))
        self._graph.replay()
        # Copies: the next replay writes to the same buffers.
        new = {name: getattr(self._new, name).clone() for name in self._buffers}
        rows = self._table.cpu().numpy()
        measures = dict(zip(self._names, rows, strict=True))
        return replace(state, **new, n_done=state.n_done + 1), measures


def _on_host(state: Any, measures: Measures) -> tuple[Any, Values]:
    """Copy measures to NumPy."""
    return state, {name: to_float64(values) for name, values in measures.items()}


def _padded(rows: IntArray, batch: int) -> IntArray:
    """Return rows, the last one repeated up to one of a few sizes."""
    size = SMALLEST_PART
    while size < len(rows):
        size *= PART_GROWTH
    return rows[np.minimum(np.arange(min(size, batch)), len(rows) - 1)]


def _merged(state: Any, measures: Values, part: Any, found: Values, rows: IntArray) -> tuple[Any, Values]:
    """Replace some restarts of a batch, and their measures, by the first ones of another batch."""
    n = len(rows)
    changed = {}
    for name in ARRAYS:
        array = getattr(state, name, None)
        if array is not None:
            xp = array_namespace(array)
            changed[name] = xp.asarray(array, copy=True)
            changed[name][xp.asarray(rows, device=device_of(array))] = getattr(part, name)[:n, ...]
    values = {name: column.copy() for name, column in measures.items()}
    for name, column in values.items():
        column[rows] = found[name][:n]
    return replace(state, **changed), values
