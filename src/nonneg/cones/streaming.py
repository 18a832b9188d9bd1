"""Cones of a stream: points arrive one by one, and only a centroid and a few rows per cone are kept.

The rule is: a new point becomes a centroid, and when there is one centroid too many the two nearest ones (by
angle) are merged. Three things follow, whatever the order of the points and however they are cut into
batches.

* If points lie in at most K cones such that any two points of a cone are nearer than any two points of
  different cones, as the geometric assumption (2) implies, no merge mixes cones: of K + 1 centroids two lie
  in one cone, so that the two nearest do. Once every cone has shown up, each has exactly one centroid.
* For any points, K + 1 of them were once at angles of at least d, the largest angle at which two were
  merged, so that no K clusters all have diameters below d.
* For any points, a point lies within (2 K - 1) D of its centroid, D being the smallest diameter that K
  clusters can have: it is linked to it by merges at angles of at most d <= D, and of a walk along them that
  enters a cluster of the best clustering twice, the part in between can be replaced by one step of at most D.

A point that is no farther from a centroid than the two nearest centroids are from one another would be merged
with it at once. Such points are added together, so only points that change a centroid cost a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64, to_numpy
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.bounds import lower, upper
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.cones.certificate import angle_text
from nonneg.cones.encoding import sums_by_cone
from nonneg.cones.geometry.farthest import ROUNDING
from nonneg.cones.geometry.separation import angles_between, cone_separation
from nonneg.cones.rank_one import ConeResult
from nonneg.data.local import local_matrix
from nonneg.data.matrix import DataMatrix, LocalMatrix

SKETCH_SIZE = 8
"""Rows of the sketch of a cone: with 8, the squared error of its direction is at most 9/8 of the best."""

# Points added to a sketch at a time. The Gram matrix of a piece costs about as many operations per entry as
# the piece has rows, and its eigenvectors are cheap up to this size.
PIECE = 128

# Rounding error of the squared error of a stream, as a share of the squared norm.
ERROR_ROUNDING = 1e-13

# Points whose cosine differs from 1 by at most this many machine epsilons have the same direction.
SAME_DIRECTION = 16


@dataclass
class ConeStream:
    """The state after the points so far; arrays have one row for each of at most K cones."""

    centroids: FloatArray  # unit vectors, one per cone seen so far; zeros for the others
    centroid_indices: IntArray  # which point of the stream each is
    radii: FloatArray  # no point put into a cone is at a larger angle to its centroid
    sketches: FloatArray  # sketches of the points put into each cone; one row each where they come from a fit
    squared_norms: FloatArray  # the sums of their squared entries, weighted
    counts: IntArray  # how many points were put into each
    n_found: int = 0  # how many cones there are so far
    # The largest angle at which two of K + 1 centroids were merged, usually one of them a new point; 0 before
    # the first merge.
    largest_merge_angle: float = 0.0
    n_seen: int = 0  # how many points there were, rows of zeros included

    @classmethod
    def empty(cls, n_cones: int, n_features: int) -> ConeStream:
        """Return the state before the first point."""
        return cls(
            np.zeros((n_cones, n_features)),
            np.full(n_cones, -1, dtype=np.intp),
            np.zeros(n_cones),
            np.zeros((n_cones, SKETCH_SIZE, n_features)),
            np.zeros(n_cones),
            np.zeros(n_cones, dtype=np.intp),
        )

    @property
    def n_cones(self) -> int:
        """The maximum number of cones."""
        return len(self.radii)

    def copy(self) -> ConeStream:
        """Return a deep copy with room for whole sketches."""
        arrays: dict[str, Any] = {
            name: value.copy() for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        room = SKETCH_SIZE - self.sketches.shape[1]
        arrays["sketches"] = np.pad(self.sketches, ((0, 0), (0, room), (0, 0)))
        return replace(self, **arrays)

    def directions(self) -> tuple[FloatArray, FloatArray]:
        """Return the direction of every cone and how much of its squared norm it holds at least."""
        pairs = [leading_direction(sketch) for sketch in self.sketches]
        return np.stack([row for row, _ in pairs]), np.array([square for _, square in pairs])


def update_stream(state: ConeStream, data: DataMatrix) -> ConeStream:
    """Return the state after further points, chunk by chunk and on the host."""
    for block in data.local_blocks():
        if block.container == "array":
            weights = None if block.weights is None else to_numpy(block.weights)
            block = local_matrix(to_numpy(block.array), weights=weights)  # type: ignore[attr-defined]
        state = _update(state, block)
    return state


def stream_after_fit(data: DataMatrix, result: ConeResult, centroids: Array, *, bounds: bool) -> ConeStream:
    """Return the state from which a stream continues after a fit, of which it keeps one row per cone."""
    k = len(result.centroid_indices)
    counts, squared_norms = (to_float64(sums) for sums in sums_by_cone(data, result.labels[:, None], k))
    rows, radii = to_float64(centroids), np.full(k, np.pi / 2)
    if bounds:
        # A cone about another axis that holds the same samples is a cone about the centroid too.
        apart = [angles_between(np.stack(pair))[0, 1] for pair in zip(rows, result.basis, strict=True)]
        radii = np.minimum(radii, np.asarray(apart) + result.size_angles)
    return ConeStream(
        rows,
        np.asarray(result.centroid_indices, dtype=np.intp),
        radii,
        (np.sqrt(result.squared_singular_values)[:, None] * to_float64(result.H))[:, None, :],
        squared_norms,
        counts.astype(np.intp),
        n_found=k,
        n_seen=data.shape[0],
    )


def _update(before: ConeStream, block: LocalMatrix) -> ConeStream:
    """Return the state after a block of points."""
    # Costs one product with the centroids, one with each point that becomes a centroid, and the sketches.
    state = before.copy()
    lengths = np.sqrt(np.asarray(block.squared_row_norms(), dtype=np.float64))
    live = lengths > 0 if block.weights is None else (lengths > 0) & (np.asarray(block.weights) > 0)
    owners = np.full(block.shape[0], -1, dtype=np.intp)
    # The points that may still become centroids, as a container of their own, and their cosines.
    rows = np.flatnonzero(live)
    pool, lengths = block.select(rows), lengths[rows]
    cosines = np.full((rows.size, state.n_cones), -1.0)
    cosines[:, : state.n_found] = _cosines(pool, state.centroids[: state.n_found], lengths)
    while rows.size:
        nearest = cosines.max(axis=1)
        near = nearest >= _merging_cosine(state, block)
        owners[rows[near]] = cosines[near].argmax(axis=1)
        angles = np.arccos(np.clip(nearest[near], -1.0, 1.0))
        np.maximum.at(state.radii, owners[rows[near]], angles)
        if near.any():
            if state.n_found == state.n_cones:
                _record_spread(state, _row(pool, np.flatnonzero(near)[np.argmax(angles)]))
            far = np.flatnonzero(~near)
            pool, rows, lengths, cosines = pool.select(far), rows[far], lengths[far], cosines[far]
            nearest = nearest[far]
        if not rows.size:
            break
        farthest = int(np.argmin(nearest))
        point = _row(pool, farthest)
        if state.n_found == state.n_cones:
            _record_spread(state, point)
        place = state.n_found if state.n_found < state.n_cones else _merge_nearest(state, owners)
        state.centroids[place] = point
        state.centroid_indices[place] = before.n_seen + rows[farthest]
        state.n_found = max(state.n_found, place + 1)
        cosines[:, place] = _cosines(pool, state.centroids[place][None, :], lengths)[:, 0]
        # Whatever the rounding, a centroid is its own nearest and leaves the pool next time.
        cosines[farthest, place] = 1.0
    _update_sketches(state, block, owners)
    state.n_seen += block.shape[0]
    return state


def _cosines(block: LocalMatrix, centroids: FloatArray, lengths: FloatArray) -> FloatArray:
    products: FloatArray = np.asarray(block.times(block.to_device(centroids.T)), dtype=np.float64)
    return products / lengths[:, None]


def _row(block: LocalMatrix, row: Any) -> FloatArray:
    """Return the direction of a row of a block."""
    point: FloatArray = np.asarray(block.take_rows([int(row)]), dtype=np.float64)[0]
    return point / np.linalg.norm(point)


def _record_spread(state: ConeStream, point: FloatArray) -> None:
    """Record, in place, the smallest angle among all centroids and a further point."""
    # No K clusters have smaller diameters, because two of these K + 1 points lie in one of them. The cosines
    # of a block do not do for that: small angles are rounding in them, above all in float32.
    spread = float(_angles_to(state.centroids, point).min())
    if state.n_cones > 1:
        _, first, second = _nearest_pair(state)
        spread = min(spread, float(angles_between(state.centroids[[first, second]])[0, 1]))
    state.largest_merge_angle = max(state.largest_merge_angle, spread)


def _angles_to(units: FloatArray, axis: FloatArray) -> FloatArray:
    """Return the angles of unit rows to a unit vector, small ones with all their digits."""
    chords = np.linalg.norm(units - axis, axis=1)
    angles: FloatArray = 2.0 * np.arcsin(np.minimum(chords / 2.0, 1.0))
    return angles


def _merging_cosine(state: ConeStream, block: LocalMatrix) -> float:
    """Return the cosine above which a point would be merged with its centroid at once."""
    same = 1.0 - SAME_DIRECTION * float(block.xp.finfo(block.dtype).eps)
    return same if state.n_found < state.n_cones else min(_nearest_pair(state)[0], same)


def _nearest_pair(state: ConeStream) -> tuple[float, int, int]:
    if state.n_cones == 1:
        return -1.0, 0, 0
    cosines = state.centroids @ state.centroids.T
    np.fill_diagonal(cosines, -1.0)
    first, second = sorted(int(at) for at in np.unravel_index(int(np.argmax(cosines)), cosines.shape))
    return float(cosines[first, second]), first, second


def _merge_nearest(state: ConeStream, owners: IntArray) -> int:
    """Merge the two nearest centroids, in place, and return the index that is free now."""
    _, first, second = _nearest_pair(state)
    angle = float(angles_between(state.centroids[[first, second]])[0, 1])
    reach = [
        max(state.radii[here], angle + state.radii[there])
        for here, there in ((first, second), (second, first))
    ]
    # The centroid with the smaller radius of the merged cone stays; of equal ones the earlier one.
    older = state.centroid_indices[first] <= state.centroid_indices[second]
    keep_first = reach[0] < reach[1] or (reach[0] == reach[1] and older)
    stays, goes = (first, second) if keep_first else (second, first)
    state.sketches[stays] = merged_sketch(state.sketches[stays], state.sketches[goes])
    state.squared_norms[stays] += state.squared_norms[goes]
    state.counts[stays] += state.counts[goes]
    # Nonnegative points are never farther apart than a right angle.
    state.radii[stays], state.radii[goes] = min(*reach, np.pi / 2), 0.0
    state.sketches[goes] = 0.0
    state.squared_norms[goes], state.counts[goes] = 0.0, 0
    owners[owners == goes] = stays
    return goes


def _update_sketches(state: ConeStream, block: LocalMatrix, owners: IntArray) -> None:
    """Add points, in place, to the sketches of the cones they were put into."""
    for cone in range(state.n_found):
        rows = np.flatnonzero(owners == cone)
        state.counts[cone] += rows.size
        for start in range(0, rows.size, PIECE):
            piece = rows[start : start + PIECE]
            points = np.asarray(block.take_rows(piece), dtype=np.float64)
            # Once more, in float64: the cosines by which the points were put here fall short of the angles.
            units = points / np.linalg.norm(points, axis=1, keepdims=True)
            widest = float(_angles_to(units, state.centroids[cone]).max())
            if widest > state.radii[cone] + ROUNDING:
                state.radii[cone] = widest
            if block.weights is not None:
                points = points * np.sqrt(np.asarray(block.weights, dtype=np.float64)[piece])[:, None]
            state.squared_norms[cone] += float(np.sum(points * points))
            state.sketches[cone] = merged_sketch(state.sketches[cone], points)


def merged_sketch(sketch: FloatArray, rows: FloatArray) -> FloatArray:
    """Return a sketch of the rows of a sketch and of further rows, by frequent directions."""
    # Ghashami, Liberty, Phillips & Woodruff (2016), SIAM J. Comput. 45(5), 1762-1792, Section 2. A sketch B
    # of l rows stands for rows X, in any order and batches: 0 <= X'X - B'B <= D I with
    # D <= (||X||^2 - s^2) / l, s being the largest singular value of X.
    stacked = np.concatenate([sketch, rows])
    stacked = stacked[np.any(stacked != 0, axis=1)]
    n_kept = len(sketch)
    if len(stacked) <= n_kept:
        return np.concatenate([stacked, np.zeros((n_kept - len(stacked), sketch.shape[1]))])
    values, left = np.linalg.eigh(stacked @ stacked.T)
    values, left = values[::-1], left[:, : -n_kept - 1 : -1]
    shrunk = np.maximum(values[:n_kept] - max(values[n_kept], 0.0), 0.0)
    # What is taken of a direction is a share of its length, so that no length is divided by zero.
    share = np.sqrt(shrunk / np.where(values[:n_kept] > 0, values[:n_kept], 1.0))
    return share[:, None] * (left.T @ stacked)


def leading_direction(sketch: FloatArray) -> tuple[FloatArray, float]:
    """Return the absolute leading right singular vector of a sketch, and the squared singular value."""
    # For nonnegative X, ||X - X |u| |u|'||^2 <= ||X||^2 - ||B u||^2 <= (1 + 1 / l) (||X||^2 - s^2).
    values, left = np.linalg.eigh(sketch @ sketch.T)
    direction: FloatArray = np.abs(left[:, -1] @ sketch)
    length = float(np.linalg.norm(direction))
    if not length > 0:
        return np.zeros(sketch.shape[1], dtype=sketch.dtype), 0.0
    return direction / length, float(max(values[-1], 0.0))


def stream_statements(stream: ConeStream, explained: FloatArray) -> list[Statement]:
    """Return what is known of the clusters, and of directions that explain so much of the squared norms."""
    seen = slice(0, stream.n_found)
    radii = stream.radii[seen] + ROUNDING
    return [
        _streamed_error(stream.squared_norms, explained),
        _streamed_radius(radii, stream.largest_merge_angle, stream.n_cones),
        _streamed_separation(stream.centroids[seen], radii),
    ]


def _streamed_error(norms: FloatArray, explained: FloatArray) -> Statement:
    # A difference of two sums: an error below the root of their rounding is not seen in it.
    total = float(norms.sum())
    residual = max(total - float(explained.sum()), 0.0)
    error = math.sqrt(residual / total + ERROR_ROUNDING) if total > 0 else 0.0
    sentence = (
        f"The relative error of the samples seen, each on the direction of the cone it was assigned to, is "
        f"at most {upper(error)}."
    )
    quantities = {"squared_norm": total, "explained": float(explained.sum())}
    return Statement("streamed-error", sentence, error, None, Verdict.HOLDS, quantities)


def _streamed_radius(radii: FloatArray, merge_angle: float, n_cones: int) -> Statement:
    largest = float(radii.max(initial=0.0))
    sentence = (
        f"Every sample seen lies within {angle_text(largest)} of the centroid of the cone it was assigned to"
    )
    if merge_angle > 0:
        sentence += (
            f"; no {n_cones} clusters of these samples all have a diameter below "
            f"{angle_text(merge_angle, lower)}, so no {n_cones} cones all have size angles below half of "
            "that."
        )
    else:
        sentence += "."
    quantities = {"largest_merge_angle": merge_angle, "cones_seen": len(radii), "cones": n_cones}
    return Statement("streamed-radius", sentence, largest, None, Verdict.HOLDS, quantities)


def _streamed_separation(centroids: FloatArray, radii: FloatArray) -> Statement:
    gaps = cone_separation(centroids, radii)
    quantities = {"widest_within": gaps.widest_within, "narrowest_gap": gaps.narrowest_gap}
    if len(radii) < 2:
        sentence = "There is at most one cone, so there is nothing to separate it from."
        return Statement("streamed-separation", sentence, None, None, Verdict.HOLDS, quantities)
    if gaps.clusters_are_exact:
        sentence = (
            f"Samples of one cone are within {angle_text(gaps.widest_within)} of one another, and those "
            f"of different cones at least {angle_text(gaps.narrowest_gap, lower)} apart: any order of the "
            "stream gives these clusters, and so does greedy clustering from any first sample."
        )
        verdict = Verdict.HOLDS
    else:
        sentence = (
            "The radii that were kept do not show that samples of one cone are nearer to one another than to "
            "those of other cones: another order of the stream may give other clusters."
        )
        verdict = Verdict.NOT_VERIFIABLE
    return Statement(
        "streamed-separation", sentence, gaps.narrowest_gap, gaps.widest_within, verdict, quantities
    )
