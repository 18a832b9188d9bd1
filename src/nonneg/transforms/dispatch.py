"""Dispatch of an iteration: compiled kernels for small problems in NumPy, array code for all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray
from nonneg.kernels import transforms as kernels
from nonneg.transforms.options import DEFAULTS, TransformOptions
from nonneg.transforms.state import FactorState, TransformState, concatenated, part_of
from nonneg.transforms.steps import Measures, jd_step, nmf_step, tl_step

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
        if state.batch == 1:
            return whole_batch(state)

        def work(start: int, stop: int) -> list[tuple[Any, Measures]]:
            return [whole_batch(part_of(state, slice(i, i + 1))) for i in range(start, stop)]

        parts = [pair for some in parallel_for(work, state.batch, chunk_size=1) for pair in some]
        states, measures = [pair[0] for pair in parts], [pair[1] for pair in parts]
        columns = {name: np.concatenate([one[name] for one in measures]) for name in measures[0]}
        return concatenated(states), columns

    return one_by_one if is_numpy_array(held) else whole_batch


def compiled_step(method: str, data: Any, options: TransformOptions) -> Any:
    """Return the compiled kernels of a method as a step of the loop, where they support the problem."""
    held = data[:1, ...] if method == "nmf" else data.virtual
    published = method == "nmf" or options.line_search == DEFAULTS[method]["line_search"]
    if not (published and kernels.is_supported(held, None if method == "jd" else options.eps0)):
        return None
    return {"tl": _Learning, "jd": _Diagonalization, "nmf": _Factors}[method](data, options)


class _Learning:
    """The moments of the frames are kept for the next iteration, if it begins where this one ended."""

    def __init__(self, data: Any, options: TransformOptions) -> None:
        self.columns, self.options = kernels.by_column(data.virtual), options
        self._frames: FloatArray | None = None
        self._moments: tuple[FloatArray, FloatArray] | None = None

    def __call__(self, state: TransformState) -> tuple[TransformState, Measures]:
        options = self.options
        assert state.activations is not None
        assert state.components is not None
        done = kernels.tl_step(
            self.columns,
            options.eps0,
            state.transform,
            state.frames,
            state.activations,
            state.components,
            n_nmf_updates=options.n_nmf_updates,
            n_rotation_updates=options.n_rotation_updates,
            max_trials=options.max_trials,
            moments=self._moments if state.frames is self._frames else None,
        )
        self._frames, self._moments = done.frames, done.moments
        # Not `replace`, which takes as long as some updates of the factors.
        new = TransformState(done.transform, done.frames, done.activations, done.components, state.n_done + 1)
        measures = done.measures
        measures["loss"] = measures["C"]
        return new, measures


class _Diagonalization:
    """Rotations alone."""

    def __init__(self, data: Any, options: TransformOptions) -> None:
        self.columns, self.options = kernels.by_column(data.virtual), options

    def __call__(self, state: TransformState) -> tuple[TransformState, Measures]:
        done = kernels.jd_step(
            self.columns,
            self.options.eps0,
            state.transform,
            state.frames,
            n_rotation_updates=self.options.n_rotation_updates,
            max_trials=self.options.max_trials,
        )
        new = replace(state, transform=done.transform, frames=done.frames, n_done=state.n_done + 1)
        return new, done.measures | {"loss": done.measures["L"]}


class _Factors:
    """Updates of the factors with a fixed transform."""

    def __init__(self, variances: FloatArray, options: TransformOptions) -> None:
        self.variances, self.options = variances, options

    def __call__(self, state: FactorState) -> tuple[FactorState, Measures]:
        done = kernels.nmf_step(
            self.variances,
            self.options.eps0,
            state.activations,
            state.components,
            n_nmf_updates=self.options.n_nmf_updates,
        )
        new = FactorState(done.activations, done.components, state.n_done + 1)
        return new, done.measures | {"loss": done.measures["I"]}
