"""Initializations: random, DCT or given transforms and factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_device, to_float64
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, NegativeDataError, ShapeError, UnknownNameError
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.rotations.group import closest_orthogonal, orthogonality_error, random_orthogonal
from nonneg.transforms.state import TransformState, transformed_frames

# Tolerance of the orthogonality of a given transform: float32 and rounding to a few digits are accepted. The
# transform is replaced by the closest orthogonal matrix.
NEARLY_ORTHOGONAL = 1e-4


def initial_state(
    data: FrameCovariances, n_components: int | None, *, init: Any, n_init: int, rng: Seed
) -> TransformState:
    """Return the initial states of all restarts."""
    m, n, k = data.frame_length, data.n_frames, n_components
    transforms, components, activations = _checked_init(init, m, n, k)
    n_given = 0 if transforms is None else len(transforms)
    inits: list[tuple[FloatArray, Any, Any]] = []
    for i, source in enumerate(generator(rng).spawn(n_init)):
        # Everything is drawn, used or not, so that a restart does not depend on what is given.
        transform = random_orthogonal(m, source)
        factors = None if k is None else random_factors(n, m, k, source)
        place = i if n_given > 1 else 0
        if transforms is not None and place < n_given and (i < n_given or isinstance(init, str)):
            transform = transforms[place]
            if components is not None and activations is not None:
                factors = activations[place], components[place]
        inits.append((transform, *(factors or (None, None))))
    # One batch of each part, as the arrays of the data are.
    Phi, W, H = (
        None if parts[0] is None else to_device(np.stack(parts), data.virtual, data.virtual.dtype)
        for parts in zip(*inits, strict=True)
    )
    return TransformState(Phi, transformed_frames(data, Phi), W, H)


def random_factors(n: int, m: int, k: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw positive factors as the paper's code does."""
    components = np.abs(rng.standard_normal((k, m))) + 1.0
    activations = np.abs(rng.standard_normal((n, k))) + 1.0
    return activations, components / components.sum(axis=1, keepdims=True)


def dct_matrix(m: int) -> FloatArray:
    """Return the orthonormal DCT of type II."""
    index = np.arange(m)
    matrix: FloatArray = np.sqrt(2.0 / m) * np.cos(np.pi * (index + 0.5) * index[:, None] / m)
    matrix[0] /= np.sqrt(2.0)
    return matrix


def _checked_init(init: Any, m: int, n: int, k: int | None) -> tuple[Any, Any, Any]:
    """Return transforms, components and activations of the user, one of each per restart; None is random."""
    if init is None:
        return None, None, None
    if isinstance(init, str):
        UnknownNameError.check("init", init, ("dct", "random"))
        return dct_matrix(m)[None] if init == "dct" else None, None, None
    if isinstance(init, list) and all(np.ndim(row) == 1 for row in init):
        init = np.asarray(init)
    parts = tuple(init) if isinstance(init, tuple | list) else (init,)
    if len(parts) not in (1, 3):
        raise InvalidParameterError(
            "init must be None, 'dct', a transform, or (transform, components, activations); got "
            f"{len(parts)} parts."
        )
    transform = _checked_transform(parts[0], m)
    if len(parts) == 1 or k is None:
        return transform, None, None
    components = _batched(parts[1], (k, m), "the components of init")
    activations = _batched(parts[2], (n, k), "the activations of init")
    if not len(transform) == len(components) == len(activations):
        raise ShapeError(
            f"init has {len(transform)} transforms, {len(components)} components and {len(activations)} "
            "activations: expected one of each per restart."
        )
    for name, factor in (("components", components), ("activations", activations)):
        if float(factor.min()) < 0:
            raise NegativeDataError(f"The {name} of init have a negative entry: {float(factor.min()):.3g}.")
    sizes = components.sum(axis=2)
    if not (sizes > 0).all():
        raise InvalidParameterError("A component of init is all zeros: leave it out or give it other values.")
    # The product does not change.
    return transform, components / sizes[:, :, None], activations * sizes[:, None, :]


def _checked_transform(transform: Any, m: int) -> FloatArray:
    transform = _batched(transform, (m, m), "the transform of init")
    error = float(np.max(orthogonality_error(transform)))
    if not error <= NEARLY_ORTHOGONAL:
        raise InvalidParameterError(
            f"The transform of init is not orthogonal: its rows differ from orthonormal ones by "
            f"{error:.2g}. Pass the closest one, scipy.linalg.polar(transform)[0]."
        )
    return closest_orthogonal(transform)


def _batched(array: Any, shape: tuple[int, int], what: str) -> FloatArray:
    batch = np.array(to_float64(array), dtype=np.float64)
    if batch.ndim == 2:
        batch = batch[None]
    if batch.ndim != 3 or batch.shape[1:] != shape:
        raise ShapeError(f"Expected {what} to be of shape {shape}, got {tuple(batch.shape)}.")
    if not np.isfinite(batch).all():
        raise InvalidParameterError(f"{what.capitalize()} must contain finite numbers.")
    return batch
