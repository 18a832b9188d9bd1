"""The vertex of every column without scores of all points: groups that a bound rules out are skipped.

Points that lie close together form a group with a center c and a radius. No score of the group is below c'r -
radius ||r||, in any coordinates: with T'(x - c) for the points and T^-1 r for the columns the bound is
tighter where the columns lie along few directions. A few leaders, the vertices of other columns, give every
column an upper bound, and most groups cannot beat it where points have few features. The vertices are those
of the plain scan: what remains is decided in float64, with the lowest index first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray, IntArray
from nonneg.kernels.self_dictionary import numba_kernels as kernels

# In more dimensions balls are so large that the bounds rule out too little.
MOST_FEATURES = 32
# With fewer points a plain scan is as fast.
FEWEST_POINTS = 1500
POINTS_A_GROUP = 12
ROUNDS = 3
MOST_LEADERS = 256
# Columns at a time: the bounds of all groups, 4 bytes each, stay in the cache (2 MB).
BOUNDS = 1 << 19
MOST_COLUMNS, FEWEST_COLUMNS = 512, 64
# Number of columns from which their main directions are estimated.
SAMPLED = 2048
# If more than this fraction of the pairs remains, the plain scan is as fast.
WORTH_IT = 0.6


class PointGroups:
    """Points of a self-dictionary problem, grouped by nearness."""

    def __init__(self, rounded: Any) -> None:
        labels = _nearness(np.ascontiguousarray(rounded[:, :-1]))
        self.order = np.argsort(labels, kind="stable").astype(np.int64)
        _, starts = np.unique(labels[self.order], return_index=True)
        self.starts = np.append(starts, len(labels))
        self.sizes = np.diff(self.starts)
        features = rounded[self.order, :-1].astype(np.float64)
        sums = np.add.reduceat(features, starts, axis=0)
        self.centers = (sums / self.sizes[:, None]).astype(np.float32)
        features -= np.repeat(self.centers, self.sizes, axis=0)
        self.spread = features.T @ features
        # Groups are padded with their first point, which changes no minimum, and features with zeros.
        filled = -(-self.sizes // kernels.POINTS) * kernels.POINTS
        self.places = np.append(0, np.cumsum(filled))
        self.members = self.order[starts].repeat(filled)
        shift = (self.places[:-1] - starts).repeat(self.sizes)
        self.members[np.arange(len(labels)) + shift] = self.order
        self.width = rounded.shape[1]
        self.points = np.zeros(
            (len(self.members), -(-self.width // kernels.FEATURES) * kernels.FEATURES), dtype=np.float32
        )
        self.points[:, : self.width] = rounded[self.members]
        self.leaders: IntArray = np.zeros(0, dtype=np.int64)

    def radii(self, rounded: Any, stretch: FloatArray) -> Any:
        """Return the radii of the groups in other coordinates."""
        found = np.empty(len(self.sizes), dtype=np.float32)

        def work(first: int, last: int) -> None:
            kernels.group_radii(rounded, self.order, self.starts, self.centers, stretch, found, first, last)

        parallel_for(work, len(found), chunk_size=64, operations=float(len(self.order)) * stretch.size)
        return found

    def follow(self, vertices: IntArray) -> None:
        """Keep the most frequent vertices as leaders."""
        found, counts = np.unique(np.append(vertices, self.leaders), return_counts=True)
        self.leaders = found[np.argsort(-counts, kind="stable")[:MOST_LEADERS]].astype(np.int64)


def _nearness(features: Any) -> IntArray:
    """Return a group for every point: a few rounds of k-means from points drawn with a fixed seed."""
    n_points = len(features)
    n_groups = max(1, n_points // POINTS_A_GROUP)
    # The vertices do not depend on the groups; a fixed seed makes the time reproducible.
    centers = features[np.random.default_rng(n_points).choice(n_points, n_groups, replace=False)]
    labels = np.zeros(n_points, dtype=np.intp)
    for last in range(ROUNDS, 0, -1):
        half = 0.5 * np.einsum("ij,ij->i", centers, centers)[None, :]

        def assign(start: int, stop: int, centers: Any = centers, half: Any = half) -> None:
            step = max(1, (1 << 20) // len(centers))
            for first in range(start, stop, step):
                part = features[first : min(first + step, stop)]
                labels[first : first + len(part)] = np.argmin(half - part @ centers.T, axis=1)

        parallel_for(
            assign, n_points, chunk_size=1024, operations=0.4 * n_points * features.shape[1] * n_groups
        )
        if last > 1:
            sizes = np.bincount(labels, minlength=n_groups)
            sums = np.stack(
                [np.bincount(labels, weights=column, minlength=n_groups) for column in features.T], axis=1
            )
            kept = sizes > 0
            centers = np.where(kept[:, None], sums / np.maximum(sizes, 1)[:, None], centers).astype(
                np.float32
            )
    return labels


def best_coordinates(points: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coordinates in which the product of the norms of points and columns is small."""
    # The sum of ||x' T||^2 times that of ||r' T^-1||^2 is least where T T' is the geometric mean of the
    # inverse of the one matrix and of the other. Rare directions are kept from being scaled so
    # much that rounding could matter.
    root, inverse = _roots(points)
    middle = _roots(root @ columns @ root)[0]
    values, vectors = np.linalg.eigh(inverse @ middle @ inverse)
    if not values[-1] > 0:
        return np.eye(len(points)), np.eye(len(points))
    scales = np.sqrt(np.maximum(values / values[-1], 1e-4))
    return np.ascontiguousarray(vectors * scales), np.ascontiguousarray(vectors / scales)


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(matrix)
    if not values[-1] > 0:
        return np.eye(len(matrix)), np.eye(len(matrix))
    roots = np.sqrt(np.maximum(values / values[-1], 1e-8))
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T


