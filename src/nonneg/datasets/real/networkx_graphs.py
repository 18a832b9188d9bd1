"""Small graphs of networkx, which need no download."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg._optional import import_optional
from nonneg.datasets import store

_ORIGIN = "From networkx (BSD license)."


def load_les_miserables(*, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the co-appearance network of Les Miserables.

    Parameters
    ----------
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (77, 77) in CSR with the number of chapters that two characters share; `sample_names` are
        the characters.

    Raises
    ------
    MissingDependencyError
        If networkx is not installed.

    References
    ----------
    .. [1] Knuth (1993), The Stanford GraphBase.
    """
    graph = _networkx().les_miserables_graph()
    description = (
        "Les Miserables (Knuth, 1993): 77 characters of the novel, connected if they appear in the same "
        "chapter, weighted by the number of such chapters. {_ORIGIN}"
    )
    return _dataset(graph, "weight", description, dtype)


def load_southern_women(*, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the Southern women graph: women and the social events that they attended.

    Parameters
    ----------
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (32, 32) in CSR, 0 and 1, a bipartite graph: 18 women, then 14 events; `sample_names` are
        their names, `y` the side (0 women, 1 events).

    Raises
    ------
    MissingDependencyError
        If networkx is not installed.

    References
    ----------
    .. [1] Davis, Gardner & Gardner (1941), Deep South.
    """
    graph = _networkx().davis_southern_women_graph()
    description = (
        "Southern women (Davis, Gardner and Gardner, 1941): 18 women and the 14 social events that they "
        f"attended, a bipartite graph. {_ORIGIN}"
    )
    sides = np.asarray([data["bipartite"] for _, data in graph.nodes(data=True)], dtype=np.intp)
    return _dataset(graph, None, description, dtype, sides, ("women", "events"))


def networkx_karate(*, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return Zachary's karate club from networkx."""
    graph = _networkx().karate_club_graph()
    clubs = [data["club"] for _, data in graph.nodes(data=True)]
    names = ("Mr. Hi", "Officer")
    y = np.asarray([names.index(club) for club in clubs], dtype=np.intp)
    description = (
        "Zachary's karate club (1977): 34 members, connected if they met outside the club, which later "
        "split in two. {_ORIGIN}"
    )
    return _dataset(graph, None, description, dtype, y, names)


def _networkx() -> Any:
    return import_optional("networkx", extra="graphs", purpose="This graph")


def _dataset(
    graph: Any,
    weight: str | None,
    description: str,
    dtype: npt.DTypeLike,
    y: Any = None,
    names: tuple[str, ...] = (),
) -> store.Dataset:
    adjacency = _networkx().to_scipy_sparse_array(graph, weight=weight, dtype=dtype, format="csr")
    return store.Dataset(
        X=adjacency,
        y=store.classes(y, adjacency.shape[0]),
        names=names,
        description=description,
        sample_names=tuple(map(str, graph.nodes)),
    )


NETWORKX_GRAPHS = {
    "lesmis": load_les_miserables,
    "karate": networkx_karate,
    "southern-women": load_southern_women,
}
"""Example graphs by name."""
