"""Graphs with overlapping communities: the mixed membership stochastic blockmodel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.datasets.dataset import check_numbers
from nonneg.exceptions import InvalidParameterError, ShapeError, as_data_errors


@dataclass(frozen=True)
class CommunityGraph:
    """A generated graph with its memberships.

    Attributes
    ----------
    adjacency : sparse array of shape (n_nodes, n_nodes)
        CSR, float64, symmetric, 0 and 1, without self-loops.
    memberships : array of shape (n_nodes, n_communities)
        Membership proportions, which sum to one.
    connectivity : array of shape (n_communities, n_communities)
        The intensity of edges between pure nodes: pure nodes of communities k and l are connected with
        probability ``1 - exp(-connectivity[k, l])``.
    pure_nodes : array of int
        All nodes that belong to a single community.
    """

    adjacency: SparseMatrix
    memberships: FloatArray
    connectivity: FloatArray
    pure_nodes: IntArray


def mixed_membership_graph(
    n_nodes: int = 1000,
    n_communities: int = 3,
    *,
    mean_degree: float = 20.0,
    alpha: Any = 0.2,
    between: float = 0.1,
    n_pure: int = 1,
    degree_parameters: Any = None,
    rng: Seed = None,
) -> CommunityGraph:
    """Return a graph drawn from the mixed membership stochastic blockmodel.

    Parameters
    ----------
    n_nodes : int, default 1000
        Number of nodes.
    n_communities : int, default 3
        Number of communities.
    mean_degree : float, default 20
        Mean degree, before multiple edges are merged.
    alpha : float or array of shape (n_communities,), default 0.2
        Parameter of the Dirichlet distribution of the memberships; small values make most nodes nearly pure,
        different ones make communities of different sizes.
    between : float, default 0.1
        Ratio of the edge intensity between communities to that within one.
    n_pure : int, default 1
        Number of pure nodes per community, which make the graph separable.
    degree_parameters : array of shape (n_nodes,), optional
        How many edges a node has compared with others that have the same memberships: the degree-corrected
        model, in which ``t_i`` becomes ``degree_parameters[i] * t_i``. Positive; only their proportions
        matter.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.

    Returns
    -------
    CommunityGraph
        The graph, its memberships and its connectivity.

    Notes
    -----
    Pairs are connected with probability ``1 - exp(-t_i B t_j')``, which for sparse graphs is the blockmodel's
    ``t_i B t_j'``: the number of edges of each pair of communities is drawn first, then their ends, so that
    time and memory grow with nodes and edges. Ten million edges take seconds.

    References
    ----------
    .. [1] Airoldi, Blei, Fienberg & Xing (2008), Journal of Machine Learning Research 9.
    .. [2] Rohe, Tao, Han & Binkiewicz (2018), Journal of Machine Learning Research 19 (drawing edge by edge).
    """
    check_numbers(mixed_membership_graph, locals(), lowest=0)
    if n_communities < 1 or n_nodes < max(2, n_communities * n_pure):
        raise InvalidParameterError(
            f"Expected at least one community and n_communities * n_pure nodes, got n_nodes={n_nodes}, "
            f"n_communities={n_communities}, n_pure={n_pure}."
        )
    with as_data_errors("alpha"):
        alphas = np.asarray(alpha, dtype=np.float64)
    if alphas.ndim and alphas.shape != (n_communities,):
        raise ShapeError(f"Expected alpha as one number or of shape ({n_communities},), got {alphas.shape}.")
    if not 0 < mean_degree < n_nodes or not alphas.min() > 0:
        raise InvalidParameterError(
            f"Expected alpha above 0 and mean_degree below n_nodes={n_nodes}, got {alpha} and {mean_degree}."
        )
    rng = generator(rng)
    memberships = rng.dirichlet(np.broadcast_to(alphas, (n_communities,)), size=n_nodes)
    pure = rng.permutation(n_nodes)[: n_communities * n_pure]
    memberships[pure] = np.eye(n_communities)[np.arange(len(pure)) % n_communities]
    blocks = between + (1.0 - between) * np.eye(n_communities)
    ends = memberships if degree_parameters is None else _scaled(memberships, degree_parameters)
    sizes = ends.sum(axis=0)
    # Each edge has two ends: mean_degree ends per node.
    blocks *= mean_degree * n_nodes / float(sizes @ blocks @ sizes)
    adjacency = _edges(ends, blocks, sizes, rng)
    alone = np.flatnonzero(memberships.max(axis=1) == 1.0)
    return CommunityGraph(adjacency, memberships, blocks, alone)


def _scaled(memberships: FloatArray, degree_parameters: Any) -> FloatArray:
    with as_data_errors("degree_parameters"):
        theta = np.asarray(degree_parameters, dtype=np.float64)
    if theta.shape != (len(memberships),) or not 0 < theta.min() <= theta.max() < np.inf:
        raise InvalidParameterError(
            f"degree_parameters must be {len(memberships)} positive numbers, got an array of {theta.shape}."
        )
    return memberships * theta[:, None]


def _edges(memberships: FloatArray, blocks: FloatArray, sizes: FloatArray, rng: Any) -> SparseMatrix:
    n, k = memberships.shape
    # Ordered pairs count every edge twice.
    counts = rng.poisson(0.5 * blocks * np.outer(sizes, sizes))
    index = np.int32 if n < 2**31 else np.int64
    n_ends = counts.sum(axis=0) + counts.sum(axis=1)
    ends = [_drawn_nodes(memberships[:, at], int(n_ends[at]), index, rng) for at in range(k)]
    used = np.zeros(k, dtype=np.int64)
    first: list[IntArray] = []
    second: list[IntArray] = []
    for row in range(k):
        for column in range(k):
            for at, side in ((row, first), (column, second)):
                side.append(ends[at][used[at] : used[at] + counts[row, column]])
                used[at] += counts[row, column]
    del ends
    sources, targets = np.concatenate(first), np.concatenate(second)
    del first, second
    apart = sources != targets
    sources, targets = sources[apart], targets[apart]
    ones = np.ones(2 * len(sources), dtype=np.float64)
    places = (np.concatenate([sources, targets]), np.concatenate([targets, sources]))
    adjacency = sp.csr_array(sp.coo_array((ones, places), shape=(n, n)))
    adjacency.sum_duplicates()
    adjacency.data[:] = 1.0
    return adjacency


def _drawn_nodes(weights: FloatArray, n_draws: int, index: Any, rng: Any) -> IntArray:
    # How often each node is drawn, then all of them in random order: faster than one search a draw.
    total = float(weights.sum())
    if n_draws == 0 or total == 0:
        return np.zeros(0, dtype=index)
    counts = rng.multinomial(n_draws, weights / total)
    nodes = np.repeat(np.arange(len(weights), dtype=index), counts)
    rng.shuffle(nodes)
    return nodes
