"""One iteration of each method in array code: TL-NMF, joint diagonalization, NMF of a fixed transform.

A rotation step moves a matrix P with orthonormal columns, ``P -> R P``, along a retraction in the direction
of Newton's method with a diagonal model of the curvature, as far as a line search says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._typing import Array
from nonneg.kernels.majorization_equalization import update_factors
from nonneg.transforms.objective import (
    DiagonalityObjective,
    FitObjective,
    VarianceObjective,
    likelihood,
    objectives,
    variances,
)
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.rotations.group import skew_part
from nonneg.transforms.rotations.line_search import LINE_SEARCHES, Point, SearchResult
from nonneg.transforms.rotations.retractions import ExponentialRetraction, PolarRetraction
from nonneg.transforms.state import FactorState, TransformState

Measures = Mapping[str, Array]
"""One array of shape (batch,) by name."""


def tl_step(state: TransformState, data: Any, options: TransformOptions) -> tuple[TransformState, Measures]:
    """Make one iteration of TL-NMF (Algorithm 1): updates of the factors, then rotations that decrease C."""
    V = variances(state.frames, data)
    activations, components, inverse = update_factors(
        V, options.eps0, state.activations, state.components, options.n_nmf_updates
    )
    objective = FitObjective(data, options.eps0, inverse)
    point, _, rotation = _rotated(objective, (state.transform, state.frames, V), None, options)
    transform, X, V = point
    new = TransformState(transform, X, activations, components, state.n_done + 1)
    return new, _fit_measures(V, inverse, options.eps0) | rotation


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
    activations, components, inverse = update_factors(
        V, options.eps0, state.activations, state.components, options.n_nmf_updates
    )
    measures = _fit_measures(V, inverse, options.eps0)
    return FactorState(activations, components, state.n_done + 1), measures | {"loss": measures["I"]}


def _fit_measures(V: Array, inverse: Array, eps0: float) -> dict[str, Array]:
    C, L, part = objectives(V, inverse, eps0)
    return {"loss": C, "C": C, "L": L, "I": part}


def _rotated(
    objective: VarianceObjective, point: Point, value: Array | None, options: TransformOptions
) -> tuple[Point, Array | None, dict[str, Array]]:
    """Make quasi-Newton steps; return point, value there, and the measures of the last step."""
    xp = array_namespace(point[1])
    gradient = xp.zeros_like(point[1][:, 0, 0])
    step, succeeded = gradient, xp.ones_like(gradient)
    for _ in range(options.n_rotation_updates):
        norm, search = rotation_step(objective, point, value, options.line_search, options.max_trials)
        point, value = search.point, search.value
        gradient = norm / (2.0 * objective.data.n_frames)
        step, succeeded = search.step, xp.astype(search.succeeded, point[1].dtype)
    return point, value, {"gradient": gradient, "step": step, "search_succeeded": succeeded}


def rotation_step(
    objective: VarianceObjective, point: Point, value: Array | None, line_search: str, max_trials: int
) -> tuple[Array, SearchResult]:
    """Make one step; return the Frobenius norm of the skew gradient before it, and where it led."""
    xp = array_namespace(point[0])
    skew = skew_part(objective.gradient(point))
    direction = newton_direction(skew, objective.curvature(point))
    slope = xp.sum(skew * direction, axis=(1, 2))
    value = objective.value(point) if value is None else value
    line = _Line(objective, direction, point[0])
    search = LINE_SEARCHES[line_search](line, point, value, slope, max_trials=max_trials)
    return xp.sqrt(xp.sum(skew * skew, axis=(1, 2))), search


def newton_direction(skew: Array, curvature: Array) -> Array:
    """Return the Newton direction of a diagonal quadratic model among skew matrices."""
    xp = array_namespace(skew)
    if is_numpy_namespace(xp):
        return np.divide(skew, -curvature, out=np.zeros_like(skew), where=curvature > 0)
    # Divided by infinity where there is no curvature.
    return -skew / xp.where(curvature > 0, curvature, xp.full_like(curvature, math.inf))


class _Line:
    """An objective along its retraction: the polar one for L, the exponential one for C (as published)."""

    def __init__(self, objective: VarianceObjective, direction: Array, P: Array) -> None:
        polar = isinstance(objective, DiagonalityObjective)
        self.objective = objective
        self.retraction = PolarRetraction(direction, P) if polar else ExponentialRetraction(direction, P)

    def at(self, step: Array) -> Point:
        """Return the point at a step."""
        return self.objective.at(self.retraction.at(step))

    def value(self, point: Point) -> Array:
        """Return the values."""
        return self.objective.value(point)

    def slope(self, point: Point, step: Array) -> Array:
        """Return the derivatives by the step, which the search of the polar retraction does not ask for."""
        assert isinstance(self.retraction, ExponentialRetraction)
        return self.retraction.slope(self.objective, point, step)
