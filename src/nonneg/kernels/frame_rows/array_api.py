"""Sums and products over the rows of a frame for any array library."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array, IntArray


def sums_of_squares(X: Array, n_frames: int, offsets: IntArray | None) -> Array:
    """Return the sums of squares over the rows of every frame."""
    if offsets is not None:
        return np.add.reduceat(X * X, offsets, axis=1)
    xp = array_namespace(X)
    parts = xp.reshape(X, (X.shape[0], -1, n_frames, X.shape[2]))
    return xp.sum(parts * parts, axis=1)


def weighted_rows(X: Array, weights: Array, counts: IntArray | None) -> Array:
    """Multiply the rows of every frame by its weights."""
    if counts is not None:
        return X * np.repeat(weights, counts, axis=1)
    xp = array_namespace(X)
    parts = xp.reshape(X, (X.shape[0], -1, weights.shape[1], X.shape[2]))
    return xp.reshape(parts * weights[:, None, :, :], X.shape)
