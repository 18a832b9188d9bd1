"""LFR graphs with overlapping communities: power laws of degrees and of sizes of communities, and mixing.

Lancichinetti & Fortunato (2009), "Benchmarks for testing community detection algorithms on directed and
weighted graphs with overlapping communities", Physical Review E 80, 016118, Section II, undirected and
unweighted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

# Attempts to rewire an edge that is a loop, repeated, or between members of one community.
N_TRIES = 500


@dataclass(frozen=True)
class OverlappingGraph:
    """A graph and its communities."""

    adjacency: sp.csr_array  # symmetric, of zeros and ones
    communities: list[list[int]]  # the nodes of every community
    mixing: float  # the share of edges between nodes without a common community, as drawn


def lfr_graph(
    n_nodes: int = 5000,
    *,
    mixing: float = 0.1,
    overlapping: float = 0.1,
    n_memberships: int = 2,
    mean_degree: float = 20.0,
    max_degree: int = 50,
    sizes: tuple[int, int] = (20, 100),
    exponents: tuple[float, float] = (2.0, 1.0),
    rng: np.random.Generator | int = 0,
) -> OverlappingGraph:
    """Draw an LFR graph in which a share of the nodes belongs to several communities."""
    rng = np.random.default_rng(rng)
    degrees = _power_law(
        _least_degree(mean_degree, max_degree, exponents[0]), max_degree, exponents[0], n_nodes, rng
    )
    counts = np.ones(n_nodes, dtype=int)
    counts[rng.permutation(n_nodes)[: round(overlapping * n_nodes)]] = n_memberships
    # The edges of a node inside its communities are divided equally among these.
    inner = np.maximum(1, np.round((1.0 - mixing) * degrees / counts)).astype(int)
    members = _assigned(counts, inner, sizes, exponents[1], rng)
    groups = [members.indices[members.indptr[at] : members.indptr[at + 1]] for at in range(members.shape[0])]
    shared = sp.csr_array(members.T @ members)  # pairs with a community in common
    edges = [_wired(group, inner[group], rng) for group in groups]
    outer = np.maximum(degrees - inner * counts, 0)
    edges.append(_wired(np.arange(n_nodes), outer, rng, shared))
    pairs = np.unique(np.vstack(edges), axis=0)
    half = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes))
    between = float(np.mean(np.asarray(shared[pairs[:, 0], pairs[:, 1]]).ravel() == 0))
    return OverlappingGraph(sp.csr_array(half + half.T), [group.tolist() for group in groups], between)


def _power_law(low: float, high: int, exponent: float, size: int, rng: np.random.Generator) -> np.ndarray:
    values = np.arange(int(np.floor(low)), high + 1)
    weights = values ** -float(exponent)
    weights[0] *= 1.0 - (low - np.floor(low))  # a fractional bound: fewer of the smallest value
    return rng.choice(values, size=size, p=weights / weights.sum())


def _least_degree(mean: float, high: int, exponent: float) -> float:
    """Return the lower bound of a power law with this mean, by bisection."""

    def mean_from(low: float) -> float:
        values = np.arange(int(np.floor(low)), high + 1)
        weights = values ** -float(exponent)
        weights[0] *= 1.0 - (low - np.floor(low))
        return float(values @ weights / weights.sum())

    low, top = 1.0, float(high)
    for _ in range(60):
        middle = 0.5 * (low + top)
        low, top = (middle, top) if mean_from(middle) < mean else (low, middle)
    return low


def _assigned(
    counts: np.ndarray, inner: np.ndarray, sizes: tuple[int, int], exponent: float, rng: np.random.Generator
) -> sp.csr_array:
    """Return which nodes are members of which communities: as many as they have, each large enough."""
    total = int(counts.sum())
    room: list[int] = []
    while sum(room) < total:
        room.append(int(_power_law(sizes[0], sizes[1], exponent, 1, rng)[0]))
    room[-1] -= sum(room) - total
    if room[-1] < sizes[0]:
        rest = room.pop()
        for at in rng.integers(len(room), size=rest):
            room[at] += 1
    free = np.array(room)
    limit = free.copy()
    members: list[set[int]] = [set() for _ in free]
    # The nodes with most edges inside a community choose first: they fit into few.
    order = np.repeat(np.arange(len(counts)), counts)
    for node in order[np.argsort(-inner[order], kind="stable")]:
        fitting = [
            int(at) for at in np.flatnonzero((free > 0) & (limit > inner[node])) if node not in members[at]
        ]
        if not fitting:
            # No room is left where the node is not: it takes the place of a member elsewhere that moves on.
            fitting = _exchanged(node, inner, free, limit, members, rng)
        weights = free[fitting] / free[fitting].sum()
        chosen = fitting[rng.choice(len(fitting), p=weights)]
        members[chosen].add(int(node))
        free[chosen] -= 1
    columns = np.concatenate([sorted(group) for group in members]).astype(int)
    starts = np.cumsum([0, *map(len, members)])
    return sp.csr_array((np.ones(len(columns)), columns, starts), shape=(len(members), len(counts)))


def _exchanged(
    node: int, inner: np.ndarray, free: np.ndarray, limit: np.ndarray, members: list[set[int]],
    rng: np.random.Generator,
) -> list[int]:  # fmt: skip
    """Move a member of a community without the node to one with room; return where there is room now."""
    for goal in rng.permutation(np.flatnonzero(free > 0)):
        for source in rng.permutation(np.flatnonzero(limit > inner[node])):
            if node in members[source] or source == goal:
                continue
            movable = [
                one for one in members[source] if one not in members[goal] and inner[one] < limit[goal]
            ]
            if movable:
                members[source].remove(movable[0])
                members[goal].add(movable[0])
                free[goal] -= 1
                free[source] += 1
                return [int(source)]
    raise ValueError("the communities are too small for the degrees: lower max_degree or raise sizes")


def _wired(
    nodes: np.ndarray, degrees: np.ndarray, rng: np.random.Generator, forbidden: sp.csr_array | None = None
) -> np.ndarray:
    """Return edges of a configuration model, without loops, repetitions and forbidden pairs."""
    stubs = np.repeat(nodes, np.minimum(degrees, len(nodes) - 1))
    stubs = rng.permutation(stubs)[: len(stubs) // 2 * 2]
    apart: list[set[int]] = []
    if forbidden is not None:
        apart = [set(forbidden.indices[slice(*forbidden.indptr[at : at + 2])].tolist()) for at in nodes]

    def allowed(one: int, other: int) -> bool:
        return one != other and (one, other) not in edges and not (apart and other in apart[one])

    edges: dict[tuple[int, int], None] = {}  # both directions, in the order of their drawing
    waiting = []
    for one, other in stubs.reshape(-1, 2).tolist():
        if allowed(one, other):
            edges[one, other] = edges[other, one] = None
        else:
            waiting.append((one, other))
    known = list(edges)
    for one, other in waiting:
        # Exchange ends with another edge where both new ones are allowed; otherwise the edge is left out.
        for at in rng.integers(len(known), size=N_TRIES if known else 0):
            third, fourth = known[at]
            if (third, fourth) in edges and allowed(one, fourth) and allowed(third, other):
                if {one, fourth} == {third, other}:
                    continue
                del edges[third, fourth], edges[fourth, third]
                for pair in ((one, fourth), (third, other)):
                    edges[pair] = edges[pair[::-1]] = None
                    known += [pair, pair[::-1]]
                break
    found = np.array([pair for pair in edges if pair[0] < pair[1]], dtype=int)
    return found.reshape(-1, 2)
