"""Graphs as users have them turned into one symmetric adjacency matrix with names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._optional import import_optional
from nonneg._typing import BoolArray, FloatArray, SparseMatrix
from nonneg.estimators.stored_fields import Names, Part, Sparse, Value
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
    UnsupportedInputError,
)

SYMMETRIZE = ("sum", "mean", "max")
SELF_LOOPS = ("drop", "keep")
USUAL_WEIGHT = "weight"
# Entries that differ by less than this share of the largest are equal up to rounding.
EQUAL = 1e-10


@dataclass(frozen=True)
class Graph:
    """An undirected graph without negative weights.

    Attributes
    ----------
    adjacency : sparse array of shape (n_nodes, n_nodes)
        CSR, float64, symmetric; entry (i, j) is the weight of the edge.
    names : tuple of str or None
        The names of the nodes; None where they have none.
    n_self_loops : int
        Edges from a node to itself that the graph came with.
    """

    adjacency: SparseMatrix
    names: tuple[str, ...] | None = None
    n_self_loops: int = 0

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return int(self.adjacency.shape[0])

    @property
    def n_edges(self) -> int:
        """How many edges there are, loops included."""
        loops = int(np.count_nonzero(self.adjacency.diagonal()))
        return (self.adjacency.nnz - loops) // 2 + loops

    @cached_property
    def degrees(self) -> FloatArray:
        """The sum of the weights at every node."""
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64).ravel()

    @property
    def isolated(self) -> BoolArray:
        """Which nodes have no edge."""
        return np.diff(self.adjacency.indptr) == 0


STORED_GRAPH = Part(
    {
        Graph: {
            "adjacency": Sparse("csr", "n_nodes", nonnegative=True),
            "names": Names("n_nodes", container=tuple, optional=True),
            "n_self_loops": Value(int),
        }
    }
)
"""What a saved model holds of its graph."""


def as_graph(
    graph: Any,
    *,
    weight: str | None = USUAL_WEIGHT,
    symmetrize: str | None = None,
    self_loops: str = "drop",
    names: Sequence[str] | None = None,
) -> Graph:
    """Check a graph and bring it into one form.

    Parameters
    ----------
    graph : sparse matrix, array or data frame of shape (n_nodes, n_nodes), networkx graph or Graph
        The graph; never changed. A sparse matrix stays sparse.
    weight : str or None
        networkx: the attribute of an edge that is its weight (1 where it has none); None takes 1 throughout.
    symmetrize : {"sum", "mean", "max"} or None
        What becomes of the two weights of a pair in a directed graph; None refuses directed graphs.
    self_loops : {"drop", "keep"}
        Whether edges from a node to itself are left out, with a warning that counts them, or stay on the
        diagonal.
    names : sequence of str, optional
        Names of the nodes; those of the graph, or of a data frame's columns, by default.

    Returns
    -------
    Graph
        Symmetric, in float64.

    Raises
    ------
    ShapeError, NegativeDataError, NonFiniteDataError, DataTypeError, UnsupportedInputError, UnknownNameError
        If it is no undirected graph with nonnegative weights; the message says what to do.
    """
    if symmetrize is not None and symmetrize not in SYMMETRIZE:
        raise UnknownNameError.of("symmetrize", symmetrize, SYMMETRIZE)
    if self_loops not in SELF_LOOPS:
        raise UnknownNameError.of("self_loops", self_loops, SELF_LOOPS)
    if isinstance(graph, Graph):
        adjacency, found = graph.adjacency, graph.names
    elif hasattr(graph, "is_directed") and hasattr(graph, "adjacency"):
        adjacency, found = _from_networkx(graph, weight)
    else:
        adjacency, found = _from_matrix(graph), _frame_names(graph)
    if names is not None:
        found = tuple(map(str, names))
        if len(found) != adjacency.shape[0]:
            raise ShapeError(
                f"names has {len(found)} entries for a graph of {adjacency.shape[0]} nodes: give one each."
            )
    _check_weights(adjacency, found)
    adjacency = _symmetric(adjacency, symmetrize)
    n_loops = int(np.count_nonzero(adjacency.diagonal()))
    if n_loops and self_loops == "drop":
        warnings.warn(
            f"{n_loops} edges from a node to itself were left out (they say nothing about which nodes belong "
            "together). Pass self_loops='keep' to leave them on the diagonal.",
            DataChangedWarning,
            stacklevel=3,
        )
        adjacency = _without_diagonal(adjacency)
    return Graph(adjacency, found, n_loops)


def _from_networkx(graph: Any, weight: str | None) -> tuple[SparseMatrix, tuple[str, ...]]:
    networkx = import_optional("networkx", extra="graphs", purpose="Reading a networkx graph")
    if graph.number_of_nodes() == 0:
        raise InvalidDataError("The graph has no nodes. Give one with edges.")
    if weight is not None and weight != USUAL_WEIGHT:
        _check_attribute(graph, weight)
    try:
        adjacency = networkx.to_scipy_sparse_array(graph, weight=weight, dtype=np.float64, format="csr")
    except (TypeError, ValueError) as error:
        raise DataTypeError(
            f"The attribute {weight!r} of some edge is no number ({error}). Name another attribute by "
            "weight=, or pass weight=None to count every edge as 1."
        ) from error
    return _tidy(adjacency), tuple(str(node) for node in graph.nodes)


def _check_attribute(graph: Any, weight: str) -> None:
    # That no edge has the usual attribute means that the graph is not weighted; another one was asked for.
    known = {str(key) for _, _, data in graph.edges(data=True) for key in data}
    if weight not in known and graph.number_of_edges():
        raise UnknownNameError.of("weight", weight, known, other="None to count every edge as 1")


def _frame_names(graph: Any) -> tuple[str, ...] | None:
    columns, index = getattr(graph, "columns", None), getattr(graph, "index", None)
    if columns is None or index is None or callable(index):
        return None
    found, rows = tuple(map(str, columns)), tuple(map(str, index))
    if found == tuple(map(str, range(len(found)))):
        return None
    if rows != found and rows != tuple(map(str, range(len(rows)))):
        raise ShapeError(
            "The rows and columns of the data frame have other names, or the same ones in another order. "
            "Bring them into one, such as frame.loc[frame.columns]."
        )
    return found


def _from_matrix(graph: Any) -> SparseMatrix:
    shape = getattr(graph, "shape", None)
    if not sp.issparse(graph):
        graph = np.asarray(graph)
        shape = graph.shape
    if shape is None or len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(
            f"Expected the adjacency matrix of a graph, one row and one column a node, got shape {shape}. "
            "For an edge list use `nonneg communities`, or scipy.sparse.coo_array; for a bipartite table B "
            "use scipy.sparse.block_array([[None, B], [B.T, None]])."
        )
    if graph.dtype.kind not in "buif":
        raise DataTypeError(f"Expected weights that are real numbers, got entries of type {graph.dtype}.")
    if shape[0] == 0:
        raise InvalidDataError("The graph has no nodes. Give one with edges.")
    if sp.issparse(graph) and graph.dtype.kind != "b":
        # Several entries of one pair are added, which must not happen in a narrow type.
        return _tidy(graph.astype(np.float64, copy=True))
    return _tidy(sp.csr_array(graph, dtype=np.float64, copy=True))


def _tidy(adjacency: SparseMatrix) -> SparseMatrix:
    adjacency = sp.csr_array(adjacency)
    adjacency.sum_duplicates()
    adjacency.eliminate_zeros()
    return adjacency


def _check_weights(adjacency: SparseMatrix, names: tuple[str, ...] | None) -> None:
    weights = adjacency.data
    if not np.isfinite(weights).all():
        row, column = _first_place(adjacency, ~np.isfinite(weights))
        raise NonFiniteDataError(
            f"The edge between nodes {_name(row, names)} and {_name(column, names)} has the weight "
            f"{adjacency[row, column]}. Weights must be finite: correct it or leave the edge out."
        )
    negative = weights < 0
    if negative.any():
        row, column = _first_place(adjacency, negative)
        raise NegativeDataError(
            f"The graph is signed: {int(negative.sum())} entries are below 0, first the one of nodes "
            f"{_name(row, names)} and {_name(column, names)} ({adjacency[row, column]:g}). Communities here "
            "are made of positive ties: drop the negative edges (A.multiply(A > 0)), or take their size "
            "(abs(A)) if it is what ties nodes."
        )
    if not len(weights):
        raise InvalidDataError("The graph has no edges, so that no node belongs anywhere. Check the weights.")


def _name(node: int, names: tuple[str, ...] | None) -> str:
    return str(node) if names is None else repr(names[node])


def _first_place(adjacency: SparseMatrix, which: BoolArray) -> tuple[int, int]:
    at = int(np.argmax(which))
    return int(np.searchsorted(adjacency.indptr, at, side="right")) - 1, int(adjacency.indices[at])


def _symmetric(adjacency: SparseMatrix, rule: str | None) -> SparseMatrix:
    other = sp.csr_array(adjacency.T)
    other.sort_indices()
    same_places = np.array_equal(adjacency.indptr, other.indptr) and np.array_equal(
        adjacency.indices, other.indices
    )
    if same_places:
        apart = np.abs(adjacency.data - other.data)
        if apart.max() <= EQUAL * adjacency.data.max():
            if apart.any():
                adjacency.data += other.data
                adjacency.data *= 0.5
            return adjacency
    if rule is None:
        difference = abs(adjacency - other)
        n_apart = int(np.count_nonzero(difference.data > EQUAL * adjacency.data.max())) // 2
        if not n_apart:
            return _tidy((adjacency + other) * 0.5)
        raise UnsupportedInputError(
            f"The graph is directed: {n_apart} pairs of nodes have another weight one way than the other. "
            "Pass symmetrize='sum' (add the two), 'mean' or 'max' (--symmetrize) to make it undirected."
        )
    if rule == "max":
        return _tidy(adjacency.maximum(other))
    joined = _tidy(adjacency + other)
    # A loop is one edge, not two that meet.
    diagonal = adjacency.diagonal()
    if rule == "mean":
        joined.data *= 0.5
    elif diagonal.any():
        joined = _tidy(joined - sp.diags_array(diagonal))
    return joined


def _without_diagonal(adjacency: SparseMatrix) -> SparseMatrix:
    rows = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    kept = rows != adjacency.indices
    starts = np.zeros(adjacency.shape[0] + 1, dtype=adjacency.indptr.dtype)
    np.cumsum(np.bincount(rows[kept], minlength=adjacency.shape[0]), out=starts[1:])
    return sp.csr_array((adjacency.data[kept], adjacency.indices[kept], starts), shape=adjacency.shape)
