"""Graphs from files: edge lists, matrices, and what networkx reads."""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError, InvalidParameterError, NonnegError, UnknownNameError
from nonneg.io import read_table
from nonneg.io.limits import open_bytes, open_text
from nonneg.io.table import check_variable

EDGE_LISTS = (".txt", ".edges", ".edgelist", ".csv", ".tsv")
MATRICES = (".mtx", ".npz", ".npy", ".mat")
NETWORKX = {".graphml": "read_graphml", ".gml": "read_gml", ".gexf": "read_gexf"}
COMMENTS = ("#", "%")
# Headings of edge lists, in small letters.
SOURCES = ("source", "from", "src", "node1", "node_1")
TARGETS = ("target", "to", "dst", "node2", "node_2")
WEIGHTS = ("weight", "weights")
# Headings of columns with numbers that are not weights.
NO_WEIGHTS = frozenset({"id", "type", "label", "time", "timestamp", "date", "year"})


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
    variable: str | None = None,
    kind: str = "auto",
) -> GraphFile:
    """Read a graph; the suffix of the file tells its format.

    Edge lists: `kind` "directed" keeps the directions, "bipartite" tells the names of the two columns apart.
    """
    place = Path(path)
    name = place.name.lower()
    plain = name.removesuffix(".gz")
    ending = Path(plain).suffix
    if not place.is_file():
        raise FileFormatError(f"{place} does not exist, or is not a file. Give the path of a graph.")
    if ending not in MATRICES:
        words = "a list of edges" if ending in EDGE_LISTS else "a graph"
        check_variable(variable, place, words, several=False)
    if ending in EDGE_LISTS:
        return _edge_list(place, delimiter, header, kind)
    if ending in NETWORKX:
        return GraphFile(_by_networkx(place, ending), None, place.name)
    if ending in MATRICES:
        return GraphFile(read_table(place, variable=variable).X, None, place.name)
    known = ", ".join([*EDGE_LISTS, *MATRICES, *NETWORKX])
    raise FileFormatError(f"{place} has an unknown file type ({ending or 'none'}). Expected one of {known}.")


def _edge_list(place: Path, delimiter: str | None, header: bool | None, kind: str) -> GraphFile:
    nodes: dict[tuple[int, str], int] = {}  # the names of two sides are told apart
    ends, weights = array("q"), array("d")
    second = int(kind == "bipartite")
    try:
        with open_text(place, "utf-8-sig", newline="") as stream:
            for number, cells in _named(_lines(stream, delimiter), header):
                first = nodes.setdefault((0, cells[0]), len(nodes))
                if len(cells) > 1 and cells[1]:
                    ends.extend((first, nodes.setdefault((second, cells[1]), len(nodes))))
                    weights.append(_weight(cells, number, place))
    except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
        raise FileFormatError(f"{place} could not be read as text: {error}. Write it as UTF-8.") from error
    if not weights:
        raise FileFormatError(
            f"{place} contains no edges. Expected two names and possibly a weight per line, such as "
            f"'Ann,Bob,3'; pass --delimiter if the cells are separated by something else."
        )
    # The nodes of the first side come first.
    order = np.argsort([side for side, _ in nodes], kind="stable")
    names = [name for _, name in nodes]
    pairs = np.argsort(order)[np.frombuffer(ends, dtype=np.int64).reshape(-1, 2)]
    if kind != "directed":
        pairs = np.sort(pairs, axis=1)
    places, shape = (pairs[:, 0], pairs[:, 1]), (len(names), len(names))
    adjacency = sp.csr_array((np.frombuffer(weights), places), shape=shape)
    n_repeated = int(np.count_nonzero(sp.csr_array((np.ones(len(pairs)), places), shape=shape).data > 1))
    if kind != "directed":
        adjacency = sp.csr_array(adjacency + sp.triu(adjacency, 1).T)
    notes = (f"{n_repeated} pairs of nodes are in more than one line; their weights were added",)
    return GraphFile(adjacency, tuple(names[at] for at in order), place.name, notes if n_repeated else ())


