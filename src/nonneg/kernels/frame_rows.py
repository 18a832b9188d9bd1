"""Sums and products over the rows that belong to a frame: its virtual realizations.

The rows of a batch have shape (batch, n_rows, m). With `offsets` and `counts` the rows of frame i are the
``counts[i]`` rows from ``offsets[i]`` on; without them row ``r * n_frames + i`` is realization r of frame i.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import ENTRY, team_size
from nonneg._typing import Array, IntArray


def sums_of_squares(
    X: Array, n_frames: int, offsets: IntArray | None = None, counts: IntArray | None = None
) -> Array:
    """Return the sums of squares over the rows of every frame.

    Parameters
    ----------
    X : array of shape (batch, n_rows, m)
        The rows; not changed.
    n_frames : int
        The number of frames.
    offsets, counts : array of int of shape (n_frames,), optional
        First row and number of rows of each frame.

    Returns
    -------
    array of shape (batch, n_frames, m)
        The sums.
    """
    if X.shape[1] == n_frames:
        return X * X
    compiled = core() if is_float_array(X) and X.flags.c_contiguous else None
    if compiled is None or offsets is None or counts is None:
        if offsets is not None:
            return np.add.reduceat(X * X, offsets, axis=1)
        xp = array_namespace(X)
        parts = xp.reshape(X, (X.shape[0], -1, n_frames, X.shape[2]))
        return xp.sum(parts * parts, axis=1)
    sums = np.empty((len(X), n_frames, X.shape[2]), dtype=X.dtype)
    first, number = (np.ascontiguousarray(array, dtype=np.int64) for array in (offsets, counts))
    compiled.sums_of_squares(X, first, number, sums, team_size(ENTRY * X.size))
    return sums


def weighted_rows(X: Array, weights: Array, counts: IntArray | None = None) -> Array:
    """Multiply the rows of every frame by its weights.

    Parameters
    ----------
    X : array of shape (batch, n_rows, m)
        The rows; not changed.
    weights : array of shape (batch, n_frames, m)
        One weight for every entry of a frame.
    counts : array of int of shape (n_frames,), optional
        Number of rows of each frame.

    Returns
    -------
    array of shape (batch, n_rows, m)
        The products.
    """
    if X.shape[1] == weights.shape[1]:
        return X * weights
    if counts is not None:
        return X * np.repeat(weights, counts, axis=1)
    xp = array_namespace(X)
    parts = xp.reshape(X, (X.shape[0], -1, weights.shape[1], X.shape[2]))
    return xp.reshape(parts * weights[:, None, :, :], X.shape)
