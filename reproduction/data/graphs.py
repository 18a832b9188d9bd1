"""Graphs: symmetric adjacency matrices, one node per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg.datasets.real import networkx_graph
from nonneg.datasets.store import Home
from nonneg.exceptions import UnknownNameError
from reproduction.data import store

EGOS = tuple(
    sorted((file[2:-4] for file in store.SOURCES["facebook_ego"]["files"] if file[0] == "A"), key=int)
)
"""The people whose ego networks are available."""


def load_dblp(name: str, data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return a network of co-authors of DBLP with mixed memberships.

    Parameters
    ----------
    name : {"dblp1", "dblp2", "dblp3", "dblp4", "dblp5"}
        The network.
    data_home : path or None
        The folder that contains ``NAME/A.npz`` and ``NAME/theta.npz``; None searches ``NONNEG_DATA``, then
        the user's cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is the adjacency matrix in CSR, 0 and 1. ``extras["memberships"]`` is a CSR array of shape
        (n_nodes, n_communities) whose rows sum to 1, and `y` the community with the largest membership.
    """
    return _coauthors(name, "dblp", "DBLP", "groups of conferences", data_home, dtype)


def load_mag(name: str, data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return a network of co-authors of the Microsoft Academic Graph with mixed memberships.

    Parameters
    ----------
    name : {"mag1", "mag2"}
        The network.
    data_home : path or None
        The folder that contains ``NAME/A.npz`` and ``NAME/theta.npz``; None searches ``NONNEG_DATA``, then
        the user's cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is the adjacency matrix in CSR, 0 and 1. ``extras["memberships"]`` is a CSR array of shape
        (n_nodes, n_communities) whose rows sum to 1, and `y` the community with the largest membership.
    """
    return _coauthors(name, "mag", "the Microsoft Academic Graph", "fields of study", data_home, dtype)


def _coauthors(
    name: str, kind: str, library: str, communities: str, home: Home, dtype: npt.DTypeLike
) -> store.Dataset:
    known = sorted(folder for folder in store.SOURCES if folder.startswith(kind))
    if name not in known:
        raise UnknownNameError.of("name", name, known)
    memberships = store.read_sparse(f"{name}/theta.npz", home).astype(dtype)
    return store.Dataset(
        X=store.read_sparse(f"{name}/A.npz", home).astype(dtype),
        y=np.asarray(memberships.argmax(axis=1), dtype=np.intp).ravel(),
        names=(),
        description=(
            f"{name} (Mao, Sarkar and Chakrabarti): a network of co-authors of {library}, one author per "
            f"row, connected by a common paper; communities are {communities}, memberships the proportions "
            "of an author's papers."
        ),
        extras={"memberships": memberships},
    )


def load_facebook_ego(
    ego: str | int, data_home: Home = None, *, dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return the friends of one person on Facebook and their circles.

    Parameters
    ----------
    ego : {"0", "107", "348", "414", "686", "698", "1684", "1912", "3437", "3980"}
        The person, who is not a node of the graph.
    data_home : path or None
        The folder that contains ``facebook_ego/A_EGO.npz`` and its companions; None searches ``NONNEG_DATA``,
        then the user's cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is the adjacency matrix in CSR, 0 and 1; `sample_names` are the ids of the friends.
        ``extras["circles"]`` is a CSR array of shape (n_nodes, n_circles) of 0 and 1; circles overlap, so
        `y` is -1 throughout.
    """
    if str(ego) not in EGOS:
        raise UnknownNameError.of("ego", str(ego), EGOS)
    adjacency = store.read_sparse(f"facebook_ego/A_{ego}.npz", data_home).astype(dtype)
    numbers = store.read_arrays(f"facebook_ego/ids_{ego}.npz", data_home)["node_id"]
    return store.Dataset(
        X=adjacency,
        y=store.classes(None, adjacency.shape[0]),
        names=(),
        description=(
            f"ego-Facebook of SNAP (McAuley and Leskovec, 2012), network of person {ego}: one friend per "
            f"row, connected if they are friends of each other; the circles were chosen by the person."
        ),
        sample_names=tuple(map(str, numbers)),
        extras={"circles": store.read_sparse(f"facebook_ego/circles_{ego}.npz", data_home).astype(dtype)},
    )


def load_football(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the graph of American college football.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``football/A.npz`` and ``football/labels.npz``; None searches
        ``NONNEG_DATA``, then the user's cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (115, 115) in CSR, 0 and 1; `sample_names` are the teams, `y` their conference.
    """
    return _graph(
        "football",
        "American college football, season 2000 (Girvan and Newman, 2002): 115 teams, connected by a game, "
        "in 12 conferences.",
        data_home,
        dtype,
    )


def load_karate(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return Zachary's karate club.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``karate/A.npz`` and ``karate/labels.npz``; None searches ``NONNEG_DATA``,
        then the user's cache, then networkx.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (34, 34) in CSR, 0 and 1; `y` is the club after the split.
    """
    if data_home is None and not store.is_available("karate"):
        return networkx_graph("karate")
    description = (
        "Zachary's karate club (1977): 34 members, connected if they met outside the club, which later "
        "split in two."
    )
    return _graph("karate", description, data_home, dtype)


def _graph(folder: str, description: str, home: Home, dtype: npt.DTypeLike) -> store.Dataset:
    labels: dict[str, Any] = store.read_arrays(f"{folder}/labels.npz", home)
    return store.Dataset(
        X=store.read_sparse(f"{folder}/A.npz", home).astype(dtype),
        y=labels["y"].astype(np.intp),
        names=(),
        description=description,
        sample_names=tuple(map(str, labels.get("names", ()))),
    )
