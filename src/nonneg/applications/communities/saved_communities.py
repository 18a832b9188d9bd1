"""What a saved MixedMembership holds: memberships, the graph, and how it was seen by the eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg.applications.communities.graph import Graph
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.stored import check_arrays, check_indices, names_array, need_arrays
from nonneg.exceptions import FileFormatError

FLOATS = ("memberships_", "connectivity_", "eigenvalues_", "eigenvectors_")
NODES = ("pure_nodes_", "kept_nodes_", "isolated_nodes_", "unreached_nodes_")


def community_parts(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what of a fitted model is stored."""
    graph = model.graph_
    header = {
        "certificate": model.certificate_.as_dict(),
        "n_iter_": int(model.n_iter_),
        "n_self_loops": int(graph.n_self_loops),
        "facts": {name: _plain(value) for name, value in model.facts_.items()},
    }
    arrays = {name: np.asarray(getattr(model, name)) for name in FLOATS}
    arrays |= {name: np.asarray(getattr(model, name), dtype=np.int64) for name in NODES}
    arrays["edge_weights"] = graph.adjacency.data
    arrays["edge_columns"] = graph.adjacency.indices.astype(np.int64)
    arrays["edge_starts"] = graph.adjacency.indptr.astype(np.int64)
    if graph.names is not None:
        arrays["names"] = names_array(graph.names)
    return header, arrays


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def restore_communities(model: Any, header: dict[str, Any], arrays: dict[str, Any], path: Any) -> None:
    """Set what `community_parts` gave; the file may come from anywhere."""
    edges = ("edge_weights", "edge_columns", "edge_starts")
    need_arrays(arrays, (*FLOATS, *NODES, *edges), path)
    n, k = len(arrays["edge_starts"]) - 1, int(model.n_communities)
    shapes: dict[str, Any] = {
        "memberships_": (n, k),
        "connectivity_": (k, k),
        "eigenvalues_": (k,),
        "eigenvectors_": (n, k),
        "pure_nodes_": (k,),
        "edge_weights": (None,),
        "edge_columns": (len(arrays["edge_weights"]),),
        "edge_starts": (n + 1,),
        "names": (n,),
    } | dict.fromkeys(NODES[1:], (None,))
    kinds = dict.fromkeys((*NODES, *edges[1:]), "i") | {"names": "U"}
    check_arrays(arrays, shapes, kinds, path)
    for name in NODES:
        check_indices(name, arrays[name], n, path)
    model.graph_ = Graph(
        _adjacency(arrays, path),
        tuple(arrays["names"].tolist()) if "names" in arrays else None,
        int(header["n_self_loops"]),
    )
    model._keep(model.graph_, np.arange(n), arrays["memberships_"], arrays["eigenvectors_"])
    model.connectivity_, model.eigenvalues_ = arrays["connectivity_"], arrays["eigenvalues_"]
    for name in NODES:
        setattr(model, name, arrays[name].astype(np.intp))
    model.certificate_ = Certificate.from_dict(header["certificate"])
    model.n_iter_, model.facts_ = int(header["n_iter_"]), dict(header["facts"])


def _adjacency(arrays: dict[str, Any], path: Any) -> Any:
    weights, columns, starts = arrays["edge_weights"], arrays["edge_columns"], arrays["edge_starts"]
    n = len(starts) - 1
    check_indices("edge_columns", columns, n, path)
    fits = starts[0] == 0 and starts[-1] == len(columns) and bool((np.diff(starts) >= 0).all())
    if not (fits and np.isfinite(weights).all() and (weights >= 0).all()):
        raise FileFormatError(f"{path}: the edges of the graph do not fit together. The file is damaged.")
    return sp.csr_array((weights, columns, starts), shape=(n, n))
