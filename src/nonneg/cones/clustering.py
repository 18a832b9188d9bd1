"""Clusters of directions by greedy selection of centroids (Liu & Tan, Algorithm 1).

Each centroid is the row whose largest cosine to the previous centroids is smallest; each row then belongs to
the centroid of its largest cosine. Nothing is normalized: products are scaled by one over the row norms.

The search does not need the product of all rows with every centroid (`kernels.nearest_centroid`). The largest
cosine of a row to some centroids is a lower bound of that to all, so rows whose bound is above what another
row reached are skipped. The assignment is one product with all centroids, of the rows for which the triangle
inequality does not decide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import Array, IntArray, Namespace, SampleArray
from nonneg.cones.encoding import nearest_cones
from nonneg.data.candidates import Candidate, best_candidate, block_candidates
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.kernels.nearest_centroid import update_cosines

SEEDINGS = ("farthest", "plus-plus")
_EXCLUDED = 3.0  # instead of a cosine, for rows that cannot be selected: larger than any cosine


@dataclass(frozen=True)
class ConeClusters:
    """Clusters of the directions of the rows."""

    labels: SampleArray  # the cluster of each row; -1 for rows of zeros, which have no direction
    # The rows that are the centroids, in the order of selection; fewer than requested if the data have fewer
    # directions.
    centroid_indices: IntArray
    centroids: Array  # their directions, unit rows, in the namespace of the data


def cone_clusters(
    data: DataMatrix, k: int, *, first: int | None = None, rng: Seed = None, seeding: str = "farthest"
) -> ConeClusters:
    """Cluster the rows by their directions."""
    # O(k n_rows n_columns) at most, and one computation per centroid on chunked data.
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Algorithm 1.
    UnknownNameError.check("seeding", seeding, SEEDINGS)
    _check_first(first, data.shape[0])
    drawn = seeding == "plus-plus"
    source = generator(rng) if drawn or rng is not None else None
    by_mean = first is None and source is None
    (inverse_norms,), (mean,) = data.map_reduce_rows(_norms, with_mean=by_mean)
    margin = same_direction(data)
    shift = 1.0 - margin if drawn else 0.0

    def rates() -> SampleArray:
        # An exponential race: the row of the largest p / e wins with a probability in proportion to p.
        assert source is not None
        return data.to_sample_array(1.0 / source.exponential(size=(data.shape[0], 1)))

    marks = () if by_mean else (rates() if first is None else _marked(data, first),)
    shared: dict[str, Any] = {"mean": mean, "drawn": not by_mean}
    state, (candidates,) = data.map_reduce_rows(_begin, inverse_norms, *marks, n_out=3, **shared)
    picks: list[int] = []
    units: list[Array] = []
    for n_left in reversed(range(k)):
        index, score, row = best_candidate(candidates)
        # The score is the gain of `update_cosines`. Below the threshold all rows have the direction of a
        # centroid.
        if not score > (0.0 if drawn else margin - 1.0):
            break
        picks.append(index)
        units.append(_unit(data.xp, row))
        if n_left:
            marks = (rates(),) if drawn else ()
            shared = {"centroids": data.xp.stack(units), "shift": shift}
            state, (candidates,) = data.map_reduce_rows(_advance, *state, *marks, n_out=3, **shared)
    indices = np.asarray(picks, dtype=np.intp)
    if first is not None and not picks:
        raise InvalidParameterError(
            f"first={first} is a row without a direction (of zeros, or of weight zero), which cannot be a "
            "centroid. Choose another row."
        )
    if not picks:
        labels = data.map_rows(_none, inverse_norms)
        return ConeClusters(labels, indices, data.to_device(np.empty((0, data.shape[1]))))
    centroids = data.xp.stack(units)
    return ConeClusters(nearest_cones(data, centroids, inverse_norms), indices, centroids)


def same_direction(data: DataMatrix) -> float:
    """Return by how much the cosine of two equal directions may fall short of 1."""
    return float(8.0 * data.xp.finfo(data.dtype).eps * data.shape[1] ** 0.5)


def _check_first(first: Any, n_rows: int) -> None:
    if first is None:
        return
    if not isinstance(first, int | np.integer) or isinstance(first, bool) or not 0 <= first < n_rows:
        raise InvalidParameterError(
            f"first is the index of a row, an integer from 0 to {n_rows - 1}. Got {first!r}."
        )


def _marked(data: DataMatrix, row: int) -> SampleArray:
    chosen = np.zeros((data.shape[0], 1))
    chosen[row] = 1.0
    return data.to_sample_array(chosen)


def _unit(xp: Namespace, row: Array) -> Array:
    return row / xp.sqrt(xp.sum(row * row))


def _norms(block: LocalMatrix, *, with_mean: bool) -> tuple[tuple[Array], tuple[Any]]:
    inverse = block.inverse_row_norms()
    return (inverse,), (block.transposed_times(inverse) if with_mean else 0.0,)


def _begin(
    block: LocalMatrix, inverse_norms: Array, rates: Array | None = None, *, mean: Array, drawn: bool
) -> tuple[tuple[Array, ...], tuple[list[Candidate]]]:
    xp = block.xp
    eligible = inverse_norms > 0
    if block.weights is not None:
        eligible = xp.logical_and(eligible, block.weights[:, None] > 0)
    if drawn:
        assert rates is not None
        scores = _weighted(block, rates)
    else:
        length = xp.sqrt(xp.sum(mean * mean))
        scores = 2.0 - block.times(mean / xp.where(length > 0, length, xp.ones_like(length))) * inverse_norms
    nothing = xp.full_like(scores, -xp.inf)
    scores = xp.where(xp.logical_and(eligible, scores > 0), scores, nothing)
    out = xp.where(eligible, -xp.ones_like(scores), xp.full_like(scores, _EXCLUDED))
    many = xp.astype(xp.logical_not(eligible), xp.int64) * (2**62)
    candidates = block_candidates(block, scores[:, 0])
    return (inverse_norms, xp.astype(out, xp.float64), many), (candidates,)


def _weighted(block: LocalMatrix, rates: Array) -> Array:
    return rates if block.weights is None else rates * block.weights[:, None]


def _advance(
    block: LocalMatrix,
    inverse_norms: Array,
    nearest: Array,
    n_compared: Array,
    rates: Array | None = None,
    *,
    centroids: Array,
    shift: float,
) -> tuple[tuple[Array, ...], tuple[list[Candidate]]]:
    rates = None if rates is None else block.xp.astype(_weighted(block, rates), block.xp.float64)
    nearest, n_compared = update_cosines(
        block, inverse_norms, centroids, nearest, n_compared, rates=rates, shift=shift
    )
    gains = shift - nearest[:, 0]
    scores = gains if rates is None else rates[:, 0] * gains
    return (inverse_norms, nearest, n_compared), (block_candidates(block, scores),)


def _none(block: LocalMatrix, inverse_norms: Array) -> Array:
    return -block.xp.astype(block.xp.ones_like(inverse_norms), block.xp.int64)
