"""Graphs from files: edge lists, matrices, and what networkx reads."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonneg._optional import import_optional
from nonneg.applications.communities.edge_list import DUPLICATES, read_edge_list
from nonneg.exceptions import FileFormatError, MissingDependencyError, NonnegError, UnknownNameError
from nonneg.io import read_table
from nonneg.io.limits import open_gzip
from nonneg.io.variables import check_variable

EDGE_LISTS = (".txt", ".edges", ".edgelist", ".csv", ".tsv")
MATRICES = (".mtx", ".npz", ".npy", ".mat")
NETWORKX = {".graphml": "read_graphml", ".gml": "read_gml", ".gexf": "read_gexf"}


@dataclass(frozen=True)
class GraphFile:
    """A graph as it came from a file."""

    graph: Any  # for `MixedMembership.fit`
    names: tuple[str, ...] | None  # names of the nodes, where the graph does not carry them itself
    source: str  # the file, without its folders
    notes: tuple[str, ...] = ()  # what a person should know about the reading
    labels: list[str] | None = None  # known labels of the nodes, where the graph has one kind of them


def read_graph(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    duplicates: str = "sum",
    variable: str | None = None,
    kind: str = "auto",
) -> GraphFile:
    """Read a graph; the suffix of the file tells its format."""
    place = Path(path)
    if duplicates not in DUPLICATES:
        raise UnknownNameError.of("duplicates", duplicates, DUPLICATES)
    name = place.name.lower()
    plain = name.removesuffix(".gz")
    ending = Path(plain).suffix
    if not place.is_file():
        raise FileFormatError(f"{place} does not exist, or is not a file. Give the path of a graph.")
    if ending not in MATRICES:
        words = "a list of edges" if ending in EDGE_LISTS else "a graph"
        check_variable(variable, place, words, several=False)
    if ending in EDGE_LISTS:
        found = read_edge_list(place, delimiter=delimiter, header=header, duplicates=duplicates, kind=kind)
        return GraphFile(found.adjacency, found.names, place.name, found.notes)
    if ending in NETWORKX:
        return GraphFile(_by_networkx(place, ending, packed=plain != name), None, place.name)
    if ending in MATRICES:
        table = read_table(place, variable=variable)
        return GraphFile(table.X, None, place.name)
    known = ", ".join([*EDGE_LISTS, *MATRICES, *NETWORKX])
    raise FileFormatError(f"{place} has an unknown file type ({ending or 'none'}). Expected one of {known}.")


def _by_networkx(place: Path, ending: str, *, packed: bool) -> Any:
    networkx = import_optional("networkx", extra="graphs", purpose=f"Reading {ending} files")
    try:
        with open_gzip(place) if packed else place.open("rb") as stream:
            graph = getattr(networkx, NETWORKX[ending])(stream)
    except (NonnegError, MissingDependencyError):
        raise
    except Exception as error:
        # Parsers below raise whatever they stumble over; for a user all of it means a damaged file.
        raise FileFormatError(
            f"{place} could not be read as {ending[1:].upper()}: {error}. It may be damaged; write it again."
        ) from error
    # GraphML numbers the nodes and keeps their names aside.
    for key in ("label", "name"):
        named = {node: data[key] for node, data in graph.nodes(data=True) if key in data}
        if len(named) == graph.number_of_nodes() and len(set(named.values())) == len(named):
            return networkx.relabel_nodes(graph, named)
    return graph


def node_labels(graph: Any, attribute: str) -> list[Any]:
    """Return an attribute of the nodes of a networkx graph; None where a node has none."""
    values = [data.get(attribute) for _, data in graph.nodes(data=True)]
    if all(value is None for value in values):
        known = {str(key) for _, data in graph.nodes(data=True) for key in data}
        raise UnknownNameError.of("labels", attribute, known, other="--nodes with a table of nodes")
    return values


def read_node_labels(
    path: str | os.PathLike[str], column: str, delimiter: str | None = None
) -> dict[str, str]:
    """Return a column of a table of nodes, by the name of the node in the first column (or the id column)."""
    place = Path(path)
    if not place.is_file():
        raise FileFormatError(f"{place} does not exist, or is not a file. Give a table of nodes.")
    delimiter = delimiter or ("\t" if place.suffix.lower() in (".tsv", ".txt") else ",")
    try:
        with place.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream, delimiter=delimiter.replace("\\t", "\t")))
    except (UnicodeDecodeError, OSError, csv.Error) as error:
        raise FileFormatError(f"{place} could not be read as a table: {error}. Write it as UTF-8.") from error
    heading = [cell.strip() for cell in rows[0]] if rows else []
    if column not in heading:
        raise UnknownNameError.of("labels", column, heading)
    names = [cell.lower() for cell in heading]
    key = next((names.index(name) for name in ("id", "node", "name") if name in names), 0)
    at = heading.index(column)
    return {row[key].strip(): row[at].strip() for row in rows[1:] if len(row) > max(key, at)}
