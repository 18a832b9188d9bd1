"""Adjacency matrices of graphs: matrices, data frames, graphs of networkx and igraph in one form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import checked_indices, is_sparse_array
from nonneg._optional import import_optional
from nonneg._typing import SparseMatrix
from nonneg.data.sparse import scipy_matrix
from nonneg.exceptions import DataTypeError, InvalidDataError, ShapeError, UnknownNameError, as_data_errors

USUAL_WEIGHT = "weight"
NO_NODES = "The graph has no nodes. Give one with edges."


def adjacency_matrix(graph: Any, weight: str | None = USUAL_WEIGHT) -> tuple[SparseMatrix, Any]:
    """Return a copy as CSR in float64, and the names of the nodes of a networkx graph, None for others."""
    if hasattr(graph, "to_networkx"):  # of igraph, with its names
        graph = graph.to_networkx(vertex_attr_hashable="name")
    if hasattr(graph, "is_directed") and hasattr(graph, "adjacency"):
        networkx = import_optional("networkx", extra="graphs", purpose="Reading a networkx graph")
        if graph.number_of_nodes() == 0:
            raise InvalidDataError(NO_NODES)
        # That no edge has the usual attribute means that the graph is not weighted; another was asked for.
        known = {str(key) for _, _, data in graph.edges(data=True) for key in data}
        if graph.number_of_edges() and weight not in {None, USUAL_WEIGHT, *known}:
            raise UnknownNameError.of("weight", weight, known, other="None to count every edge as 1")
        try:
            adjacency = networkx.to_scipy_sparse_array(graph, weight=weight, dtype=np.float64, format="csr")
        except (TypeError, ValueError) as error:
            raise DataTypeError(
                f"The attribute {weight!r} of some edge is not a number ({error}). Make it one; communities "
                "can name another attribute with weight=, or count every edge as 1 with weight=None."
            ) from error
        return tidy(adjacency), tuple(str(node) for node in graph.nodes)
    graph = checked_indices(scipy_matrix(graph, "graph") if is_sparse_array(graph) else graph, "graph")
    with as_data_errors():
        graph = graph if sp.issparse(graph) else np.asarray(graph)
    if graph.ndim != 2:
        raise ShapeError(
            "Expected the adjacency matrix of a graph, one row and one column per node, got shape "
            f"{graph.shape}. For an edge list pass networkx.Graph(edges)."
        )
    if graph.dtype.kind not in "buif":
        came = f"got entries of type {graph.dtype}. For an edge list pass networkx.Graph(edges)."
        raise DataTypeError(f"Expected weights that are real numbers, {came}")
    if 0 in graph.shape:
        raise InvalidDataError(NO_NODES)
    # Several entries of one pair are added, which must not happen in a narrow type.
    graph = graph if graph.dtype.kind == "b" else graph.astype(np.float64)
    return tidy(sp.csr_array(graph, dtype=np.float64, copy=True)), None


def tidy(adjacency: SparseMatrix) -> SparseMatrix:
    """Add several entries of one pair, and drop zeros."""
    adjacency = sp.csr_array(adjacency)
    adjacency.sum_duplicates()
    adjacency.eliminate_zeros()
    return adjacency
