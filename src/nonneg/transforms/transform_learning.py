"""TL-NMF (Algorithm 1): updates of the factors and rotations of the transform in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels import frame_rows
from nonneg.kernels.transforms import triton as triton_transforms
from nonneg.transforms.factor_updates import update_factors
from nonneg.transforms.likelihoods import divergence, full_objective, likelihood, variances
from nonneg.transforms.objective import DivergenceObjective, FitObjective
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.rotations.quasi_newton import rotation_step
from nonneg.transforms.state import TransformState

Measures = Mapping[str, Array]
"""One array of shape (batch,) by name."""


def advance_transform_learning(
    state: TransformState, data: Any, options: TransformOptions
) -> tuple[TransformState, Measures]:
    """Make one outer iteration of TL-NMF with every run of a batch."""
    xp = array_namespace(state.frames)
    n = data.n_frames
    X, transform = state.frames, state.transform
    V = variances(X, data)
    activations, components, inverse = factors_and_inverse(V, state.activations, state.components, options)
    kind = FitObjective if options.objective == "C" else DivergenceObjective
    objective = kind(data, options.eps0, inverse)
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
    measures = fit_measures(V, inverse, activations, options)
    new = replace(
        state,
        transform=transform,
        frames=X,
        activations=activations,
        components=components,
        n_done=state.n_done + 1,
    )
    return new, measures | {"gradient": gradient, "step": step, "searched": searched}


def factors_and_inverse(
    V: Array, activations: Array, components: Array, options: TransformOptions
) -> tuple[Array, Array, Array]:
    """Update the factors and return the inverse of their model."""
    eps0, n_updates = options.eps0, options.n_nmf_updates
    few = components.shape[1] <= frame_rows.MOST_COMPONENTS and eps0 >= frame_rows.LEAST_EPS0
    if few and not options.l1 and frame_rows.serves(V):
        return frame_rows.equalized_factors(V, eps0, activations, components, n_updates)
    if not options.l1 and triton_transforms.serves(V, components.shape[1]):
        return triton_transforms.equalized_factors(V, eps0, activations, components, n_updates)
    activations, components = update_factors(V, activations, components, eps0, n_updates, l1=options.l1)
    return activations, components, 1.0 / (activations @ components + eps0)


def fit_measures(V: Array, inverse: Array, activations: Array, options: TransformOptions) -> dict[str, Array]:
    """Return what is minimised and its parts."""
    xp = array_namespace(V)
    if frame_rows.serves(V):
        whole, L, part = frame_rows.measured_fit(V, options.eps0, inverse)
    else:
        whole = full_objective(V, inverse, options.eps0)
        L, part = likelihood(V, options.eps0), divergence(V, inverse, options.eps0)
    loss = whole if options.objective == "C" else part + options.l1 * xp.sum(activations, axis=(1, 2))
    return {"loss": loss, "C": whole, "L": L, "I": part}
