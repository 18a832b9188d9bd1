"""Scores of memberships in communities: by the graph alone, and against known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy
from scipy.stats import rankdata

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.exceptions import (
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)
from nonneg.metrics.arguments import sequences, sparse_table, table

MEMBERSHIPS = "(n_nodes, n_communities)"


def overlapping_modularity(adjacency: Any, memberships: Any, *, receiving: Any = None) -> float:
    """Return the modularity of overlapping communities.

    Parameters
    ----------
    adjacency : sparse matrix or array of shape (n_nodes, n_nodes)
        The graph, directed or not.
    memberships : array-like of shape (n_nodes, n_communities)
        How much every node belongs to each community; NaN counts as 0.
    receiving : array-like of shape (n_nodes, n_communities), optional
        Directed graphs: memberships by the edges that a node receives, where `memberships` are those by the
        edges that it sends.

    Returns
    -------
    float
        The weight of the edges within communities minus what the degrees alone would lead one to expect, as a
        fraction of all weight: below 1, and about 0 for communities without structure. An edge counts within
        a community by the product of the memberships of its ends: for one membership of 1 per row this is
        Newman's modularity of a partition.

    References
    ----------
    .. [1] Shen, Cheng & Guo (2009), Physica A 388.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.metrics import overlapping_modularity
    >>> pairs = np.kron(np.eye(2), [[0, 1], [1, 0]])
    >>> overlapping_modularity(pairs, np.kron(np.eye(2), [[1], [1]]))
    0.5
    """
    matrix, weights = _checked(adjacency, memberships)
    others = weights if receiving is None else _checked(adjacency, receiving)[1]
    sent, received = _degrees(matrix)
    total = float(sent.sum())
    expected = (sent / total @ weights) * (received / total @ others)
    within = np.einsum("ij,ij->j", weights, matrix @ others) / total
    return float(np.sum(within - expected))


def conductance(adjacency: Any, memberships: Any) -> FloatArray:
    """Return for each community the fraction of its edge weight that leads out of it.

    Parameters
    ----------
    adjacency : sparse matrix or array of shape (n_nodes, n_nodes)
        The graph; of a directed one both directions count.
    memberships : array-like of shape (n_nodes, n_communities)
        How much every node belongs to each community; NaN counts as 0.

    Returns
    -------
    array of shape (n_communities,)
        From 0 (a separate component) to 1: the weight between a community and the rest over the weight at the
        smaller of the two, with every node divided according to its memberships. NaN if either has no edges.

    References
    ----------
    .. [1] Yang & Leskovec (2015), Knowledge and Information Systems 42.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.metrics import conductance
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> conductance(path, [[1, 0], [1, 0], [0, 1], [0, 1]])
    array([0.33333333, 0.33333333])
    """
    matrix, weights = _checked(adjacency, memberships)
    matrix = sp.csr_array(matrix + matrix.T)
    degrees, _ = _degrees(matrix)
    total = float(degrees.sum())
    degrees = degrees / total
    volumes = degrees @ weights
    cuts = volumes - np.einsum("ij,ij->j", weights, matrix @ weights) / total
    smaller = np.minimum(volumes, 1.0 - volumes)
    # The rounding of sums of one.
    empty = smaller <= len(degrees) * np.finfo(np.float64).eps
    return np.where(empty, np.nan, np.clip(cuts / np.where(empty, 1.0, smaller), 0.0, 1.0))


def averaged_rank_correlation(true: Any, estimated: Any, *, nan: str = "error") -> float:
    """Return Spearman's rank correlation of two membership tables, averaged over the communities.

    Parameters
    ----------
    true : array-like or sparse array of shape (n_nodes, k)
        Known memberships, one community per column.
    estimated : array-like or sparse array of shape (n_nodes, l)
        Estimated ones, in any order of the columns.
    nan : {"error", "omit"}, default "error"
        Whether nodes without memberships (isolated ones) raise an error or are left out.

    Returns
    -------
    float
        From -1 to 1: the mean over the true communities under the best matching.

    Notes
    -----
    Equal values get the mean of their ranks, and the correlation is Pearson's of the ranks. A constant column
    has none; it counts as 0, as does a community without a match. The Hungarian method, O(k^3).

    Examples
    --------
    >>> from nonneg.metrics import averaged_rank_correlation
    >>> true = [[1.0, 0.0], [0.7, 0.3], [0.0, 1.0]]
    >>> averaged_rank_correlation(true, [[0.1, 0.9], [0.2, 0.8], [1.0, 0.0]])
    1.0
    """
    first, second = table(true, "true", MEMBERSHIPS), table(estimated, "estimated", MEMBERSHIPS)
    if len(first) != len(second) or 0 in (*first.shape, *second.shape):
        raise ShapeError(
            f"Expected memberships of the same nodes in `true` and `estimated`, one community per column, "
            f"got {first.shape} and {second.shape}."
        )
    UnknownNameError.check("nan", nan, ("error", "omit"))
    known = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
    if not known.any() or (nan == "error" and not known.all()):
        raise NonFiniteDataError(
            f"{int(np.sum(~known))} of {len(first)} nodes have NaN or infinite memberships (isolated nodes "
            "have none). Pass nan='omit' to leave some out."
        )
    first, second = first[known], second[known]
    correlations = _unit_ranks(first).T @ _unit_ranks(second)
    rows, columns = linear_sum_assignment(correlations, maximize=True)
    return float(np.clip(correlations[rows, columns], -1.0, 1.0).sum() / first.shape[1])


def overlapping_nmi(first: Any, second: Any) -> float:
    """Return the normalized mutual information of two sets of communities, which may overlap.

    Parameters
    ----------
    first, second : sequence of sequences of nodes
        The nodes of every community, such as `MixedMembership.communities` returns them.

    Returns
    -------
    float
        From 0 to 1 (the same communities): the mutual information over the larger entropy, by McDaid et al.

    References
    ----------
    .. [1] McDaid, Greene & Hurley (2011), arXiv:1110.2515.

    Examples
    --------
    >>> from nonneg.metrics import overlapping_nmi
    >>> overlapping_nmi([[0, 1, 2], [2, 3, 4]], [[4, 3, 2], [0, 1, 2]])
    1.0
    """
    B, C, n = _covers(first, second)
    shared = (B.T @ C).toarray()
    sizes, others = B.sum(axis=0), C.sum(axis=0)

    def entropy(count: FloatArray) -> FloatArray:
        return np.asarray(-xlogy(count, count / n))

    # H(X_i | Y_j) by the nodes in both, in one of them and in neither; a community says nothing of another
    # that it resembles no more than its complement.
    alone, apart = sizes[:, None] - shared, others - shared
    same, differing = entropy(n - sizes[:, None] - apart) + entropy(shared), entropy(alone) + entropy(apart)
    own, known = entropy(sizes) + entropy(n - sizes), entropy(others) + entropy(n - others)
    like = same > differing
    given = np.where(like, same + differing - known, own[:, None]).min(axis=1, initial=np.inf)
    known_given = np.where(like, same + differing - own[:, None], known).min(axis=0, initial=np.inf)
    most = float(max(own.sum(), known.sum()))
    information = 0.5 * float(np.sum(own - given) + np.sum(known - known_given))
    # Communities of all nodes have no entropy: they agree if both are such.
    return float(np.clip(information / most, 0.0, 1.0)) if most > 0 else 1.0


def omega_index(first: Any, second: Any) -> float:
    """Return the omega index: whether pairs of nodes share as many communities in both, beyond chance.

    Parameters
    ----------
    first, second : sequence of sequences of nodes
        The nodes of every community, such as `MixedMembership.communities` returns them.

    Returns
    -------
    float
        At most 1 (the same communities), about 0 by chance; of partitions the adjusted Rand index.

    References
    ----------
    .. [1] Collins & Dent (1988), Multivariate Behavioral Research 23.

    Examples
    --------
    >>> from nonneg.metrics import omega_index
    >>> omega_index([[0, 1, 2], [2, 3, 4]], [[4, 3, 2], [0, 1, 2]])
    1.0
    """
    B, C, n = _covers(first, second)
    together = [sp.csr_array(sp.triu(cover @ cover.T, 1)) for cover in (B, C)]
    n_pairs = n * (n - 1) / 2
    equal = 1.0 - (together[0] != together[1]).nnz / n_pairs
    levels = int(max(pairs.data.max(initial=0) for pairs in together)) + 1
    counts = np.array([np.bincount(pairs.data.astype(int), minlength=levels) for pairs in together])
    counts[:, 0] = n_pairs - counts[:, 1:].sum(axis=1)
    expected = float(np.prod(counts / n_pairs, axis=0).sum())
    return (equal - expected) / (1.0 - expected) if expected < 1.0 else 1.0


def _covers(first: Any, second: Any) -> tuple[Any, Any, int]:
    """Return which nodes are in which communities, as two tables over the same nodes, and their number."""
    both = {"first": first, "second": second}
    covers = [[set(each) for each in sequences(cover, name, "nodes")] for name, cover in both.items()]
    nodes = {node: at for at, node in enumerate(set().union(*covers[0], *covers[1]))}
    if len(nodes) < 2 or not all(covers):
        raise InvalidDataError("Expected communities on both sides, and two nodes or more, got fewer.")
    tables = []
    for cover in covers:
        rows = [nodes[node] for community in cover for node in community]
        columns = np.repeat(np.arange(len(cover)), [len(community) for community in cover])
        tables.append(sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(nodes), len(cover))))
    return tables[0], tables[1], len(nodes)


def _unit_ranks(table: FloatArray) -> FloatArray:
    ranks = rankdata(table, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.linalg.norm(ranks, axis=0)
    return ranks / np.where(norms > 0, norms, 1.0)


def _degrees(matrix: SparseMatrix) -> tuple[FloatArray, FloatArray]:
    return tuple(np.asarray(matrix.sum(axis=axis), dtype=np.float64).ravel() for axis in (1, 0))  # type: ignore[return-value]


def _checked(adjacency: Any, memberships: Any) -> tuple[SparseMatrix, FloatArray]:
    matrix = sparse_table(adjacency, "adjacency", "(n_nodes, n_nodes)")
    weights = np.nan_to_num(table(memberships, "memberships", MEMBERSHIPS), nan=0.0)
    n = matrix.shape[0]
    if matrix.shape != (n, n) or len(weights) != n:
        raise ShapeError(
            f"Expected an adjacency matrix of shape (n_nodes, n_nodes) and memberships of shape "
            f"{MEMBERSHIPS}, got {matrix.shape} and {weights.shape}."
        )
    if (matrix.data < 0).any() or (weights < 0).any():
        raise NegativeDataError("Expected weights and memberships of at least 0, got negative ones.")
    largest = float(matrix.data.max(initial=0.0))
    if not largest > 0 or not np.isfinite(largest):
        raise InvalidDataError("Expected a graph with at least one edge and finite weights, got none.")
    # In a unit in which sums of huge weights are finite; a power of two changes no digit.
    return matrix * float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000)))), weights
