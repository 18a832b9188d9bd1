"""What users would take otherwise: the community detection of other packages, by one interface."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx
import numpy as np
from sklearn.cluster import SpectralClustering

from nonneg._typing import FloatArray, SparseMatrix


class Absent(Exception):
    """A peer that is not installed."""


def _partition(groups: Any, n: int) -> FloatArray:
    groups = [list(group) for group in groups]
    if not groups:
        raise ValueError("no communities were found")
    memberships = np.zeros((n, len(groups)))
    for at, group in enumerate(groups):
        memberships[group, at] = 1.0
    return memberships


def _louvain(A: SparseMatrix, k: int) -> FloatArray:
    graph = nx.from_scipy_sparse_array(A)
    return _partition(nx.community.louvain_communities(graph, seed=0), len(graph))


def _greedy(A: SparseMatrix, k: int) -> FloatArray:
    graph = nx.from_scipy_sparse_array(A)
    return _partition(nx.community.greedy_modularity_communities(graph), len(graph))


def _label_propagation(A: SparseMatrix, k: int) -> FloatArray:
    graph = nx.from_scipy_sparse_array(A)
    return _partition(nx.community.asyn_lpa_communities(graph, seed=0), len(graph))


def _spectral(A: SparseMatrix, k: int) -> FloatArray:
    found = SpectralClustering(k, affinity="precomputed", assign_labels="kmeans", random_state=0)
    narrow = A.copy()
    # scikit-learn takes narrow indices only.
    narrow.indices, narrow.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return np.eye(k)[found.fit_predict(narrow)]


def _leiden(A: SparseMatrix, k: int) -> FloatArray:
    igraph, leidenalg = _imported("igraph"), _imported("leidenalg")
    upper = A.tocoo()
    edges = [(int(i), int(j)) for i, j in zip(upper.row, upper.col, strict=True) if i < j]
    graph = igraph.Graph(A.shape[0], edges)
    found = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, seed=0)
    return _partition(found, A.shape[0])


def _karate_club(name: str, options: Callable[[int], Mapping[str, Any]]) -> Any:
    def run(A: SparseMatrix, k: int) -> FloatArray:
        graph = nx.convert_node_labels_to_integers(nx.from_scipy_sparse_array(A))
        model = getattr(_karate_module(name.lower()), name)(**options(k))
        model.allow_disjoint = True
        model.fit(graph)
        found = model.get_memberships()
        labels = np.asarray([int(found[at]) for at in range(len(graph))])
        return np.eye(int(labels.max()) + 1)[labels]

    return run


def _karate_module(name: str) -> Any:
    """Import one module of karateclub; the package as a whole asks for old versions of others."""
    path = "karateclub.community_detection.overlapping"
    spec = importlib.util.find_spec("karateclub") if "karateclub" not in sys.modules else None
    if spec is not None and spec.submodule_search_locations:
        root = next(iter(spec.submodule_search_locations))
        for part in ("karateclub", "karateclub.community_detection", path):
            package = types.ModuleType(part)
            package.__path__ = [root + part.removeprefix("karateclub").replace(".", "/")]
            sys.modules[part] = package
    return _imported(f"{path}.{name}")


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{name.split('.')[0]} is not installed") from error


def _cdlib(name: str, **options: Any) -> Any:
    def run(A: SparseMatrix, k: int) -> FloatArray:
        algorithms = _imported("cdlib.algorithms")
        graph = nx.from_scipy_sparse_array(A)
        return _partition(getattr(algorithms, name)(graph, **options).communities, len(graph))

    return run


PEERS: dict[str, Callable[[SparseMatrix, int], FloatArray]] = {
    "networkx Louvain": _louvain,
    "networkx greedy modularity": _greedy,
    "networkx label propagation": _label_propagation,
    "scikit-learn SpectralClustering": _spectral,
    "leidenalg": _leiden,
    "cdlib Demon": _cdlib("demon", epsilon=0.25),
    "cdlib Walktrap": _cdlib("walktrap"),
    "cdlib SLPA": _cdlib("slpa"),
    "karateclub BigClam": _karate_club("BigClam", lambda k: {"dimensions": k}),
    "karateclub DANMF": _karate_club("DANMF", lambda k: {"layers": [4 * k, k]}),
    "karateclub NNSED": _karate_club("NNSED", lambda k: {"dimensions": k}),
    "karateclub SymmNMF": _karate_club("SymmNMF", lambda k: {"dimensions": k}),
}
"""Peers with their defaults; those that take a number of communities get the true one."""
TAKES_K = frozenset(name for name in PEERS if "Spectral" in name or name.startswith("karateclub"))
