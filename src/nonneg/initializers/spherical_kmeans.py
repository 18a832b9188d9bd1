"""A start from clusters of the rows' directions (spherical k-means), found in passes over the data.

Nothing depends on the order or repetition of rows: the first partition is by the largest of k random
projections, taken beside the mean direction, and each pass then moves the centres.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.initializers.encoding import fit_rows

_FILL = 0.01  # of a centre's mean entry, in the place of its zeros
_OTHERS = 0.1  # of the projection on the centres of other clusters, to begin with
_STEPS = 3


def spherical_kmeans_init(
    data: DataMatrix, k: int, *, rng: Seed = None, max_passes: int = 20, tol: float = 1e-4
) -> tuple[SampleArray, Array]:
    """Return centres of clusters of directions as Ht, and the rows' projections on them as W."""
    # Dhillon & Modha (2001), Machine Learning 42, 143-175. Wild, Curry & Dougherty (2004), Pattern
    # Recognition 37(11), 2217-2232.
    centres = spherical_kmeans(data, k, rng=rng, max_passes=max_passes, tol=tol)
    floor = _FILL * centres.mean(axis=0)
    Ht = data.to_device(np.maximum(centres, floor))
    (W,), _ = data.map_reduce_rows(_memberships, right=Ht, gram=Ht.T @ Ht)
    return W, Ht


def spherical_kmeans(
    data: DataMatrix,
    k: int,
    *,
    rng: Seed = None,
    max_passes: int = 20,
    tol: float = 1e-4,
    first: Any = None,
) -> Any:
    """Return the centres of k clusters of the rows' directions."""
    rng = generator(rng)
    (inverse_norms,), (mean_row,) = data.map_reduce_rows(_inverse_norms)
    mean = to_float64(mean_row)
    # Without the part along the mean, which all rows share, the projections would nearly all be largest at
    # one place.
    centres = np.asarray(first) if first is not None else rng.standard_normal((data.shape[1], k))
    if first is None and mean.sum() > 0:
        centres -= (mean @ centres) / mean.sum()
    score = -np.inf
    for n_pass in range(max_passes):
        _, sums = data.map_reduce_rows(_assign, inverse_norms, n_out=0, centres=data.to_device(centres))
        moved, cosines, weights = (to_float64(part) for part in sums)
        centres = _moved_centres(moved, cosines, weights, rng)
        new = float(cosines.sum() / max(weights.sum(), 1.0))
        # The first value compares with projections, not with centres.
        if n_pass > 1 and new - score < tol and (weights > 0).all():
            break
        score = new
    return centres


def _moved_centres(moved: Any, cosines: Any, weights: Any, rng: np.random.Generator) -> Any:
    norms = np.linalg.norm(moved, axis=0)
    centres = moved / np.where(norms > 0, norms, 1.0)
    spread = weights - cosines
    for empty in np.flatnonzero(norms == 0):
        # The widest cluster is split in two, by a centre a little beside its own.
        widest = int(np.argmax(spread))
        around = np.abs(rng.standard_normal(centres.shape[0]))
        centre = centres[:, widest] * around
        if not centre.any():
            centre = around
        centres[:, empty] = centre / np.linalg.norm(centre)
        spread[widest] *= 0.5
    return centres


def _inverse_norms(block: LocalMatrix) -> tuple[tuple[Array], tuple[Array]]:
    inverse = block.inverse_row_norms()
    return (inverse,), (block.transposed_times(block.xp.ones_like(inverse))[:, 0],)


def _assign(
    block: LocalMatrix, inverse_norms: Array, *, centres: Array
) -> tuple[tuple[()], tuple[Array, Array, Array]]:
    xp = block.xp
    scores = block.times(centres)
    own = _own(xp, scores) * xp.astype(inverse_norms > 0, scores.dtype)
    sums = block.transposed_times(own * inverse_norms)
    weighted = block.weighted(own)
    cosines = xp.sum(weighted * scores * inverse_norms, axis=0)
    return (), (sums, cosines, xp.sum(weighted, axis=0))


def _own(xp: Any, scores: Array) -> Array:
    labels = xp.argmax(scores, axis=1)
    numbers = xp.arange(scores.shape[1], dtype=labels.dtype, device=scores.device)
    return xp.astype(labels[:, None] == numbers[None, :], scores.dtype)


def _memberships(block: LocalMatrix, *, right: Array, gram: Array) -> tuple[tuple[Array], tuple[()]]:
    xp = block.xp
    cross = block.times(right)
    own = _own(xp, cross)
    return (fit_rows(xp, gram, cross, _STEPS, first=cross * (own + _OTHERS)),), ()
