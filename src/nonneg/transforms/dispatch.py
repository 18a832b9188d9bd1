"""Dispatch of an iteration: compiled kernels for small problems in NumPy, array code for all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray
from nonneg.kernels import transforms as kernels
from nonneg.kernels.majorization_equalization import is_supported
from nonneg.transforms.options import DEFAULTS, TransformOptions
from nonneg.transforms.state import TransformState, concatenated, part_of
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
