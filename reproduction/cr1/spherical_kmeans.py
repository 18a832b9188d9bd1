"""Spherical k-means (spkm of the paper): clusters of the directions of the samples.

Dhillon & Modha (2001), Machine Learning 42, 143-175. Wild, Curry & Dougherty (2004), Pattern
Recognition 37(11).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array
from nonneg.data.matrix import DataMatrix, LocalMatrix


def spherical_kmeans(
    data: DataMatrix,
    k: int,
    *,
    rng: Seed = None,
    max_passes: int = 20,
    tol: float = 1e-4,
    first: Any = None,
) -> Any:
    """Return the centers of k clusters of the directions of the samples."""
    # Without `first`, the first partition is by the largest of k random projections.
    rng = generator(rng)
    (inverse_norms,), (mean_row,) = data.map_reduce_rows(_inverse_norms)
    mean = to_float64(mean_row)
    # With the component along the mean, which all samples share, nearly all projections would be largest in
    # the same place.
    centers = np.asarray(first) if first is not None else rng.standard_normal((data.shape[1], k))
    if first is None and mean.sum() > 0:
        centers -= (mean @ centers) / mean.sum()
    score = -np.inf
    for n_pass in range(max_passes):
        _, sums = data.map_reduce_rows(_assign, inverse_norms, n_out=0, centers=data.to_device(centers))
        moved, cosines, weights = (to_float64(part) for part in sums)
        centers = _updated_centers(moved, cosines, weights, rng)
        new = float(cosines.sum() / max(weights.sum(), 1.0))
        # The first value compares with projections, not with centers.
        if n_pass > 1 and new - score < tol and (weights > 0).all():
            break
        score = new
    return centers


def _updated_centers(moved: Any, cosines: Any, weights: Any, rng: np.random.Generator) -> Any:
    norms = np.linalg.norm(moved, axis=0)
    centers = moved / np.where(norms > 0, norms, 1.0)
    spread = weights - cosines
    for empty in np.flatnonzero(norms == 0):
        # Split the widest cluster in two, with a second center near its own.
        widest = int(np.argmax(spread))
        around = np.abs(rng.standard_normal(centers.shape[0]))
        center = centers[:, widest] * around
        if not center.any():
            center = around
        centers[:, empty] = center / np.linalg.norm(center)
        spread[widest] *= 0.5
    return centers


def _inverse_norms(block: LocalMatrix) -> tuple[tuple[Array], tuple[Array]]:
    inverse = block.inverse_row_norms()
    return (inverse,), (block.transposed_times(block.xp.ones_like(inverse))[:, 0],)


def _assign(
    block: LocalMatrix, inverse_norms: Array, *, centers: Array
) -> tuple[tuple[()], tuple[Array, Array, Array]]:
    xp = block.xp
    scores = block.times(centers)
    own = _own(xp, scores) * xp.astype(inverse_norms > 0, scores.dtype)
    sums = block.transposed_times(own * inverse_norms)
    weighted = block.weighted(own)
    cosines = xp.sum(weighted * scores * inverse_norms, axis=0)
    return (), (sums, cosines, xp.sum(weighted, axis=0))


def _own(xp: Any, scores: Array) -> Array:
    labels = xp.argmax(scores, axis=1)
    numbers = xp.arange(scores.shape[1], dtype=labels.dtype, device=scores.device)
    return xp.astype(labels[:, None] == numbers[None, :], scores.dtype)
