"""One iteration of each method in array code: TL-NMF, joint diagonalization, NMF of a fixed transform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels.majorization_equalization import update_factors
from nonneg.transforms.objective import (
    DiagonalityObjective,
    DivergenceObjective,
    FitObjective,
    VarianceObjective,
    likelihood,
    objectives,
    variances,
)
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.rotations.line_search import Point
from nonneg.transforms.rotations.quasi_newton import rotation_step
from nonneg.transforms.state import FactorState, TransformState

Measures = Mapping[str, Array]
"""One array of shape (batch,) by name."""


def tl_step(state: TransformState, data: Any, options: TransformOptions) -> tuple[TransformState, Measures]:
    """Make one iteration of TL-NMF (Algorithm 1): updates of the factors, then rotations that decrease C."""
    V = variances(state.frames, data)
    activations, components, inverse = _updated_factors(V, state, options)
    kind = FitObjective if options.objective == "C" else DivergenceObjective
    point, _, rotation = _rotated(
        kind(data, options.eps0, inverse), (state.transform, state.frames, V), None, options
    )
    transform, X, V = point
    measures = fit_measures(V, inverse, activations, options)
    new = replace(
        state,
        transform=transform,
        frames=X,
        activations=activations,
        components=components,
        n_done=state.n_done + 1,
    )
    return new, measures | rotation


def jd_step(state: TransformState, data: Any, options: TransformOptions) -> tuple[TransformState, Measures]:
    """Make one iteration of joint diagonalization (first stage of Algorithm 2): rotations that decrease L."""
    V, value = state.known.get("V"), state.known.get(("L", options.eps0))
    if V is None:
        V = variances(state.frames, data)
    objective = DiagonalityObjective(data, options.eps0)
    point, value, rotation = _rotated(objective, (state.transform, state.frames, V), value, options)
    transform, X, V = point
    # The search ends with the sum of logarithms, without the constant.
    L = likelihood(V, options.eps0) if value is None else data.n_frames * data.frame_length + value
    new = replace(state, transform=transform, frames=X, n_done=state.n_done + 1)
    new.known["V"] = V
    if value is not None:
        new.known["L", options.eps0] = value
    return new, {"loss": L, "L": L} | rotation


def nmf_step(state: FactorState, V: Array, options: TransformOptions) -> tuple[FactorState, Measures]:
    """Update the factors of the variances of a fixed transform (second stage of Algorithm 2)."""
    V = array_namespace(V).broadcast_to(V, (state.batch, *V.shape[1:]))
    activations, components, inverse = _updated_factors(V, state, options)
    measures = fit_measures(V, inverse, activations, options)
    loss = measures["I"] if options.objective == "C" else measures["loss"]
    new = replace(state, activations=activations, components=components, n_done=state.n_done + 1)
    return new, measures | {"loss": loss}


def fit_measures(V: Array, inverse: Array, activations: Array, options: TransformOptions) -> dict[str, Array]:
    """Return what is minimized and its parts."""
    C, L, part = objectives(V, inverse, options.eps0)
    loss = C
    if options.objective != "C":
        loss = part + options.l1 * array_namespace(V).sum(activations, axis=(1, 2))
    return {"loss": loss, "C": C, "L": L, "I": part}


def _updated_factors(V: Array, state: Any, options: TransformOptions) -> tuple[Array, Array, Array]:
    return update_factors(
        V, options.eps0, state.activations, state.components, options.n_nmf_updates, options.l1
    )


def _rotated(
    objective: VarianceObjective, point: Point, value: Array | None, options: TransformOptions
) -> tuple[Point, Array | None, dict[str, Array]]:
    """Make quasi-Newton steps; return point, value there, and the measures of the last step."""
    xp = array_namespace(point[1])
    gradient = xp.zeros_like(point[1][:, 0, 0])
    step, succeeded = gradient, xp.ones_like(gradient)
    for _ in range(options.n_rotation_updates):
        done = rotation_step(
            objective,
            point,
            value=value,
            line_search=options.line_search,
            retraction=options.retraction,
            max_trials=options.max_trials,
        )
        point, value = done.point, done.search.value
        gradient = done.gradient_norm / (2.0 * objective.data.n_frames)
        step, succeeded = done.search.step, xp.astype(done.search.succeeded, point[1].dtype)
    return point, value, {"gradient": gradient, "step": step, "search_succeeded": succeeded}
