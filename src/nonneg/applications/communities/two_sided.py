"""Directed and bipartite graphs as one symmetric matrix: every edge leads from a first side to a second."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.applications.communities.graph import Graph

TINY, HUGE = 1e-60, 1e60


class Joined(NamedTuple):
    """What the methods see of a graph: the nodes with an edge."""

    adjacency: SparseMatrix  # CSR, symmetric
    nodes: IntArray  # which node a row stands for
    n_first: int | None  # how many rows are on the first side; None where there are no sides
    unit: float  # what the weights were divided by: 1 but for huge and tiny ones


def joined(graph: Graph, smallest_side: int = 1) -> Joined:
    """Return the matrix that is searched for communities.

    A node of a directed graph has two rows, one for the edges that it sends and one for those that it
    receives. Where a side of a bipartite graph has fewer nodes than `smallest_side`, the sides are ignored.
    """
    adjacency, unit = _in_range(graph.adjacency)
    if graph.directed:
        senders = np.flatnonzero(np.diff(adjacency.indptr))
        receivers = np.unique(adjacency.indices)
        table = adjacency[senders][:, receivers]
        whole = sp.csr_array(sp.block_array([[None, table], [table.T, None]]))
        return Joined(whole, np.concatenate([senders, receivers]), len(senders), unit)
    connected = np.flatnonzero(~graph.isolated)
    n_first = None
    if graph.sides is not None:
        sides = graph.sides[connected]
        n_first = int(np.count_nonzero(sides == 0))
        if min(n_first, len(connected) - n_first) < smallest_side:
            n_first = None
        else:
            connected = connected[np.argsort(sides, kind="stable")]
    if n_first is not None or len(connected) < graph.n_nodes:
        adjacency = adjacency[connected][:, connected]
    return Joined(adjacency, connected, n_first, unit)


def _in_range(adjacency: SparseMatrix) -> tuple[SparseMatrix, float]:
    """Divide weights whose squares could overflow or vanish by a power of two, which changes no digit."""
    largest = float(adjacency.data.max())
    if TINY < largest < HUGE:
        return adjacency, 1.0
    unit = float(np.ldexp(1.0, int(np.clip(np.frexp(largest)[1], -1000, 1000))))
    return sp.csr_array(adjacency * (1.0 / unit)), unit


class Sides(NamedTuple):
    """Memberships of the nodes of a directed graph."""

    sending: FloatArray  # NaN where a node sends nothing
    receiving: FloatArray
    both: FloatArray  # the mean, weighted by what a node sends and receives


def split(graph: Graph, parts: Joined, memberships: FloatArray) -> Sides:
    """Return the memberships by sending, by receiving, and by both."""
    n, k = graph.n_nodes, memberships.shape[1]
    at = parts.n_first or 0
    sending, receiving = (np.full((n, k), np.nan, dtype=memberships.dtype) for _ in range(2))
    sending[parts.nodes[:at]], receiving[parts.nodes[at:]] = memberships[:at], memberships[at:]
    weights = [np.asarray(graph.adjacency.sum(axis=axis), dtype=np.float64).ravel() for axis in (1, 0)]
    total = weights[0] + weights[1]
    both = sum(
        np.nan_to_num(side) * (weight / np.where(total > 0, total, 1.0))[:, None]
        for side, weight in zip((sending, receiving), weights, strict=True)
    )
    both = np.asarray(both, dtype=memberships.dtype)
    both[total == 0] = np.nan
    return Sides(sending, receiving, both)
