"""The smallest circular cones that contain the clusters of a data set (Liu & Tan, equations 14 to 16).

The smallest cone around unit vectors has its axis along the point of their convex hull that is nearest to
the origin (the least-distance program (16), whose dual is nonnegative least squares in weights of the
points), and that is the center of the smallest ball around them. Both are the same program in the weights of
the few points that lie on the cone's boundary. The ball's form is solved, in differences to a point amid
the cluster: it does not lose small angles. The points come in by column generation: one pass over the data
finds those farthest from the axes, the small program of these and the points on the boundary is solved
exactly, and so on until no point lies outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, IntArray, SampleArray
from nonneg.cones.geometry.farthest import ROUNDING, farthest_points
from nonneg.data import DataMatrix
from nonneg.leastsquares.simplex import simplex_least_squares

TOL = 1e-9
MAX_ROUNDS = 200
# Points that join a cluster's program in a round, at most; fewer where they would fill the memory.
_JOINING = 64
_JOINING_ENTRIES = 1 << 24
# Rows of which so few entries are nonzero are kept sparse.
_SPARSE_BELOW = 0.2


@dataclass(frozen=True)
class SizeAngles:
    """The smallest cones around the clusters of a data set."""

    axes: FloatArray  # unit rows, nonnegative for nonnegative data; zeros for a cluster without points
    # The largest angle of a point of the cluster to its axis, in radians: the cone contains the cluster
    # whatever the precision of the axis. 0 for a cluster without points.
    angles: FloatArray
    lower_angles: FloatArray  # no cone of a smaller angle contains the cluster (weak duality)
    # The largest angles of the points to the axes that were begun with, such as the leading directions:
    # the estimate of the size angles of the cones that the points were drawn from. In high dimension these
    # are larger than the smallest cones' (see Notes of `size_angles`).
    initial_angles: FloatArray
    counts: IntArray  # how many points a cluster has; rows of zeros and rows without weight belong to none
    squared_norms: FloatArray  # the weighted sums of the squared entries
    outside: FloatArray  # the weighted sums of the squared distances of the points to the lines of their axes
    # For each cluster the rows on the boundary of its cone: those whose weights make the axis.
    boundary: tuple[IntArray, ...]


def size_angles(data: DataMatrix, labels: SampleArray, start: FloatArray) -> SizeAngles:
    """Return the smallest circular cones about all clusters at once, from an axis of each to begin with."""
    # A pass costs one product of each row with its own axis (with all axes for sparse rows). The number of
    # passes grows slowly with the number of points on the boundaries, of which there are at most n_features +
    # 1 a cluster.
    # The smallest cone around points drawn from a cone is smaller than that cone, and not only because the
    # widest angle was not drawn: with fewer points than exponentially many in the features, an axis moved
    # towards the outermost points is nearer to all of them. 250 points of length 1600 drawn from a cone of
    # 0.2 radians have a smallest cone of 0.187; their largest angle to their mean direction is 0.197. The
    # bounds want the former, an estimate of the cone the latter.
    # Signed points may fill a half space or more, which no cone narrower than a right angle contains: the
    # lower bound is then a right angle, and the angle that of the best axis that was tried.
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equations (14) to (16). Lawson &
    # Hanson (1974), Solving Least Squares Problems, ch. 23.
    k, hulls = len(start), [ClusterHull(axis) for axis in start]
    joining = int(np.clip(_JOINING_ENTRIES // max(k * data.shape[1], 1), 8, _JOINING))
    open_ = np.ones(k, dtype=bool)
    counts = np.zeros(k, dtype=np.intp)
    initial_angles = np.zeros(k)
    for n_round in range(MAX_ROUNDS):
        axes = np.stack([hull.axis for hull in hulls]) if k else np.zeros((0, data.shape[1]))
        farthest = farthest_points(data, labels, axes, open_, joining)
        for c in np.flatnonzero(open_):
            open_[c] = hulls[c].compare(farthest.chords[c], farthest.sums[:, c])
            if n_round == 0:
                counts[c], initial_angles[c] = int(farthest.counts[c]), hulls[c].angle
        if not open_.any():
            break
        _join(data, hulls, np.flatnonzero(open_), farthest.rows)
        for c in np.flatnonzero(open_):
            open_[c] = hulls[c].solve()
    sums = np.array([hull.best_sums for hull in hulls]).reshape(k, 2)
    return SizeAngles(
        axes=np.stack([hull.best_axis for hull in hulls]) if k else np.zeros((0, data.shape[1])),
        angles=np.array([hull.angle for hull in hulls]),
        lower_angles=np.array([min(hull.lower_angle, hull.angle) for hull in hulls]),
        initial_angles=initial_angles,
        counts=counts,
        squared_norms=sums[:, 0],
        outside=sums[:, 1],
        boundary=tuple(hull.boundary for hull in hulls),
    )


def _join(data: DataMatrix, hulls: list[ClusterHull], clusters: IntArray, rows: list[IntArray]) -> None:
    """Fetch the rows, of several clusters at a time as far as memory allows, and add them to the hulls."""
    batch: list[int] = []
    size = 0
    for position, c in enumerate(clusters):
        batch.append(int(c))
        size += len(rows[c]) * data.shape[1]
        if size >= _JOINING_ENTRIES // 4 or position == len(clusters) - 1:
            places = np.concatenate([rows[b] for b in batch])
            points: Array = (
                to_float64(data.take_rows(places)) if len(places) else np.zeros((0, data.shape[1]))
            )
            edges = np.cumsum([0] + [len(rows[b]) for b in batch])
            for b, first, last in zip(batch, edges[:-1], edges[1:], strict=True):
                hulls[b].add(rows[b], points[first:last])
            batch, size = [], 0


class ClusterHull:
    """Unit points of one cluster and the smallest ball around them."""

    # The center of the smallest ball is the nearest point of the hull to the origin, along the axis of the
    # smallest cone, and the ball's radius is the sine of the cone's angle. In terms of the differences d to
    # any reference, the weights minimize |sum w d|^2 - sum w |d|^2 on the simplex, and any weights give a
    # lower bound of the squared radius.

    def __init__(self, amid: FloatArray) -> None:
        length = float(np.linalg.norm(amid))
        self.reference = amid / length if length > 0 else np.eye(1, len(amid))[0]
        self.axis: FloatArray = self.reference
        self.rows: IntArray = np.zeros(0, dtype=np.intp)
        self.weights: FloatArray = np.zeros(0)
        # Differences to the reference, or the points themselves (a reference of zero) where they are sparse.
        self.points: Any = np.zeros((0, len(amid)))
        self.lower_angle = 0.0
        self.angle = math.inf
        self.best_axis = self.axis
        self.best_sums: FloatArray = np.zeros(2)

    @property
    def boundary(self) -> IntArray:
        """The rows with a positive weight, in ascending order."""
        return np.sort(self.rows[self.weights > 0])

    def compare(self, chord: float, sums: FloatArray) -> bool:
        """Take note of the distance of the cluster's farthest point from the current axis."""
        if chord < 0:
            self.angle, self.best_sums = 0.0, np.zeros(2)
            self.best_axis = np.zeros_like(self.axis)
            return False
        angle = 2.0 * math.asin(min(1.0, chord / 2.0))
        if angle < self.angle:
            self.angle, self.best_axis, self.best_sums = angle, self.axis, sums
        return self.angle > self.lower_angle * (1.0 + TOL) + ROUNDING

    def add(self, rows: IntArray, points: FloatArray) -> None:
        """Let points join those that have a weight; of several that are alike only the first."""
        fresh = ~np.isin(rows, self.rows)
        rows, points = rows[fresh], points[fresh]
        if not len(rows):
            return
        units = points / np.linalg.norm(points, axis=1, keepdims=True)
        distinct = _distinct(units - self.axis)
        rows, units = rows[distinct], units[distinct]
        if not len(self.rows) and np.count_nonzero(units) < _SPARSE_BELOW * units.size:
            self.reference = np.zeros_like(self.reference)
            self.points = sp.csr_array(self.points)
        if sp.issparse(self.points):
            self.points = sp.csr_array(sp.vstack([self.points, sp.csr_array(units)]))
        else:
            self.points = np.concatenate([self.points, units - self.reference])
        self.rows = np.concatenate([self.rows, rows])
        self.weights = np.concatenate([self.weights, np.zeros(len(rows))])

    def solve(self) -> bool:
        """Find the smallest ball around the points at hand, and let go of those inside it."""
        gram = self.points @ self.points.T
        gram = gram.toarray() if sp.issparse(gram) else gram
        squares = np.diagonal(gram).copy()
        known = bool(self.weights.any())
        start = self.weights[None, :] if known else None
        weights = simplex_least_squares(gram, 0.5 * squares[None, :], start=start)[0]
        center = self.points.T @ weights
        radius = math.sqrt(max(0.0, float(weights @ squares - center @ center)))
        lower = math.asin(min(1.0, radius))
        grown = lower > self.lower_angle or not known
        active = weights > 0
        self.rows, self.weights, self.points = self.rows[active], weights[active], self.points[active]
        self.lower_angle = max(lower, self.lower_angle)
        axis = self.reference + center
        length = float(np.linalg.norm(axis))
        # The hull contains the origin: the points fill more than a half space, which only signed data can do.
        if length > 0:
            self.axis = axis / length
        return grown and length > 0


def _distinct(differences: FloatArray) -> IntArray:
    """Return the first of each group of equal rows: duplicates would share a weight."""
    # Rows are alike when their products with one vector are; others that are taken for them come again.
    products = differences @ np.cos(np.arange(1.0, differences.shape[1] + 1.0))
    scale = float(np.abs(products).max(initial=0.0))
    _, first = np.unique(np.round(products / (scale or 1.0), 9), return_index=True)
    return np.sort(first)
