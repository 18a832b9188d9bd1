"""Graphs of users as one adjacency matrix with names; directed and bipartite ones as a symmetric matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nonneg._lazy import cached_property
from nonneg._typing import BoolArray, FloatArray, IntArray, SparseMatrix
from nonneg._warnings import warn_user
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, check_entries
from nonneg.data.graphs import USUAL_WEIGHT, adjacency_matrix, tidy
from nonneg.estimators.saving import Names, Sparse, StoredArray
from nonneg.exceptions import DataChangedWarning, InvalidDataError, ShapeError, UnknownNameError

KINDS = ("auto", "undirected", "directed", "bipartite")
SELF_LOOPS = ("drop", "keep")
# Entries that differ by less than this share of the largest are equal up to rounding.
EQUAL = 1e-10


@dataclass(frozen=True)
class Graph:
    """A graph without negative weights.

    Attributes
    ----------
    adjacency : sparse array of shape (n_nodes, n_nodes)
        CSR, float64; entry (i, j) is the weight of the edge from node i to node j. Symmetric unless the graph
        is directed.
    names : tuple of str or None
        The names of the nodes; None if they have none.
    n_self_loops : int
        Edges from a node to itself that the graph came with.
    directed : bool
        Whether the edges have a direction.
    sides : array of int of shape (n_nodes,) or None
        A bipartite graph: 0 for the nodes of the first side, 1 for those of the second. Otherwise None.
    """

    adjacency: SparseMatrix
    names: tuple[str, ...] | None = None
    n_self_loops: int = 0
    directed: bool = False
    sides: IntArray | None = None

    @property
    def kind(self) -> str:
        """Kind of graph: "undirected", "directed" or "bipartite"."""
        return "directed" if self.directed else "undirected" if self.sides is None else "bipartite"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.adjacency.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of edges, loops included."""
        if self.directed:
            return int(self.adjacency.nnz)
        loops = int(np.count_nonzero(self.adjacency.diagonal()))
        return (self.adjacency.nnz - loops) // 2 + loops

    @cached_property
    def degrees(self) -> FloatArray:
        """The sum of the weights at every node, in both directions."""
        return np.asarray(self.undirected.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def undirected(self) -> SparseMatrix:
        """The adjacency matrix; of a directed graph the sum of both directions."""
        return sp.csr_array(self.adjacency + self.adjacency.T) if self.directed else self.adjacency

    @property
    def isolated(self) -> BoolArray:
        """Which nodes have no edge."""
        return np.diff(self.undirected.indptr) == 0


STORED_GRAPH = {
    Graph: {
        "adjacency": Sparse("csr", "n_nodes", nonnegative=True),
        "names": Names("n_nodes", container=tuple, optional=True),
        "n_self_loops": int,
        "directed": bool | None,
        "sides": StoredArray("n_nodes", kind="i", optional=True),
    }
}
"""Stored part of the graph in a saved model."""


def as_graph(
    graph: Any,
    *,
    weight: str | None = USUAL_WEIGHT,
    self_loops: str = "drop",
    kind: str = "auto",
    names: Sequence[str] | None = None,
) -> Graph:
    """Check a graph and bring it into one form.

    Parameters
    ----------
    graph : sparse matrix, array or data frame of shape (n_nodes, n_nodes), or networkx graph
        The graph; never changed. A sparse matrix stays sparse, a sparse tensor is copied to host memory. A
        table of shape (n_first, n_second) is a bipartite graph between its rows and its columns.
    weight, self_loops, kind : str, default "weight", "drop" and "auto"
        As for `MixedMembership`.
    names : sequence of str, optional
        Names of the nodes; those of the graph, or of a data frame's columns, by default. Of a table first
        those of the rows, then those of the columns.

    Returns
    -------
    Graph
        In float64.

    Raises
    ------
    ShapeError, NegativeDataError, NonFiniteDataError, DataTypeError, UnknownNameError
        If it is not a valid graph with nonnegative weights; the message says what to do.
    """
    for parameter, value, known in (("self_loops", self_loops, SELF_LOOPS), ("kind", kind, KINDS)):
        UnknownNameError.check(parameter, value, known)
    sides: IntArray | None = None
    labels: tuple[str, ...] | None
    adjacency, labels = adjacency_matrix(graph, weight)
    if labels is None:
        labels, square = _frame_names(graph), adjacency.shape[0] == adjacency.shape[1]
        if not square and kind in ("undirected", "directed"):
            raise ShapeError(
                f"Expected one row and one column per node, got shape {adjacency.shape}. A table of shape "
                "(n_first, n_second) is a bipartite graph (kind='bipartite')."
            )
        if not square and adjacency.shape[1] == 2 and kind == "auto":
            raise ShapeError(
                f"Expected one row and one column per node, got shape {adjacency.shape}, as of an edge list. "
                "Pass networkx.Graph(edges), or kind='bipartite' for a table with two columns."
            )
        if not square or (kind == "bipartite" and not _is_symmetric(adjacency)):
            sides = np.repeat([0, 1], adjacency.shape)
            adjacency = sp.csr_array(sp.block_array([[None, adjacency], [adjacency.T, None]]))
    if names is not None:
        labels = tuple(map(str, names))
        if len(labels) != adjacency.shape[0]:
            raise ShapeError(
                f"names has {len(labels)} entries for a graph of {adjacency.shape[0]} nodes: give one name "
                f"per node."
            )
    if not adjacency.nnz:
        raise InvalidDataError("The graph has no edges, and thus no communities. Check the weights.")
    check_entries(
        as_data_matrix(adjacency),
        Request(who="MixedMembership", masks=False),
        None if labels is None else (labels, labels),
        "The graph is signed, but communities need nonnegative weights: drop the negative edges "
        "(A.multiply(A > 0)), or take absolute values (abs(A)).",
    )
    symmetric = _is_symmetric(adjacency)
    directed = kind == "directed" or (kind == "auto" and not symmetric)
    if not directed and (adjacency != (other := sp.csr_array(adjacency.T))).nnz:
        # The weights of both directions are added where they differ by more than rounding; a loop is one
        # edge, not two that meet.
        loops = sp.diags_array(adjacency.diagonal())
        adjacency = tidy((adjacency + other) * 0.5 if symmetric else adjacency + other - loops)
    n_loops = int(np.count_nonzero(adjacency.diagonal()))
    if n_loops and self_loops == "drop":
        warn_user(
            f"{n_loops} edge{'s' * (n_loops > 1)} from a node to itself left out (they say nothing about "
            "which nodes belong together). Pass self_loops='keep' to leave them on the diagonal.",
            DataChangedWarning,
        )
        adjacency = tidy(adjacency - sp.diags_array(adjacency.diagonal()))
        if not adjacency.nnz:
            raise InvalidDataError(
                "All edges lead from a node to itself: without them the graph has no edges, and thus no "
                "communities. Give one with edges between nodes."
            )
    if sides is None and not directed and kind in ("auto", "bipartite"):
        sides = two_sides(adjacency)
        if sides is None and kind == "bipartite":
            raise InvalidDataError(
                "The graph is not bipartite: a cycle of odd length in it connects the sides. Leave out "
                "kind='bipartite' (--kind), or pass the table whose rows and columns are the two sides."
            )
    return Graph(adjacency, labels, n_loops, directed, sides)


def _is_symmetric(adjacency: SparseMatrix) -> bool:
    """Tell whether both directions of all edges of a square matrix have the same weight."""
    difference = abs(adjacency - adjacency.T)
    return not difference.nnz or difference.data.max() <= EQUAL * adjacency.data.max()


def two_sides(adjacency: SparseMatrix) -> IntArray | None:
    """Return the side of every node of a bipartite graph, and None for any other graph."""
    # In the double cover every node has two copies, and every edge leads from one kind of copy to the other.
    # A component without odd cycles falls into two there; the first of its nodes is on the first side.
    n = adjacency.shape[0]
    if adjacency.diagonal().any():
        return None
    cover = sp.csr_array(sp.block_array([[None, adjacency], [adjacency, None]]))
    _, labels = connected_components(cover, directed=False)
    if (labels[:n] == labels[n:]).any():
        return None
    # Components are numbered as they are met, so that the copy of a first node comes before its second copy.
    return (labels[:n] > labels[n:]).astype(np.intp)


def _frame_names(graph: Any) -> tuple[str, ...] | None:
    columns, index = getattr(graph, "columns", None), getattr(graph, "index", None)
    if columns is None or index is None or callable(index):
        return None
    names, rows = tuple(map(str, columns)), tuple(map(str, index))
    if len(rows) != len(names):
        return rows + names
    numbers = tuple(map(str, range(len(names))))
    if names == numbers:
        return None
    if rows not in (names, numbers):
        raise ShapeError(
            "The rows and columns of the data frame have different names, or names in a different order. "
            "Reorder them, for example with frame.loc[frame.columns]."
        )
    return names


class Joined(NamedTuple):
    """Part of a graph that the methods see: the nodes with an edge."""

    adjacency: SparseMatrix  # CSR, symmetric
    nodes: IntArray  # which node a row stands for
    n_first: int | None  # how many rows are on the first side; None where there are no sides


def joined(graph: Graph, smallest_side: int = 1) -> Joined:
    """Return the matrix that is searched for communities.

    A node of a directed graph has two rows, one for the edges that it sends and one for those that it
    receives. Where a side of a bipartite graph has fewer nodes than `smallest_side`, the sides are ignored.
    """
    adjacency = graph.adjacency
    if graph.directed:
        senders = np.flatnonzero(np.diff(adjacency.indptr))
        receivers = np.unique(adjacency.indices)
        table = adjacency[senders][:, receivers]
        whole = sp.csr_array(sp.block_array([[None, table], [table.T, None]]))
        return Joined(whole, np.concatenate([senders, receivers]), len(senders))
    nodes, n_first = np.flatnonzero(~graph.isolated), None
    if graph.sides is not None:
        first, second = (nodes[graph.sides[nodes] == side] for side in (0, 1))
        if min(len(first), len(second)) >= smallest_side:
            nodes, n_first = np.concatenate([first, second]), len(first)
    if n_first is not None or len(nodes) < graph.n_nodes:
        adjacency = adjacency[nodes][:, nodes]
    return Joined(adjacency, nodes, n_first)


def split(graph: Graph, parts: Joined, memberships: FloatArray) -> tuple[FloatArray, ...]:
    """Return memberships by sending and by receiving, and their mean by what a node sends and receives."""
    sides = np.full((2, graph.n_nodes, memberships.shape[1]), np.nan, dtype=memberships.dtype)
    at = parts.n_first or 0
    sides[0, parts.nodes[:at]], sides[1, parts.nodes[at:]] = memberships[:at], memberships[at:]
    weights = np.array([np.asarray(graph.adjacency.sum(axis=axis)).ravel() for axis in (1, 0)])
    total = weights.sum(axis=0)
    both = np.einsum("snk,sn->nk", np.nan_to_num(sides), weights / np.where(total > 0, total, 1.0))
    both[total == 0] = np.nan
    return sides[0], sides[1], both.astype(memberships.dtype)
