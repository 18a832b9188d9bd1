"""Frequent directions: a sketch of many rows by a few (Ghashami et al., 2016).

A sketch B of l rows stands for a stream of rows X such that, in any order and in any batches,

    0 <= X'X - B'B <= D I    with    D <= (||X||^2 - s^2) / l,

s being the largest singular value of X. Sketches of two streams make one of both. With u the leading right
singular vector of B, |u| is nonnegative and, for nonnegative X,

    ||X - X |u| |u|'||^2  <=  ||X||^2 - ||B u||^2  <=  (1 + 1 / l) (||X||^2 - s^2):

the error of the best single direction, but for one part in l.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray

# Rows added at a time. The Gram matrix of a piece costs about as many operations per entry as the piece has
# rows, and its eigenvectors are cheap up to this size.
PIECE = 128


def merged_sketch(sketch: FloatArray, rows: FloatArray) -> FloatArray:
    """Return a sketch of the rows of a sketch and of further rows."""
    # Ghashami, Liberty, Phillips & Woodruff (2016), SIAM J. Comput. 45(5), 1762-1792, Section 2.
    n_kept, n_features = sketch.shape
    stacked = np.concatenate([sketch[np.any(sketch != 0, axis=1)], rows])
    stacked = stacked[np.any(stacked != 0, axis=1)]
    out = np.zeros_like(sketch)
    if len(stacked) <= n_kept:
        out[: len(stacked)] = stacked
        return out
    if len(stacked) <= n_features:
        values, left = np.linalg.eigh(stacked @ stacked.T)
        values, left = values[::-1], left[:, ::-1]
        kept = np.maximum(values[:n_kept] - max(values[n_kept], 0.0), 0.0)
        # What is taken of a direction is a share of its length, so that no length is divided by zero.
        share = np.sqrt(kept / np.where(values[:n_kept] > 0, values[:n_kept], 1.0))
        return share[:, None] * (left[:, :n_kept].T @ stacked)
    values, right = np.linalg.eigh(stacked.T @ stacked)
    values, right = values[::-1], right[:, ::-1]
    lost = max(values[n_kept], 0.0) if n_features > n_kept else 0.0
    found = min(n_kept, n_features)
    out[:found] = np.sqrt(np.maximum(values[:found] - lost, 0.0))[:, None] * right[:, :found].T
    return out


def leading_direction(sketch: FloatArray) -> tuple[FloatArray, float]:
    """Return the absolute leading right singular vector of a sketch, and the squared singular value."""
    values, left = np.linalg.eigh(sketch @ sketch.T)
    direction: Any = np.abs(left[:, -1] @ sketch)
    length = float(np.linalg.norm(direction))
    if not length > 0:
        return np.zeros(sketch.shape[1], dtype=sketch.dtype), 0.0
    return direction / length, float(max(values[-1], 0.0))
