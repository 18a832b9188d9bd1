"""Graphs of the study of communities: planted ones, networks with known communities, nearest neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.datasets import mixed_membership_graph
from reproduction.data import load_dblp, load_facebook_ego, load_football, load_karate

# n, K, mean degree, Dirichlet parameter, and what else differs; `theta` is the standard deviation of the
# logarithm of the degree parameters.
PLANTED: dict[str, dict[str, Any]] = {
    "small": {"n": 300, "k": 4, "degree": 35, "alpha": 0.2},
    "sparse": {"n": 1000, "k": 3, "degree": 10, "alpha": 0.2},
    "many communities": {"n": 1000, "k": 7, "degree": 80, "alpha": 0.25},
    "few pure nodes": {"n": 1000, "k": 3, "degree": 80, "alpha": 1.0, "n_pure": 5},
    "unbalanced": {"n": 1000, "k": 4, "degree": 100, "alpha": [0.1, 0.15, 0.25, 0.4], "n_pure": 5},
    "uneven degrees": {"n": 1000, "k": 4, "degree": 60, "alpha": 0.25, "theta": 0.6},
    "very uneven degrees": {"n": 1000, "k": 2, "degree": 25, "alpha": 0.1, "theta": 1.1},
    "three that avoid themselves": {"n": 800, "k": 3, "degree": 80, "alpha": 0.2, "between": 4.0},
    "four that avoid themselves": {"n": 800, "k": 4, "degree": 120, "alpha": 0.2, "between": 5.0},
}
EGOS = ("0", "348", "414", "686", "698", "3437", "3980")
NEIGHBORS = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
FAMILIES: dict[str, tuple[str, ...]] = {
    "planted": ("small", "sparse", "many communities", "few pure nodes", "unbalanced"),
    "degree-corrected": ("uneven degrees", "very uneven degrees"),
    "disassortative": ("three that avoid themselves", "four that avoid themselves"),
    "social": ("karate", "football", *(f"ego {ego}" for ego in EGOS)),
    "co-authors": ("dblp4",),
    "neighbors": tuple(NEIGHBORS),
}
DATA_SETS = ("football", "karate", "facebook_ego", "dblp4")
N_DRAWS = 3
# Circles of fewer friends are not communities of a graph.
SMALLEST_CIRCLE = 5
N_NEIGHBORS = 10


def graphs(name: str) -> Iterator[tuple[SparseMatrix, FloatArray]]:
    """Yield adjacency matrices and known memberships; rows of zeros where none is known."""
    if name not in PLANTED:
        yield network(name)
        return
    kind = PLANTED[name]
    for seed in range(N_DRAWS):
        rng = np.random.default_rng(seed)
        planted = mixed_membership_graph(
            kind["n"],
            kind["k"],
            mean_degree=kind["degree"],
            alpha=kind["alpha"],
            between=kind.get("between", 0.1),
            n_pure=kind.get("n_pure", 1),
            degree_parameters=np.exp(kind.get("theta", 0.0) * rng.standard_normal(kind["n"])),
            rng=rng,
        )
        yield planted.adjacency, planted.memberships


def network(name: str) -> tuple[SparseMatrix, FloatArray]:
    """Return a network and the proportions of its known communities."""
    if name.startswith("dblp"):
        found = load_dblp(name)
        return found.X, np.asarray(found.extras["memberships"].toarray())
    if name.startswith("ego"):
        found = load_facebook_ego(name.split()[1])
        circles = found.extras["circles"].toarray()
        circles = circles[:, circles.sum(axis=0) >= SMALLEST_CIRCLE]
        return found.X, circles / np.maximum(circles.sum(axis=1, keepdims=True), 1.0)
    if name in NEIGHBORS:
        samples = NEIGHBORS[name]()
        near = kneighbors_graph(normalize(samples.data / samples.data.max(axis=0).clip(1e-9)), N_NEIGHBORS)
        return sp.csr_array(near.maximum(near.T)), _indicators(samples.target)
    found = load_football() if name == "football" else load_karate()
    return found.X, _indicators(found.y)


def _indicators(y: Any) -> FloatArray:
    truth = np.zeros((len(y), int(y.max()) + 1))
    known = np.flatnonzero(y >= 0)
    truth[known, y[known]] = 1.0
    return truth
