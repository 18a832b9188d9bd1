"""Among which nodes the pure ones are looked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.data import as_data_matrix
from nonneg.separable.preprocessing import Prepared, keep_energy

# MERIT compares all pairs of points: from here on it looks at a part of them.
MANY_NODES = 20_000
N_CANDIDATES = 10_000
N_DIRECTIONS = 64


class Candidates(NamedTuple):
    """The nodes that a search sees."""

    rows: IntArray  # which nodes, rising
    kept: IntArray  # all nodes that hold the energy; `rows` are some of them, or all


def energetic_nodes(vectors: FloatArray, energy: float) -> IntArray:
    """Return the nodes with the longest rows that together hold a share of the squared norm."""
    kept = keep_energy(Prepared(as_data_matrix(vectors)), energy).kept
    return np.arange(len(vectors)) if kept is None else np.asarray(kept, dtype=np.intp)


def candidate_nodes(vectors: FloatArray, kept: IntArray, n_candidates: int) -> IntArray:
    """Choose a part of the nodes for a search whose cost grows with the square of their number."""
    # One half are outer nodes: those that lie farthest along 64 random directions and their opposites, among
    # which the corners are. The other half stands for all nodes: at even steps in the order of their
    # length, so that corners which few nodes need do not win. The directions depend on the shape alone.
    if len(kept) <= n_candidates:
        return kept
    points = vectors[kept]
    n_outer = n_candidates // 2
    outer = _outer(points, n_outer)
    taken = np.zeros(len(kept), dtype=bool)
    taken[outer] = True
    lengths = np.einsum("ij,ij->i", points, points)
    order = np.argsort(-lengths, kind="stable")
    order = order[~taken[order]]
    places = np.linspace(0, len(order) - 1, n_candidates - len(outer)).round().astype(np.intp)
    taken[order[places]] = True
    return kept[np.flatnonzero(taken)]


def _outer(points: FloatArray, n_outer: int) -> IntArray:
    n, k = points.shape
    directions = np.random.default_rng([n, k]).standard_normal((N_DIRECTIONS, k))
    each = min(n, max(1, n_outer // (2 * N_DIRECTIONS)))
    best = np.full(n, n, dtype=np.int64)
    for direction in directions:
        heights = points @ direction
        for sign in (1.0, -1.0):
            far = np.argpartition(-sign * heights, each - 1)[:each] if each < n else np.arange(n)
            ranks = np.argsort(np.argsort(-sign * heights[far], kind="stable"), kind="stable")
            best[far] = np.minimum(best[far], ranks)
    found = np.flatnonzero(best < n)
    return found[np.argsort(best[found], kind="stable")[:n_outer]]