class GroupedScan:
    """One scan with groups."""

    def __init__(
        self,
        groups: PointGroups,
        rounded: Any,
        exact_facts: tuple[Any, ...],
        tol: float,
        scaled_columns: Callable[[IntArray], Any],
        plain: Callable[[IntArray], IntArray],
    ) -> None:
        self.groups, self.tol = groups, np.float32(tol)
        self.exact_facts, self.scaled_columns, self.plain = exact_facts, scaled_columns, plain
        groups.points[:, groups.width - 1] = rounded[groups.members, -1]
        self.leaders, self.leading_points = groups.leaders, rounded[groups.leaders]
        sample = scaled_columns(np.arange(0, len(rounded), max(1, len(rounded) // SAMPLED)))[0]
        columns = sample[:, :-1].astype(np.float64)
        stretch, self.shrink = best_coordinates(groups.spread, columns.T @ columns)
        self.radii = groups.radii(rounded, stretch)

    def columns(self, wanted: IntArray) -> IntArray:
        """Return the vertices of some columns."""
        found = np.empty(len(wanted), dtype=np.int64)
        step = min(MOST_COLUMNS, max(FEWEST_COLUMNS, BOUNDS // len(self.radii) // 8 * 8))
        for start in range(0, len(wanted), step):
            found[start : start + step] = self._chunk(wanted[start : start + step])
        return found

    def _chunk(self, wanted: IntArray) -> IntArray:
        groups, n = self.groups, len(wanted)
        rows, sizes = self.scaled_columns(wanted)
        points, center, residual, base, *listed = self.exact_facts
        exact, index = np.empty(n), np.empty(n, dtype=np.int64)
        threshold = np.empty(n, dtype=np.float32)
        facts = (self.tol, sizes, points, center, residual, wanted, base, *listed, exact, index, threshold)
        kernels.decide_leaders(rows @ self.leading_points.T, self.leaders, *facts)
        along = groups.centers @ rows[:, :-1].T
        norms = np.linalg.norm(rows[:, :-1] @ self.shrink, axis=1).astype(np.float32)
        bounds = (along, self.radii, norms)
        # Padded: eight marks are read at a time.
        marks = np.zeros((len(self.radii), -(-n // 8) * 8), dtype=np.uint8)
        # Bounds have rounding errors as scores have.
        if kernels.mark_alive(*bounds, threshold, self.tol, marks) > WORTH_IT * along.size:
            return self.plain(wanted)
        filled = np.zeros((n, groups.points.shape[1]), dtype=np.float32)
        filled[:, : groups.width] = rows
        kernels.decide_groups(marks, *bounds, groups.places, groups.points, groups.members, filled, *facts)
        return index
