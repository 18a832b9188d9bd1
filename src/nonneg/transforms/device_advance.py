"""Iterations on a GPU without waiting for it: few trials of the search, recorded once and replayed.

A program that asks after every trial of a search whether all have ended waits for the device each time. Here
every run of a batch makes a fixed number of trials. If the search of some has not ended by then, the
iteration is made again with more; what is still open after the most is done in the way that reads. The
numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from nonneg._typing import Array
from nonneg.data.spectral import to_numpy
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import RENEWAL
from nonneg.transforms.transform_learning import Measures

# Numbers of trials of every run that are recorded.
TRIALS = (1, 2, 3, 5, 8)
# After so many iterations that more trials than needed may have been made in, fewer are tried again.
PATIENCE = 10
# Calls before the operations are recorded, so that libraries have set up what they need.
WARM_UP = 3

Step = Callable[[Any, Any, TransformOptions], tuple[Any, Measures]]
ARRAYS = ("transform", "frames", "activations", "components")


class DeviceAdvance:
    """Advances a batch on a device.

    Parameters
    ----------
    step : callable
        The array code of a method.
    data : FrameCovariances or array
        The data.
    options : TransformOptions
        How an iteration is made.
    searches : bool
        Whether the method searches along lines.
    stays : bool
        Whether a run whose search failed would fail again: nothing else moves it.
    """

    def __init__(
        self, step: Step, data: Any, options: TransformOptions, *, searches: bool, stays: bool
    ) -> None:
        self.step, self.data, self.options = step, data, options
        self.searches, self.stays = searches, stays
        self.trials = sorted({min(count, options.max_trials) for count in TRIALS}) if searches else [1]
        self.level = min(1, len(self.trials) - 1)
        self._idle = 0
        self._recorded: dict[tuple[int, int], _Recorded] = {}
        self._failed: set[int] = set()

    def __call__(self, state: Any) -> tuple[Any, Measures]:
        """Make an iteration.

        Parameters
        ----------
        state : TransformState or FactorState
            Where the batch stands.

        Returns
        -------
        state : TransformState or FactorState
            The next one.
        measures : mapping
            Arrays of shape (batch,).
        """
        if state.n_done % RENEWAL == 0:
            self._failed = set()
        if self._idle >= PATIENCE and self.level:
            self.level, self._idle = self.level - 1, 0
        while True:
            new, measures = self.quick_step(state)
            open_ends = self._open_ends(state, measures)
            if not len(open_ends) or self.level == len(self.trials) - 1:
                break
            self.level, self._idle = self.level + 1, 0
        self._idle += 1
        if not len(open_ends):
            return new, measures
        again, found = self.step(state.part(open_ends), self.data, self.options)
        if self.stays:
            failed = open_ends[to_numpy(found["searched"]) == 0]
            self._failed |= {int(lane) for lane in state.lanes[failed]}
        return _put(new, again, open_ends), {
            name: _put_rows(values, found[name], open_ends) for name, values in measures.items()
        }

    def _open_ends(self, state: Any, measures: Measures) -> Any:
        """Return the runs whose search has not ended and may still succeed."""
        if not self.searches:
            return np.empty(0, int)
        found = np.flatnonzero(to_numpy(measures["searched"]) == 0)
        if self.stays and len(found) and self._failed:
            found = np.array([at for at in found if int(state.lanes[at]) not in self._failed], int)
        return found

    def quick_step(self, state: Any) -> tuple[Any, Measures]:
        """Make an iteration with the present number of trials.

        Parameters
        ----------
        state : TransformState or FactorState
            Where the batch stands.

        Returns
        -------
        state : TransformState or FactorState
            The next one.
        measures : mapping
            `searched` is 0 for runs whose search has not ended.
        """
        options = replace(self.options, reads=False, max_trials=self.trials[self.level])
        held = state.activations if state.activations is not None else state.transform
        if not getattr(held, "is_cuda", False):
            return self.step(state, self.data, options)
        key = (state.batch, self.level)
        if key not in self._recorded:
            # Batches shrink when starts are given up: what was recorded for others is let go.
            kept = {other: what for other, what in self._recorded.items() if other[0] == state.batch}
            self._recorded = kept | {key: _Recorded(self.step, self.data, options, state)}
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
            self._new, self._measures = step(self._state, data, options)

    def __call__(self, state: Any) -> tuple[Any, Measures]:
        for name, place in self._places.items():
            place.copy_(getattr(state, name))
        self._graph.replay()
        # Copies: the next replay writes to the same places.
        new = {name: getattr(self._new, name).clone() for name in self._places}
        measures = {name: values.clone() for name, values in self._measures.items()}
        return replace(state, **new, n_done=state.n_done + 1), measures


def _put(state: Any, part: Any, rows: Any) -> Any:
    """Return a batch with some runs replaced."""
    names = [name for name in ARRAYS if getattr(state, name, None) is not None]
    changed = {name: _put_rows(getattr(state, name), getattr(part, name), rows) for name in names}
    return replace(state, **changed)


def _put_rows(whole: Array, part: Array, rows: Any) -> Array:
    xp = array_namespace(whole)
    changed = xp.asarray(whole, copy=True)
    changed[xp.asarray(rows, device=device_of(whole))] = part
    return changed
