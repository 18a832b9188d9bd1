"""C, L and I of variances and model, and sums and products over the rows of a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.kernels import frame_rows
from nonneg.kernels.transforms import triton as triton_transforms


def variances(X: Array, data: Any) -> Array:
    """Return the sums of squares over virtual realizations."""
    n_frames = data if isinstance(data, int) else data.n_frames
    if X.shape[1] == n_frames:
        return X * X
    starts = getattr(data, "starts", None)
    if starts is not None:
        if frame_rows.serves(X):
            return frame_rows.sums_of_squares(X, starts, data.counts)
        return np.add.reduceat(X * X, starts, axis=1)
    if triton_transforms.adds(X):
        return triton_transforms.sums_of_squares(X, n_frames)
    xp = array_namespace(X)
    parts = xp.reshape(X, (X.shape[0], -1, n_frames, X.shape[2]))
    return xp.sum(parts * parts, axis=1)


def weighted_rows(X: Array, weights: Array, factor: float, data: Any) -> Array:
    """Multiply the rows of every frame by its weights."""
    starts = getattr(data, "starts", None)
    if starts is not None and frame_rows.serves(X) and frame_rows.serves(weights):
        return frame_rows.weighted_rows(X, weights, factor, starts, data.counts)
    weights = factor * weights
    if X.shape[1] == data.n_frames:
        return X * weights
    if starts is not None:
        return X * np.repeat(weights, data.counts, axis=1)
    xp = array_namespace(X)
    parts = xp.reshape(X, (X.shape[0], -1, data.n_frames, X.shape[2]))
    return xp.reshape(parts * weights[:, None, :, :], X.shape)


def inner_products(A: Array, B: Array) -> Array:
    """Return the sums of products of two batches of matrices."""
    if frame_rows.serves(A) and frame_rows.serves(B):
        # Without an array of the products.
        return np.asarray([np.vdot(A, B)])
    return array_namespace(A).sum(A * B, axis=(1, 2))


def likelihood(V: Array, eps0: float) -> Array:
    """Return L, the criterion of joint diagonalization (13)."""
    return V.shape[1] * V.shape[2] + sum_of_logs(V, eps0)


def sum_of_logs(V: Array, eps0: float) -> Array:
    """Return the sum of log(V + eps0)."""
    if frame_rows.serves(V):
        return frame_rows.sum_of_logs(V, eps0)
    xp = array_namespace(V)
    return xp.sum(xp.log(V + eps0), axis=(1, 2))


def divergence(V: Array, inverse: Array, eps0: float) -> Array:
    """Return I, the Itakura-Saito divergence (14)."""
    xp = array_namespace(V)
    ratio = (V + eps0) * inverse
    return xp.sum(ratio - xp.log(ratio) - 1.0, axis=(1, 2))


def full_objective(V: Array, inverse: Array, eps0: float) -> Array:
    """Return C, from its own definition (4)."""
    xp = array_namespace(V)
    return xp.sum((V + eps0) * inverse - xp.log(inverse), axis=(1, 2))
