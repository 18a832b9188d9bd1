"""Samples in as few dimensions as their vertices span, the noise that is left, and isolated samples.

K vertices span K - 1 dimensions around their mean (K around the origin): the projection removes the noise of
all others, whose size says how much is left within. The smoothed methods work on these points, in this
process and in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._ties import first_largest
from nonneg._typing import FloatArray, IntArray
from nonneg.data import DataMatrix
from nonneg.data.gram_operator import machine_epsilon
from nonneg.separable.preprocessing import gathered, rows_of
from nonneg.separable.reduction import principal_directions, projected

# Two samples of one vertex differ by noise of variance 2 sigma^2 per dimension; a ball of this radius around
# one of them, in units of sigma sqrt(d), holds most of the others. Of 1, 1.5, 2 and 3 the one with the
# smallest errors on 19 kinds of planted data (draws 1000 to 1007 of the study, which do not report).
NOISE_RADIUS = 2.0
# A sample is isolated if fewer than this number of others are near: a material of one or two pixels.
MIN_NEIGHBORS = 2
# With fewer dimensions outside the span, neighbors alone tell which samples are outliers.
MIN_DIMENSIONS = 5
# The number of extreme samples that are looked at in each direction, and of rounds of projecting again.
N_EXTREME, MAX_ROUNDS = 32, 20
_PAIR_ENTRIES = 1 << 18  # of the distances that exist at a time (2 MB)


@dataclass(frozen=True)
class ReducedPoints:
    """Samples in the span of their vertices."""

    points: FloatArray  # one row per sample that is kept
    rows: IntArray  # which sample each of them is
    basis: FloatArray  # orthonormal directions, one per column
    origin: FloatArray  # what is subtracted before the projection
    noise: float  # standard deviation of the noise per dimension, from the dimensions left out
    isolated: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # samples set aside

    @property
    def noise_radius(self) -> float:
        """The distance within which noise alone sets samples apart."""
        return NOISE_RADIUS * self.noise * math.sqrt(max(1, self.points.shape[1]))

    def in_features(self, vertices: FloatArray) -> FloatArray:
        """Return points in the features of the data."""
        return vertices @ self.basis.T + self.origin


def reduced_points(
    data: DataMatrix, n_vertices: int, *, affine: bool = True, min_neighbors: int = MIN_NEIGHBORS
) -> ReducedPoints:
    """Project the samples onto the span of their vertices, without those that are isolated."""
    found = _projection(data, n_vertices, affine)
    if not found.points.shape[1] or not min_neighbors:
        return found
    rows = found.rows
    for _ in range(MAX_ROUNDS):
        radius = isolation_radius(found)
        extreme = _extremes(found.points, affine)
        far = extreme[neighbor_counts(found.points, found.points[extreme], radius) <= min_neighbors]
        if not len(far) or len(rows) - len(far) <= n_vertices:
            break
        # Samples far from all others turn the directions: these are computed again without them.
        rows = np.delete(rows, far)
        found = replace(_projection(rows_of(data, rows), n_vertices, affine), rows=rows)
    kept = np.zeros(data.shape[0], dtype=bool)
    kept[rows] = True
    isolated = np.flatnonzero(~kept)
    if not len(isolated):
        return found
    # A sample at a vertex that is far from all others lies in the span of the others, a corrupt one does not.
    back = isolated[_belong(data, isolated, found, min_neighbors)]
    if len(back):
        rows = np.union1d(rows, back)
        found = replace(_projection(rows_of(data, rows), n_vertices, affine), rows=rows)
    return replace(found, isolated=np.setdiff1d(isolated, back))


def _belong(data: DataMatrix, rows: IntArray, found: ReducedPoints, min_neighbors: int) -> Any:
    """Tell which samples are no outliers in the directions found without them."""
    samples = to_float64(data.take_rows(rows)) - found.origin
    inside = samples @ found.basis
    n_left = samples.shape[1] - inside.shape[1]
    if n_left < MIN_DIMENSIONS:
        return neighbor_counts(found.points, inside, isolation_radius(found)) >= min_neighbors
    outside = np.linalg.norm(samples - inside @ found.basis.T, axis=1)
    # Normal noise of n dimensions exceeds sqrt(n) + 5 deviations once in millions of samples.
    rounding = 1e-6 * np.linalg.norm(samples, axis=1)
    return outside <= found.noise * (math.sqrt(n_left) + 5.0) + rounding


def _projection(data: DataMatrix, n_vertices: int, affine: bool) -> ReducedPoints:
    n, m = data.shape
    wanted = n_vertices - 1 if affine else n_vertices
    directions, mean = principal_directions(data, max(1, min(wanted, n, m)), centered=affine)
    origin = np.zeros(m) if mean is None else mean
    points = gathered(projected(data, directions, offset=mean))
    sizes = np.sqrt(np.einsum("ij,ij->j", points, points) / n)
    scale = math.sqrt(data.squared_norm() / n)
    # Directions of rounding errors: the samples have fewer dimensions than were asked for.
    kept = np.flatnonzero(sizes > 64.0 * machine_epsilon(data) * scale)[:wanted]
    points, directions = points[:, kept], directions[:, kept]
    left = max(0.0, data.squared_norm() - n * float(origin @ origin) - float(np.sum(points**2)))
    n_left = max(1, n - len(kept) - 1) * (m - len(kept))
    # The difference has lost what is below the rounding of the squared norm.
    exact = left <= 1e3 * machine_epsilon(data) * data.squared_norm()
    noise = 0.0 if exact or n_left <= 0 else math.sqrt(left / n_left)
    return ReducedPoints(points, np.arange(n), directions, origin, noise)


def lifted(points: FloatArray, origin: Any, height: float) -> FloatArray:
    """Return translated points with one more coordinate, a constant."""
    return np.column_stack([points - origin, np.full(len(points), height)])


def spread(points: FloatArray) -> float:
    """Return the root mean square of the norms, the height that makes points and constant alike in size."""
    return math.sqrt(float(np.mean(np.einsum("ij,ij->i", points, points))))


def residual_steps(points: FloatArray, n_steps: int) -> Iterator[FloatArray]:
    """Yield the squared residuals of successive projections, step after step."""
    left = points.copy()
    for _ in range(n_steps):
        squares = np.einsum("ij,ij->i", left, left)
        yield squares
        best = first_largest(squares)
        if not squares[best] > 0:
            return
        direction = left[best] / math.sqrt(squares[best])
        left -= np.outer(left @ direction, direction)


def _extremes(points: FloatArray, affine: bool) -> IntArray:
    # Those that successive projections could select.
    steps = lifted(points, 0.0, spread(points)) if affine else points
    n = min(N_EXTREME, len(points))
    found = [np.argpartition(-squares, n - 1)[:n] for squares in residual_steps(steps, steps.shape[1])]
    return np.unique(np.concatenate(found))


def isolation_radius(found: ReducedPoints) -> float:
    """Return the distance within which a sample that is not isolated has others."""
    # In a regular simplex of d + 1 vertices that n samples fill evenly, log n of them lie within
    # (log n / n)^(1 / d) of an edge from a vertex, and an edge is sqrt(2 (d + 1) (d + 2) / d) times the root
    # mean square distance from the center. The median stands for that, which few samples do not change. The
    # radius is a quarter longer, and never inside the noise.
    n, d = found.points.shape
    gaps = found.points - np.median(found.points, axis=0)
    edge = math.sqrt(2.0 * (d + 1) * (d + 2) / d) * float(np.median(np.linalg.norm(gaps, axis=1)))
    return max(found.noise_radius, 1.25 * edge * min(1.0, math.log(n) / n) ** (1.0 / d))


def neighbor_counts(points: FloatArray, centers: FloatArray, radius: float) -> IntArray:
    """Return the number of points within a radius of each center."""
    counts = np.zeros(len(centers), dtype=np.int64)
    for _, near in _near_blocks(points, centers, radius):
        counts += near.sum(axis=0)
    return counts


def neighborhoods(points: FloatArray, centers: FloatArray, radius: float) -> list[IntArray]:
    """Return the points within a radius of each center."""
    groups: list[list[IntArray]] = [[] for _ in centers]
    for start, near in _near_blocks(points, centers, radius):
        # Column after column, each in the order of the points.
        columns, rows = np.nonzero(near.T)
        ends = np.searchsorted(columns, np.arange(1, len(centers)))
        for group, found in zip(groups, np.split(start + rows, ends), strict=True):
            group.append(found)
    return [np.concatenate(group) for group in groups]


def _near_blocks(points: FloatArray, centers: FloatArray, radius: float) -> Iterator[tuple[int, Any]]:
    squares = np.einsum("ij,ij->i", points, points)
    own = np.einsum("ij,ij->i", centers, centers)
    # Differences of squares are as accurate as the largest of them.
    limit = radius**2 + 1e-13 * float(squares.max(initial=0.0))
    step = max(1, _PAIR_ENTRIES // max(1, len(centers)))
    for start in range(0, len(points), step):
        some = slice(start, start + step)
        yield start, squares[some, None] + own[None, :] - 2.0 * points[some] @ centers.T <= limit
