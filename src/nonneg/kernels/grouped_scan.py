"""The best data point of every column without a look at all: groups that a bound rules out are skipped.

Points that lie close together form a group with a centre c and a radius. No score of the group is below c'r -
radius ||r||. A few leaders, the points that were best elsewhere, give every column a score to beat, and
most groups cannot beat it where points have few features. The answers are those of the whole scan: what is
left to decide is decided in float64, the lowest index first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg._threads import over_ranges
from nonneg._typing import FloatArray, IntArray

# In more dimensions balls hold so much room that bounds rule out too little.
MOST_FEATURES = 32
# With fewer points a plain scan takes no time.
FEWEST_POINTS = 1500
POINTS_A_GROUP = 12
ROUNDS = 3
MOST_LEADERS = 256
# Columns at once: their bounds take 4 bytes times groups each.
COLUMNS = 4096
# With more left over than this share of the pairs, the plain scan is as fast.
WORTH_IT = 0.6


class PointGroups:
    """Points of a self-dictionary problem, put together by nearness.

    Parameters
    ----------
    rounded : array of float32 of shape (n_points, n_features + 1)
        The points, centred and scaled; the last column is the penalty's and counts for nothing here.
    """

    def __init__(self, rounded: Any) -> None:
        features = np.ascontiguousarray(rounded[:, :-1])
        labels = _nearness(features)
        self.order = np.argsort(labels, kind="stable").astype(np.int64)
        _, self.starts = np.unique(labels[self.order], return_index=True)
        self.starts = np.append(self.starts, len(labels))
        self.points = np.ascontiguousarray(rounded[self.order])
        sums = np.add.reduceat(self.points[:, :-1].astype(np.float64), self.starts[:-1], axis=0)
        sizes = np.diff(self.starts)
        self.centres = (sums / sizes[:, None]).astype(np.float32)
        apart = self.points[:, :-1].astype(np.float64) - np.repeat(self.centres, sizes, axis=0)
        squares = np.einsum("ij,ij->i", apart, apart)
        # Rounded up: the radius is part of a lower bound.
        self.radii = (np.sqrt(np.maximum.reduceat(squares, self.starts[:-1])) * (1.0 + 1e-6)).astype(
            np.float32
        )
        self.leaders: IntArray = np.zeros(0, dtype=np.int64)

    def follow(self, chosen: IntArray) -> None:
        """Remember the points that were best most often.

        Parameters
        ----------
        chosen : array of int
            The answers of a scan.
        """
        found, counts = np.unique(np.append(chosen, self.leaders), return_counts=True)
        self.leaders = found[np.argsort(-counts, kind="stable")[:MOST_LEADERS]].astype(np.int64)


def _nearness(features: Any) -> IntArray:
    """Return a group for every point: a few rounds of k-means from points drawn with a fixed seed."""
    n_points = len(features)
    n_groups = max(1, n_points // POINTS_A_GROUP)
    # The answers do not depend on the groups: a fixed seed keeps the time the same.
    centres = features[np.random.default_rng(n_points).choice(n_points, n_groups, replace=False)]
    labels = np.zeros(n_points, dtype=np.intp)
    for last in range(ROUNDS, 0, -1):
        half = 0.5 * np.einsum("ij,ij->i", centres, centres)[None, :]

        def assign(start: int, stop: int, centres: Any = centres, half: Any = half) -> None:
            step = max(1, (1 << 20) // len(centres))
            for first in range(start, stop, step):
                part = features[first : min(first + step, stop)]
                labels[first : first + len(part)] = np.argmin(half - part @ centres.T, axis=1)

        over_ranges(assign, n_points, grain=1024, operations=0.4 * n_points * features.shape[1] * n_groups)
        if last > 1:
            sizes = np.bincount(labels, minlength=n_groups)
            sums = np.stack(
                [np.bincount(labels, weights=column, minlength=n_groups) for column in features.T], axis=1
            )
            kept = sizes > 0
            centres = np.where(kept[:, None], sums / np.maximum(sizes, 1)[:, None], centres).astype(
                np.float32
            )
    return labels


class GroupedScan:
    """One scan, given what is known of the points and the columns.

    Parameters
    ----------
    groups : PointGroups
        The points in groups.
    points : array of shape (n_points, n_features)
        The points themselves.
    centre : array of shape (n_features,)
        Taken from them.
    residual : array of float64 of shape (n_points, n_features)
        The columns.
    base : array of float64 of shape (n_points,)
        The penalty's slope at entries that are not listed.
    base_share : array of float32 of shape (n_points,)
        The same, scaled, as the last feature of a rounded point.
    listed : tuple of array
        The slope at the listed entries, as `PenaltySlope` has it.
    tol : float
        The distance within which two float32 scores may be in the wrong order.
    """

    def __init__(
        self,
        groups: PointGroups,
        points: Any,
        centre: Any,
        residual: FloatArray,
        base: FloatArray,
        base_share: Any,
        listed: tuple[Any, ...],
        tol: float,
    ) -> None:
        self.groups, self.tol = groups, np.float32(tol)
        groups.points[:, -1] = base_share[groups.order]
        self.leaders = groups.leaders
        self.exact_facts = (points, centre, residual)
        self.base, self.listed = base, listed
        inverse = np.empty_like(groups.order)
        inverse[groups.order] = np.arange(len(inverse))
        self.leading_points = groups.points[inverse[self.leaders]]

    def columns(
        self,
        wanted: IntArray,
        scaled_columns: Callable[[IntArray], Any],
        plain: Callable[[IntArray], IntArray],
    ) -> IntArray:
        """Return the best points of some columns.

        Parameters
        ----------
        wanted : array of int
            The columns.
        scaled_columns : callable
            Returns some columns as float32, one a row, and their scales.
        plain : callable
            The whole scan, for columns of which the bounds rule out too little.

        Returns
        -------
        array of int64
            Indices of points.
        """
        found = np.empty(len(wanted), dtype=np.int64)
        for start in range(0, len(wanted), COLUMNS):
            part = wanted[start : start + COLUMNS]
            rows, sizes = scaled_columns(part)
            found[start : start + COLUMNS] = self._chunk(part, rows, sizes, plain)
        return found

    def _chunk(self, wanted: IntArray, rows: Any, sizes: FloatArray, plain: Any) -> IntArray:
        from nonneg.kernels.compiled import grouped_scan as compiled

        groups, n = self.groups, len(wanted)
        exact, index = np.empty(n), np.empty(n, dtype=np.int64)
        threshold = np.empty(n, dtype=np.float32)
        facts = (*self.exact_facts, wanted, self.base, *self.listed, exact, index, threshold)
        compiled.settle_leaders(self.leading_points @ rows.T, self.leaders, self.tol, sizes, *facts)
        bounds = groups.centres @ rows[:, :-1].T
        norms = np.sqrt(np.einsum("ij,ij->i", rows[:, :-1], rows[:, :-1]))
        counts = np.empty(len(groups.radii), dtype=np.int64)
        # Bounds are off by roundings as scores are.
        compiled.count_alive(bounds, groups.radii, norms, threshold, self.tol, counts)
        if counts @ np.diff(groups.starts) > WORTH_IT * n * len(groups.order):
            return plain(wanted)
        places, room = (
            np.empty(n, dtype=np.int64),
            np.empty((counts.max(initial=0), rows.shape[1]), dtype=np.float32),
        )
        for group in np.flatnonzero(counts):
            some, members = places[: counts[group]], slice(groups.starts[group], groups.starts[group + 1])
            compiled.list_alive(bounds, group, some)
            chosen = np.take(rows, some, axis=0, out=room[: len(some)])
            scores = groups.points[members] @ chosen.T
            compiled.settle_group(scores, groups.order[members], some, self.tol, sizes, *facts)
        return index
