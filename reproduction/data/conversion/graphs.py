"""Graphs in text formats, and from NetworkX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError
from reproduction.data.content import narrowed, sparse_arrays
from reproduction.data.conversion.matlab import Made, Wanted


def coauthors(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert a network of co-authors with community memberships."""
    import scipy.sparse

    pairs_file = next(path for name, path in paths.items() if name.endswith("_adjacency.txt"))
    shares_file = next(path for name, path in paths.items() if name.endswith("_community.txt"))
    pairs = np.loadtxt(pairs_file, dtype=np.int64, ndmin=2)
    table = np.loadtxt(shares_file, dtype=np.float64, ndmin=2)
    if pairs.shape[1] != 2 or table.shape[1] != 3 or pairs.min() < 1 or table[:, :2].min() < 1:
        raise FileFormatError(
            f"Expected pairs of nodes in {pairs_file.name} and node, community, share in {shares_file.name}, "
            f"all from 1; found {pairs.shape[1]} and {table.shape[1]} columns. Download them again."
        )
    nodes, communities = table[:, 0].astype(np.intp) - 1, table[:, 1].astype(np.intp) - 1
    n_nodes = max(int(pairs.max()), int(nodes.max()) + 1)
    shape = (n_nodes, int(communities.max()) + 1)
    shares = scipy.sparse.coo_array((table[:, 2], (nodes, communities)), shape=shape)
    stored = sparse_arrays(shares)
    stored["data"] = stored["data"].astype(np.float64)
    return {"A.npz": sparse_arrays(_adjacency(pairs - 1, n_nodes)), "theta.npz": stored}


def facebook(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert the network of one person's friends."""
    import scipy.sparse

    edges_file = next(path for name, path in paths.items() if name.endswith(".edges"))
    circles_file = next(path for name, path in paths.items() if name.endswith(".circles"))
    ego = next(name for name in paths if name.endswith(".edges")).removesuffix(".edges")
    edges = np.loadtxt(edges_file, dtype=np.int64, ndmin=2)
    circles = [
        np.array(line.split()[1:], dtype=np.int64)
        for line in circles_file.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    people = np.unique(np.concatenate([edges.ravel(), *circles]))
    rows = np.concatenate([np.searchsorted(people, members) for members in circles])
    columns = np.repeat(np.arange(len(circles)), [len(members) for members in circles])
    shape = (len(people), len(circles))
    members = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()
    members.data[:] = 1
    return {
        f"A_{ego}.npz": sparse_arrays(_adjacency(np.searchsorted(people, edges), len(people))),
        f"circles_{ego}.npz": sparse_arrays(members),
        f"ids_{ego}.npz": {"node_id": narrowed(people)},
    }


def football(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert a graph from a GML file whose nodes have the entries id, label and value."""
    text = next(iter(paths.values())).read_text(encoding="utf-8")
    blocks = [(kind, _gml_entries(body)) for kind, body in re.findall(r"\b(node|edge)\s*\[([^\]]*)\]", text)]
    try:
        nodes = [
            (int(entries["id"]), entries["label"], int(entries["value"]))
            for kind, entries in blocks
            if kind == "node"
        ]
        places = {number: at for at, (number, _, _) in enumerate(nodes)}
        pairs = [
            (places[int(entries["source"])], places[int(entries["target"])])
            for kind, entries in blocks
            if kind == "edge"
        ]
    except KeyError as error:
        raise FileFormatError(
            f"Expected {error} in a node or edge of the GML file. Download it again."
        ) from error
    return {
        "A.npz": sparse_arrays(_adjacency(np.array(pairs), len(nodes))),
        "labels.npz": {
            "y": narrowed([value for _, _, value in nodes]),
            "names": np.array([label for _, label, _ in nodes]),
        },
    }


def karate(paths: Mapping[str, Path], wanted: Wanted) -> Made:
    """Convert Zachary's karate club from NetworkX."""
    networkx = import_optional("networkx", extra="graphs", purpose="The karate club")
    graph = networkx.karate_club_graph()
    clubs = [int(club != "Mr. Hi") for _, club in sorted(graph.nodes(data="club"))]
    pairs = np.array(list(graph.edges()))
    return {"A.npz": sparse_arrays(_adjacency(pairs, len(clubs))), "labels.npz": {"y": narrowed(clubs)}}


def _adjacency(pairs: Any, n_nodes: int) -> Any:
    """Return the symmetric matrix of 0 and 1, in whichever direction and however often a pair is given."""
    import scipy.sparse

    rows = np.concatenate([pairs[:, 0], pairs[:, 1]])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0]])
    graph = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n_nodes, n_nodes)).tocsr()
    graph.data[:] = 1
    return graph


def _gml_entries(body: str) -> dict[str, str]:
    return {key: quoted or plain for key, quoted, plain in re.findall(r'(\w+)\s+(?:"([^"]*)"|(\S+))', body)}
