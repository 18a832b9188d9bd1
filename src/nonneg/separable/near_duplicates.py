"""Near-duplicates: groups of samples, each with one representative."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._ties import rounded
from nonneg._typing import IntArray

_PAIR_ENTRIES = 1 << 22  # of the differences that exist at a time (32 MB)


def representatives(points: Any, radius: float) -> tuple[IntArray, IntArray]:
    """Select representatives: every sample is within a radius of one, and no two of them are."""
    # Close points are close along any direction: pairs are searched among neighbors in the order along the
    # direction of largest variance, so that no table of all pairs is formed. Representatives are selected in
    # rounds, each of which selects the points with larger norms than all their undecided neighbors.
    points = np.asarray(points, dtype=np.float64)
    first, second = _close_pairs(points, radius)
    n = len(points)
    norms = rounded(np.einsum("ij,ij->i", points, points))
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.arange(n), -norms))] = np.arange(n)  # 0 is the largest norm
    leader = np.full(n, -1, dtype=np.int64)
    open_points = np.ones(n, dtype=bool)
    while open_points.any():
        alive = open_points[first] & open_points[second]
        first, second = first[alive], second[alive]
        best = np.where(open_points, rank, n)
        np.minimum.at(best, first, rank[second])
        np.minimum.at(best, second, rank[first])
        winners = open_points & (best == rank)
        leader[winners] = np.flatnonzero(winners)
        # A neighbor of several winners joins the one with the largest norm.
        taken = np.full(n, n, dtype=np.int64)
        for mine, other in ((first, second), (second, first)):
            won = winners[other] & ~winners[mine]
            np.minimum.at(taken, mine[won], rank[other[won]])
        joined = taken < n
        by_rank = np.argsort(rank)
        leader[joined] = by_rank[taken[joined]]
        open_points &= ~(winners | joined)
    chosen = np.unique(leader)
    return chosen, np.searchsorted(chosen, leader)


def _close_pairs(points: Any, radius: float) -> tuple[IntArray, IntArray]:
    n, m = points.shape
    centered = points - points.mean(axis=0)
    direction = np.linalg.eigh(centered.T @ centered)[1][:, -1] if m > 1 else np.ones(1)
    along = points @ direction
    order = np.argsort(along, kind="stable")
    along, sorted_points = along[order], points[order]
    firsts, seconds = [], []
    slack = radius + 1e-12 * float(np.abs(along).max(initial=0.0))
    for offset in range(1, n):
        near = np.flatnonzero(along[offset:] - along[:-offset] <= slack)
        if not near.size:
            break
        step = max(1, _PAIR_ENTRIES // m)
        for start in range(0, len(near), step):
            some = near[start : start + step]
            gap = sorted_points[some + offset] - sorted_points[some]
            close = some[np.einsum("ij,ij->i", gap, gap) <= radius**2]
            firsts.append(order[close])
            seconds.append(order[close + offset])
    nothing = np.empty(0, dtype=np.int64)
    return np.concatenate([nothing, *firsts]), np.concatenate([nothing, *seconds])
