"""Orthogonal joint diagonalization (Algorithm 2's first stage): rotations that decrease L."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from array_api_compat import array_namespace

from nonneg.transforms.likelihoods import likelihood, variances
from nonneg.transforms.objective import DiagonalityObjective
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.rotations.quasi_newton import rotation_step
from nonneg.transforms.state import TransformState
from nonneg.transforms.transform_learning import Measures


def advance_joint_diagonalization(
    state: TransformState, data: Any, options: TransformOptions
) -> tuple[TransformState, Measures]:
    """Make `n_rotation_updates` rotations that decrease L, with every run of a batch."""
    xp = array_namespace(state.frames)
    n = data.n_frames
    X, transform = state.frames, state.transform
    V, value = state.known.get("V"), state.known.get(("L", options.eps0))
    if V is None:
        V = variances(X, data)
    objective = DiagonalityObjective(data, options.eps0)
    gradient = xp.zeros_like(X[:, 0, 0])
    step, searched = gradient, xp.ones_like(gradient)
    for _ in range(options.n_rotation_updates):
        done = rotation_step(
            objective,
            (transform, X, V),
            value=value,
            search=options.search,
            retraction=options.retraction,
            max_trials=options.max_trials,
            reads=options.reads,
        )
        transform, X, V = done.point
        gradient = done.gradient_norm / (2.0 * n)
        step, searched = done.search.step, xp.astype(done.search.succeeded, X.dtype)
        value = done.search.value
    # The search ends with the sum of logarithms, without the constant.
    L = likelihood(V, options.eps0) if value is None else data.n_frames * data.frame_length + value
    new = replace(state, transform=transform, frames=X, n_done=state.n_done + 1)
    new.known["V"] = V
    if value is not None:
        new.known["L", options.eps0] = value
    return new, {"loss": L, "L": L, "gradient": gradient, "step": step, "searched": searched}
