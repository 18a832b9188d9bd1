"""TL-NMF (Algorithm 1): updates of the factors and rotations of the transform in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.orthogonal.quasi_newton import rotation_step
from nonneg.transforms.factor_updates import update_factors
from nonneg.transforms.objective import (
    DivergenceObjective,
    FitObjective,
    divergence,
    full_objective,
    likelihood,
    variances,
)
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.state import TransformState

Measures = Mapping[str, Array]
"""One array of shape (batch,) by name."""


def advance_transform_learning(
    state: TransformState, data: Any, options: TransformOptions
) -> tuple[TransformState, Measures]:
    """Make one outer iteration of TL-NMF with every run of a batch.

    Parameters
    ----------
    state : TransformState
        Where the runs stand; not changed.
    data : FrameCovariances or WorkingFrames
        The data.
    options : TransformOptions
        How the iteration is made.

    Returns
    -------
    state : TransformState
        After `n_nmf_updates` updates of the factors and then `n_rotation_updates` of the transform.
    measures : mapping
        `loss`, `C`, `L`, `I`, `gradient`, `step` and `searched`, arrays of shape (batch,).
    """
    xp = array_namespace(state.frames)
    n = data.n_frames
    X, transform = state.frames, state.transform
    V = variances(X, data)
    activations, components = update_factors(
        V, state.activations, state.components, options.eps0, options.n_nmf_updates, l1=options.l1
    )
    model = activations @ components + options.eps0
    kind = FitObjective if options.objective == "C" else DivergenceObjective
    objective = kind(data, options.eps0, 1.0 / model)
    gradient = xp.zeros_like(X[:, 0, 0])
    step, searched = gradient, xp.ones_like(gradient)
    for _ in range(options.n_rotation_updates):
        done = rotation_step(
            objective,
            (transform, X, V),
            search=options.search,
            retraction=options.retraction,
            max_trials=options.max_trials,
            reads=options.reads,
        )
        transform, X, V = done.point
        gradient = done.gradient_norm / (2.0 * n)
        step, searched = done.search.step, xp.astype(done.search.succeeded, X.dtype)
    measures = fit_measures(V, model, activations, options)
    new = replace(
        state,
        transform=transform,
        frames=X,
        activations=activations,
        components=components,
        n_done=state.n_done + 1,
    )
    return new, measures | {"gradient": gradient, "step": step, "searched": searched}


def fit_measures(V: Array, model: Array, activations: Array, options: TransformOptions) -> dict[str, Array]:
    """Return what is minimised and its parts.

    Parameters
    ----------
    V : array of shape (batch, n_frames, m)
        The variances.
    model : array of shape (batch, n_frames, m)
        W H + eps0.
    activations : array of shape (batch, n_frames, k)
        For the penalty.
    options : TransformOptions
        What is minimised.

    Returns
    -------
    dict
        `loss`, `C`, `L` and `I`.
    """
    xp = array_namespace(V)
    whole = full_objective(V, model, options.eps0)
    L, part = likelihood(V, options.eps0), divergence(V, model, options.eps0)
    loss = whole if options.objective == "C" else part + options.l1 * xp.sum(activations, axis=(1, 2))
    return {"loss": loss, "C": whole, "L": L, "I": part}
