"""How good communities are by the graph alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.exceptions import InvalidDataError, NegativeDataError, ShapeError, UnknownNameError

DEFINITIONS = ("shen", "nicosia")
# The steepness of Nicosia's logistic function, whose middle is at half a membership.
STEEPNESS = 60.0


def overlapping_modularity(
    adjacency: Any, memberships: Any, *, receiving: Any = None, definition: str = "shen"
) -> float:
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
    definition : {"shen", "nicosia"}, default "shen"
        How much an edge counts within a community: the product of the memberships of its ends (Shen, Cheng &
        Guo, 2009), which for one membership of 1 per row is Newman's modularity of a partition, or a product
        of logistic functions of them, which counts a membership above one half nearly as a whole (Nicosia,
        Mangioni, Carchiolo & Malgeri, 2009).

    Returns
    -------
    float
        The weight of the edges within communities minus what the degrees alone would lead one to expect, as a
        fraction of all weight: below 1, and about 0 for communities without structure.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.metrics import overlapping_modularity
    >>> pairs = np.kron(np.eye(2), [[0, 1], [1, 0]])
    >>> overlapping_modularity(pairs, np.kron(np.eye(2), [[1], [1]]))
    0.5
    """
    if definition not in DEFINITIONS:
        raise UnknownNameError.of("definition", definition, DEFINITIONS)
    matrix, shares = _checked(adjacency, memberships)
    others = shares if receiving is None else _checked(adjacency, receiving)[1]
    sent, received = _degrees(matrix)
    total = float(sent.sum())
    if definition == "nicosia":
        shares, others = (1.0 / (1.0 + np.exp(-STEEPNESS * (part - 0.5))) for part in (shares, others))
    expected = (sent / total @ shares) * (received / total @ others)
    if definition == "nicosia":
        # What is expected has the mean over all possible partners instead of the partner's own value.
        expected = expected * shares.mean(axis=0) * others.mean(axis=0)
    within = np.einsum("ij,ij->j", shares, matrix @ others) / total
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
    matrix, shares = _checked(adjacency, memberships)
    matrix = sp.csr_array(matrix + matrix.T)
    degrees, _ = _degrees(matrix)
    total = float(degrees.sum())
    degrees = degrees / total
    volumes = degrees @ shares
    cuts = volumes - np.einsum("ij,ij->j", shares, matrix @ shares) / total
    smaller = np.minimum(volumes, 1.0 - volumes)
    # The rounding of sums of one.
    empty = smaller <= len(degrees) * np.finfo(np.float64).eps
    return np.where(empty, np.nan, np.clip(cuts / np.where(empty, 1.0, smaller), 0.0, 1.0))


def _degrees(matrix: SparseMatrix) -> tuple[FloatArray, FloatArray]:
    return tuple(np.asarray(matrix.sum(axis=axis), dtype=np.float64).ravel() for axis in (1, 0))  # type: ignore[return-value]


def _checked(adjacency: Any, memberships: Any) -> tuple[SparseMatrix, FloatArray]:
    matrix = sp.csr_array(adjacency, dtype=np.float64)
    shares = np.nan_to_num(np.asarray(memberships, dtype=np.float64), nan=0.0)
    n = matrix.shape[0]
    if matrix.shape != (n, n) or shares.ndim != 2 or len(shares) != n:
        raise ShapeError(
            f"Expected an adjacency matrix of shape (n_nodes, n_nodes) and memberships of shape (n_nodes, "
            f"n_communities), got {matrix.shape} and {shares.shape}."
        )
    if (matrix.data < 0).any() or (shares < 0).any():
        raise NegativeDataError("Expected weights and memberships of at least 0, got negative ones.")
    largest = float(matrix.data.max(initial=0.0))
    if not largest > 0 or not np.isfinite(largest):
        raise InvalidDataError("Expected a graph with at least one edge and finite weights, got none.")
    # In a unit in which sums of huge weights are finite; a power of two changes no digit.
    return matrix * float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000)))), shares
