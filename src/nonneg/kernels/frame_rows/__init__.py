"""Sums and products over the rows that belong to a frame: its virtual realizations.

The rows of a batch have shape (batch, n_rows, m). With `offsets` and `counts` the rows of frame i are the
``counts[i]`` rows from ``offsets[i]`` on; without them row ``r * n_frames + i`` is realization r of frame i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import Array, IntArray
from nonneg.kernels.frame_rows import array_api


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
    if offsets is not None and (compiled := _compiled(X)) is not None:
        return compiled.sums_of_squares(X, offsets, counts)
    return array_api.sums_of_squares(X, n_frames, offsets)


def weighted_rows(
    X: Array, weights: Array, offsets: IntArray | None = None, counts: IntArray | None = None
) -> Array:
    """Multiply the rows of every frame by its weights.

    Parameters
    ----------
    X : array of shape (batch, n_rows, m)
        The rows; not changed.
    weights : array of shape (batch, n_frames, m)
        One weight for every entry of a frame.
    offsets, counts : array of int of shape (n_frames,), optional
        First row and number of rows of each frame.

    Returns
    -------
    array of shape (batch, n_rows, m)
        The products.
    """
    if X.shape[1] == weights.shape[1]:
        return X * weights
    if offsets is not None and (compiled := _compiled(X, weights)) is not None:
        return compiled.weighted_rows(X, weights, offsets, counts)
    return array_api.weighted_rows(X, weights, counts)


def _compiled(*arrays: Any) -> Any:
    """Return the compiled implementation where it supports the arrays, else None."""
    if not isinstance(arrays[0], np.ndarray):
        return None
    # Not at the top: numba takes a quarter of a second to load.
    from nonneg.kernels.frame_rows import numba as compiled

    return compiled if compiled.is_supported(*arrays) else None
