"""Smoothed SPA: every vertex is the median of the samples that are extreme along one direction.

Nadisic, Gillis & Kervazo, "Smoothed separable nonnegative matrix factorization", arXiv:2110.05528 (SSPA). The
idea of averaging is that of ALLS, Bhattacharyya & Kannan (2020), SODA.

K vertices span K - 1 dimensions around their mean: the samples are first projected onto as many, in this
process and in float64, which removes the noise of all others; its size says how much is left within.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._ties import first_largest, rounded
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.data.spectral import machine_epsilon
from nonneg.iteration import History, StopReason
from nonneg.separable.preprocessing import gathered, principal_directions, projected, rows_of
from nonneg.separable.result import SelectionResult
from nonneg.separable.spa import spa

# Two samples of one vertex differ by noise of variance 2 sigma^2 per dimension: twice that in squares, a
# radius of 2 sigma sqrt(d), holds nearly all of them.
NOISE_RADIUS = 2.0
# A sample is isolated if no more than this number of others are near: a material of one or two pixels.
MIN_NEIGHBORS = 2
# With fewer dimensions outside the span, neighbors alone tell which samples are outliers.
MIN_DIMENSIONS = 5
# The number of extreme samples that are looked at in each direction, and of rounds of projecting again.
N_EXTREME, MAX_ROUNDS = 32, 20
PAIR_ENTRIES = 1 << 18  # of the distances that exist at a time (2 MB)


def smoothed_spa(data: DataMatrix, n_components: int, *, n_members: int | str = "auto") -> SelectionResult:
    """Average the samples with the largest products with the largest residual, vertex after vertex."""
    if n_components == 1:
        return replace(spa(data, 1), method="smoothed-spa")
    reduced = reduced_points(data, n_components)
    points = reduced.points
    # Fewer dimensions than asked for: as many vertices as these can have.
    k = min(n_components, points.shape[1] + 1)
    p = automatic_members(reduced, k) if isinstance(n_members, str) else min(n_members, len(points))
    started, history = time.perf_counter(), History()
    members, scores = extreme_members(_lifted(points), k, p)
    if not members:  # all samples are equal
        return replace(spa(data, 1), method="smoothed-spa")
    if len(members) > 1:
        lift = best_lift(_medians(points, members))
        members, scores = extreme_members(_lifted(points, *lift), k, p)
    for step, score in enumerate(scores):
        history.record(step + 1, time.perf_counter() - started, {"score": score})
    vertices = _medians(points, members)
    # The most extreme sample is more often a pure one than the sample nearest to the median. None stands for
    # two vertices.
    places: list[int] = []
    for rows in members:
        free = [int(row) for row in rows if int(row) not in places]
        places.append(free[0] if free else int(rows[0]))
    return SelectionResult(
        anchors=reduced.rows[places],
        method="smoothed-spa",
        history=history,
        scores=np.asarray(scores),
        n_iter=len(vertices),
        stop_reason=StopReason.FOUND if len(vertices) == n_components else StopReason.EXHAUSTED,
        components=vertices @ reduced.basis.T + reduced.origin,
        members=tuple(reduced.rows[rows] for rows in members),
        n_passes=len(vertices),
        details={"n_members": p, "noise": reduced.noise, "isolated": reduced.isolated},
    )


def extreme_members(points: FloatArray, k: int, p: int) -> tuple[list[IntArray], list[float]]:
    """Return the p samples of each vertex, the most extreme first, and their place along its direction."""
    basis = np.zeros((points.shape[1], 0))
    longest = float(np.einsum("ij,ij->i", points, points).max())
    members: list[IntArray] = []
    scores: list[float] = []
    for _ in range(k):
        residuals = points - (points @ basis) @ basis.T
        squares = np.einsum("ij,ij->i", residuals, residuals)
        best = first_largest(squares)
        # What is left of points in the span of the vertices is rounding.
        if not squares[best] > 1e-20 * longest:
            break
        along = points @ (residuals[best] / math.sqrt(squares[best]))
        rows = _largest_places(along, p)
        direction = _beyond(np.median(points[rows], axis=0), basis)
        if direction is None:
            # The samples of an earlier vertex again, one of which lies beyond their median.
            rows = rows[:1]
            direction = _beyond(points[rows[0]], basis)
        if direction is None:
            break
        basis = np.column_stack([basis, direction])
        members.append(rows)
        scores.append(float(np.abs(np.median(along[rows]))))
    return members, scores


def _beyond(vertex: FloatArray, basis: FloatArray) -> FloatArray | None:
    """Return the direction of a vertex that is orthogonal to a basis; None where it lies in its span."""
    direction = vertex
    for _ in range(2):
        direction = direction - basis @ (basis.T @ direction)
    length = float(np.linalg.norm(direction))
    return direction / length if length > 1e-12 * float(np.linalg.norm(vertex)) else None


def _largest_places(along: FloatArray, p: int) -> IntArray:
    # Of tied numbers the first.
    values = rounded(along)
    top = np.arange(len(values))
    if p < len(values):
        top = np.flatnonzero(values >= np.partition(values, len(values) - p)[len(values) - p])
    return top[np.lexsort((top, -values[top]))][:p]


def _medians(points: FloatArray, members: list[IntArray]) -> FloatArray:
    return np.stack([np.median(points[rows], axis=0) for rows in members])


def best_lift(vertices: FloatArray) -> tuple[FloatArray, float]:
    """Return the translation and the constant that condition some vertices best."""
    # Barbarino & Gillis (2024), arXiv:2411.16195. Around their mean, the K vertices have K - 1 singular
    # values that are not zero; the constant c adds sqrt(K) c. The smallest c that does not lower the smallest
    # one leaves the largest norm smallest.
    origin = vertices.mean(axis=0)
    values = np.linalg.svd(vertices - origin, compute_uv=False)
    return origin, float(values[len(vertices) - 2]) / math.sqrt(len(vertices))


def _lifted(points: FloatArray, origin: Any = 0.0, height: float | None = None) -> FloatArray:
    # Translated points with one more coordinate, a constant; by default as large as the points.
    if height is None:
        height = math.sqrt(float(np.mean(np.einsum("ij,ij->i", points, points))))
    return np.column_stack([points - origin, np.full(len(points), height)])


def automatic_members(reduced: ReducedPoints, k: int) -> int:
    """Return how many samples noise cannot tell from a vertex: the median over the vertices of SPA."""
    points = reduced.points
    if reduced.noise == 0.0:
        return 1
    picks = np.array([first_largest(squares) for squares in _residual_steps(_lifted(points), k)])
    near = float(np.median(neighbor_counts(points, points[picks], reduced.noise_radius)))
    # At most a quarter of an even share of the samples.
    return int(np.clip(near, 1, max(1, len(points) // (4 * k))))


@dataclass(frozen=True)
class ReducedPoints:
    """Samples in the span of their vertices, without those that are isolated."""

    points: FloatArray  # one row per sample that is left
    rows: IntArray  # which sample each of them is
    basis: FloatArray  # orthonormal directions, one per column
    origin: FloatArray  # what is subtracted before the projection
    noise: float  # standard deviation of the noise per dimension, from the dimensions left out
    isolated: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # samples set aside

    @property
    def noise_radius(self) -> float:
        """The distance within which noise alone sets samples apart."""
        return NOISE_RADIUS * self.noise * math.sqrt(max(1, self.points.shape[1]))

    @property
    def isolation_radius(self) -> float:
        """The distance within which a sample that is not isolated has others."""
        # In a regular simplex of d + 1 vertices that n samples fill evenly, log n of them lie within
        # (log n / n)^(1 / d) of an edge from a vertex, and an edge is sqrt(2 (d + 1) (d + 2) / d) times the
        # root mean square distance from the center. The median stands for that, which few samples do not
        # change. The radius is never inside the noise.
        n, d = self.points.shape
        distances = np.linalg.norm(self.points - np.median(self.points, axis=0), axis=1)
        edge = math.sqrt(2.0 * (d + 1) * (d + 2) / d) * float(np.median(distances))
        return max(self.noise_radius, edge * min(1.0, math.log(n) / n) ** (1.0 / d))


def reduced_points(data: DataMatrix, n_vertices: int) -> ReducedPoints:
    """Project the samples onto the span of their vertices, without those that are isolated."""
    reduced = _projection(data, n_vertices)
    if not reduced.points.shape[1]:
        return reduced
    rows = reduced.rows
    for _ in range(MAX_ROUNDS):
        # Those that successive projections could select.
        lifted = _lifted(reduced.points)
        n, steps = min(N_EXTREME, len(lifted)), _residual_steps(lifted, lifted.shape[1])
        extreme = np.unique(np.concatenate([np.argpartition(-squares, n - 1)[:n] for squares in steps]))
        counts = neighbor_counts(reduced.points, reduced.points[extreme], reduced.isolation_radius)
        far = extreme[counts <= MIN_NEIGHBORS]
        if not len(far) or len(rows) - len(far) <= n_vertices:
            break
        # Samples far from all others turn the directions: these are computed again without them.
        left = np.delete(rows, far)
        without = replace(_projection(rows_of(data, left), n_vertices), rows=left)
        if not without.points.shape[1]:  # the others are copies of one sample, such as zeros
            break
        rows, reduced = left, without
    isolated = np.setdiff1d(np.arange(data.shape[0]), rows)
    if not len(isolated):
        return reduced
    # A sample at a vertex that is far from all others lies in the span of the others, a corrupt one does not.
    samples = to_float64(data.take_rows(isolated)) - reduced.origin
    inside = samples @ reduced.basis
    n_left = samples.shape[1] - inside.shape[1]
    if n_left < MIN_DIMENSIONS:
        counts = neighbor_counts(reduced.points, inside, reduced.isolation_radius)
        back = isolated[counts >= MIN_NEIGHBORS]
    else:
        outside = np.linalg.norm(samples - inside @ reduced.basis.T, axis=1)
        # Normal noise of n dimensions exceeds sqrt(n) + 5 deviations once in millions of samples.
        rounding = 1e-6 * np.linalg.norm(samples, axis=1)
        back = isolated[outside <= reduced.noise * (math.sqrt(n_left) + 5.0) + rounding]
    if len(back):
        rows = np.union1d(rows, back)
        reduced = replace(_projection(rows_of(data, rows), n_vertices), rows=rows)
    return replace(reduced, isolated=np.setdiff1d(isolated, back))


def _projection(data: DataMatrix, n_vertices: int) -> ReducedPoints:
    n, m = data.shape
    directions, origin = principal_directions(data, max(1, min(n_vertices - 1, n, m)), centered=True)
    points = gathered(projected(data, directions, offset=origin))
    sizes = np.sqrt(np.einsum("ij,ij->j", points, points) / n)
    scale = math.sqrt(data.squared_norm() / n)
    # Directions of rounding errors: the samples have fewer dimensions than were asked for.
    real = np.flatnonzero(sizes > 64.0 * machine_epsilon(data) * scale)[: n_vertices - 1]
    points, directions = points[:, real], directions[:, real]
    outside = max(0.0, data.squared_norm() - n * float(origin @ origin) - float(np.sum(points**2)))
    n_left = max(1, n - len(real) - 1) * (m - len(real))
    # The difference has lost what is below the rounding of the squared norm.
    exact = outside <= 1e3 * machine_epsilon(data) * data.squared_norm()
    noise = 0.0 if exact or n_left <= 0 else math.sqrt(outside / n_left)
    return ReducedPoints(points, np.arange(n), directions, origin, noise)


def _residual_steps(points: FloatArray, n_steps: int) -> Iterator[FloatArray]:
    # The squared residuals of successive projections, step after step.
    residuals = points.copy()
    for _ in range(n_steps):
        squares = np.einsum("ij,ij->i", residuals, residuals)
        yield squares
        best = first_largest(squares)
        if not squares[best] > 0:
            return
        direction = residuals[best] / math.sqrt(squares[best])
        residuals -= np.outer(residuals @ direction, direction)


def neighbor_counts(points: FloatArray, centers: FloatArray, radius: float) -> IntArray:
    """Return the number of points within a radius of each center."""
    squares = np.einsum("ij,ij->i", points, points)
    own = np.einsum("ij,ij->i", centers, centers)
    # Differences of squares are as accurate as the largest of them.
    limit = radius**2 + 1e-13 * float(squares.max(initial=0.0))
    step = max(1, PAIR_ENTRIES // max(1, len(centers)))
    counts = np.zeros(len(centers), dtype=np.int64)
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        distances = squares[part, None] + own[None, :] - 2.0 * points[part] @ centers.T
        counts += (distances <= limit).sum(axis=0)
    return counts