def _lines(stream: Iterable[str], delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of every line that is not a comment."""
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")  # as a shell passes it on
        if len(delimiter) != 1:
            raise InvalidParameterError(f"delimiter must be one character, got {delimiter!r}.")
    for number, line in enumerate(stream, 1):
        text = line.strip()
        if not text or text.startswith(COMMENTS):
            continue
        if delimiter is None:
            delimiter = next((mark for mark in ("\t", ",", ";") if mark in text), " ")
        cells = text.split()
        if delimiter != " ":
            cells = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
        yield number, [cell.strip() for cell in cells]


def _named(lines: Iterator[tuple[int, list[str]]], header: bool | None) -> Iterator[tuple[int, list[str]]]:
    """Yield lines as two names and a weight, where there is one; headings say where they are."""
    ahead = list(islice(lines, 2))
    headings, columns = [""], [0, 1, 2]
    if ahead and (_is_heading(*(cells for _, cells in ahead)) if header is None else header):
        headings = [cell.lower() for cell in ahead.pop(0)[1]]
        columns = _columns(headings)
    width = count = 0
    for number, cells in chain(ahead, lines):
        width, count = len(cells), count + 1
        yield number, [cells[at] for at in columns if at < width]
    # Headings or names of the nodes are one line or one column more; lists have a weight and a time at most.
    if width > 4 and not {*headings} & {*SOURCES} and abs(count - width) <= 1:
        raise FileFormatError(
            f"{width} columns in {count} lines are a matrix, not a list of edges. Write an adjacency matrix "
            "as .npy or .mtx, or fit it as a data frame; name the columns of a list source and target."
        )


def _is_heading(cells: list[str], following: list[str] | None = None) -> bool:
    """Say whether the first line has headings that we know, or words where the next one has numbers."""
    words = {cell.lower() for cell in cells}
    known = bool(words & {*SOURCES}) and bool(words & {*TARGETS})
    pairs = list(zip(cells[:2], following or (), strict=False))
    return known or (len(pairs) > 1 and all(_is_number(b) and not _is_number(a) for a, b in pairs))


def _columns(headings: list[str]) -> list[int]:
    """Return where names and weights are, as the headings say; otherwise the first three columns."""
    source, target, weight = (
        next((at for at, word in enumerate(headings) if word in known), None)
        for known in (SOURCES, TARGETS, WEIGHTS)
    )
    if source is None or target is None:
        return [0, 1, 2]
    if weight is None and [source, target] == [0, 1] and headings[2:3] and headings[2] not in NO_WEIGHTS:
        weight = 2
    return [source, target] if weight is None else [source, target, weight]


def _weight(cells: list[str], number: int, place: Path) -> float:
    if len(cells) < 3 or not cells[2]:
        return 1.0
    if not _is_number(cells[2]):
        raise FileFormatError(
            f"{place}, line {number}: the weight {cells[2]!r} is not a number. Expected two names and a "
            "number, or two names alone, as networkx.write_weighted_edgelist writes; pass --delimiter if the "
            "cells are separated by something else, --header if the first line has headings."
        )
    return float(cells[2])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _by_networkx(place: Path, ending: str) -> Any:
    networkx = import_optional("networkx", extra="graphs", purpose=f"Reading {ending} files")
    try:
        with open_bytes(place) as stream:
            graph = getattr(networkx, NETWORKX[ending])(stream)
    except NonnegError:
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
    delimiter = delimiter or ("\t" if place.suffix.lower() in (".tsv", ".txt") else ",")
    try:
        with place.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream, delimiter=delimiter.replace("\\t", "\t")))
    except (UnicodeDecodeError, OSError, csv.Error) as error:
        raise FileFormatError(
            f"{place} could not be read as a table: {error}. Give the path of a table in UTF-8."
        ) from error
    heading = [cell.strip() for cell in rows[0]] if rows else []
    if column not in heading:
        raise UnknownNameError.of("labels", column, heading)
    names = [cell.lower() for cell in heading]
    key = next((names.index(name) for name in ("id", "node", "name") if name in names), 0)
    at = heading.index(column)
    return {row[key].strip(): row[at].strip() for row in rows[1:] if len(row) > max(key, at)}
