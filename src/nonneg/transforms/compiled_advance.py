"""Iterations of small problems by compiled kernels, as states and measures of the array code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.kernels.transforms import by_column, diagonalize_step, factor_step, learn_step, serves
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import RENEWAL, TransformState
from nonneg.transforms.transform_learning import Measures
from nonneg.transforms.two_stage import FactorState


def compiled_advance(method: str, data: Any, options: TransformOptions) -> Any:
    """Return a function that advances a batch by compiled kernels, where they serve."""
    held = data[:1, ...] if method == "factors" else data.virtual
    paper_way = {
        "tl": options.search == "wolfe" and options.retraction == "exponential",
        "jd": options.search == "halving" and options.retraction == "polar",
        "factors": True,
    }[method]
    plain = options.objective == "C" and options.l1 == 0
    if not (paper_way and plain and serves(held, None if method == "jd" else options.eps0)):
        return None
    if method == "factors":
        return _Factors(data, options)
    return _Learning(data, options) if method == "tl" else _Diagonalization(data, options)


class _Learning:
    """The moments of the frames are kept for the next iteration, if it begins where this one ended."""

    def __init__(self, data: Any, options: TransformOptions) -> None:
        self.columns, self.options = by_column(data.virtual), options
        self._frames: FloatArray | None = None
        self._moments: tuple[FloatArray, FloatArray] | None = None

    def __call__(self, state: TransformState) -> tuple[TransformState, Measures]:
        options = self.options
        assert state.activations is not None
        assert state.components is not None
        done = learn_step(
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
        new = TransformState(
            done.transform,
            done.frames,
            done.activations,
            done.components,
            state.lanes,
            state.n_done + 1,
            state.marks,
        )
        measures = done.measures
        measures["loss"] = measures["C"]
        return new, measures


class _Diagonalization:
    """Starts whose search failed are left alone: it would fail again, at the full price of all its trials."""

    def __init__(self, data: Any, options: TransformOptions) -> None:
        self.columns, self.options = by_column(data.virtual), options
        self._failed: dict[int, dict[str, float]] = {}

    def __call__(self, state: TransformState) -> tuple[TransformState, Measures]:
        # Rounding was taken off the transforms, after which a search may succeed.
        if state.n_done % RENEWAL == 0:
            self._failed = {}
        moving = np.array([lane not in self._failed for lane in state.lanes.tolist()])
        transform, frames = state.transform, state.frames
        found = {name: np.empty(state.batch) for name in ("L", "gradient", "step", "searched")}
        if moving.any():
            whole = bool(moving.all())
            done = diagonalize_step(
                self.columns,
                self.options.eps0,
                transform if whole else transform[moving],
                frames if whole else frames[moving],
                n_rotation_updates=self.options.n_rotation_updates,
                max_trials=self.options.max_trials,
            )
            for name, values in done.measures.items():
                found[name][moving] = values
            if whole:
                transform, frames = done.transform, done.frames
            else:
                transform, frames = transform.copy(), frames.copy()
                transform[moving], frames[moving] = done.transform, done.frames
        for at, lane in enumerate(state.lanes.tolist()):
            if not moving[at]:
                for name, value in self._failed[lane].items():
                    found[name][at] = value
            elif not found["searched"][at]:
                self._failed[lane] = {name: float(found[name][at]) for name in found}
        new = replace(state, transform=transform, frames=frames, n_done=state.n_done + 1)
        return new, found | {"loss": found["L"]}


class _Factors:
    def __init__(self, variances: FloatArray, options: TransformOptions) -> None:
        self.variances, self.options = variances, options

    def __call__(self, state: FactorState) -> tuple[FactorState, Measures]:
        done = factor_step(
            self.variances,
            self.options.eps0,
            state.activations,
            state.components,
            n_nmf_updates=self.options.n_nmf_updates,
        )
        new = replace(
            state, activations=done.activations, components=done.components, n_done=state.n_done + 1
        )
        return new, done.measures | {"loss": done.measures["I"]}
