"""Graphs from files: edge lists, matrices, and what networkx reads."""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from nonneg._optional import import_optional
from nonneg._typing import IntArray, SparseMatrix
from nonneg.exceptions import (
    FileFormatError,
    InvalidParameterError,
    MissingDependencyError,
    NonnegError,
    UnknownNameError,
)
from nonneg.io import read_table
from nonneg.io.limits import open_gzip, open_gzip_text
from nonneg.io.table import check_variable

EDGE_LISTS = (".txt", ".edges", ".edgelist", ".csv", ".tsv")
MATRICES = (".mtx", ".npz", ".npy", ".mat")
NETWORKX = {".graphml": "read_graphml", ".gml": "read_gml", ".gexf": "read_gexf"}
COMMENTS = ("#", "%")
# Headings of edge lists, in small letters.
SOURCES = ("source", "from", "src", "node1", "node_1", "u")
TARGETS = ("target", "to", "dst", "node2", "node_2", "v")
WEIGHTS = ("weight", "weights")
# Headings of columns with numbers that are not weights.
NO_WEIGHTS = frozenset({"id", "type", "label", "time", "timestamp", "date", "year"})
# Two names, a weight and a time; more cells are more likely a row of a matrix.
N_CELLS = 4
# networkx writes attributes as a dictionary.
ATTRIBUTE = re.compile(r"""['"]weight['"]\s*:\s*([-+.\deE]+)""")


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
        return GraphFile(_by_networkx(place, ending, packed=plain != name), None, place.name)
    if ending in MATRICES:
        return GraphFile(read_table(place, variable=variable).X, None, place.name)
    known = ", ".join([*EDGE_LISTS, *MATRICES, *NETWORKX])
    raise FileFormatError(f"{place} has an unknown file type ({ending or 'none'}). Expected one of {known}.")


def _edge_list(place: Path, delimiter: str | None, header: bool | None, kind: str) -> GraphFile:
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")  # as a shell passes it on
        if len(delimiter) != 1:
            raise InvalidParameterError(f"delimiter must be one character, got {delimiter!r}.")
    nodes: dict[tuple[int, str], int] = {}  # the names of two sides are told apart
    ends, weights = array("q"), array("d")
    second = int(kind == "bipartite")
    most_cells = 0
    first_line: list[str] = []
    try:
        packed = place.name.lower().endswith(".gz")
        opened = (
            open_gzip_text(place, "utf-8-sig", newline="")
            if packed
            else place.open(encoding="utf-8-sig", newline="")
        )
        with opened as stream:
            for number, cells in _lines(stream, delimiter, header):
                first_line = first_line or cells
                first = nodes.setdefault((0, cells[0]), len(nodes))
                if len(cells) == 1 or not cells[1]:
                    continue
                most_cells = max(most_cells, len(cells))
                ends.append(first)
                ends.append(nodes.setdefault((second, cells[1]), len(nodes)))
                weights.append(_weight(cells, number, place))
    except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
        raise FileFormatError(f"{place} could not be read as text: {error}. Write it as UTF-8.") from error
    if not weights:
        raise FileFormatError(
            f"{place} contains no edges. Expected two names and possibly a weight per line, such as "
            f"'Ann,Bob,3'; pass --delimiter if the cells are separated by something else."
        )
    pairs = np.frombuffer(ends, dtype=np.int64).reshape(-1, 2)
    numbers = np.frombuffer(weights)
    names = np.asarray([name for _, name in nodes], dtype=object)
    sides = [side for side, _ in nodes]
    notes: tuple[str, ...] = ()
    alone = first_line == names[:2].tolist() and len(pairs) > 1 and pairs[1:].min() > 1
    if header is None and alone and not any(map(_is_number, first_line)):
        # The names of the first line are in no other one.
        known = {name.lower() for name in first_line} <= {*SOURCES, *TARGETS}
        if known or all(map(_is_number, names[2:])):
            pairs, numbers, names = pairs[1:] - 2, numbers[1:], names[2:]
            sides = sides[2:]
        else:
            notes = (
                f"{first_line[0]!r} and {first_line[1]!r} of the first line are in no other line; pass "
                "--header if they are headings",
            )
    if second:
        # The nodes of the first side come first.
        order = np.argsort(sides, kind="stable")
        pairs, names = np.argsort(order)[pairs], names[order]
    adjacency, n_repeated = _adjacency(pairs, numbers, len(names), directed=kind == "directed")
    if n_repeated:
        notes += (f"{n_repeated} pairs of nodes are in more than one line; their weights were added",)
    if most_cells > N_CELLS:
        notes += (
            f"lines have up to {most_cells} cells; two names and a weight were read. A matrix is read "
            "from .mtx, .npz, .npy or .mat",
        )
    return GraphFile(adjacency, tuple(names.tolist()), place.name, notes)


def _lines(stream: IO[str], delimiter: str | None, header: bool | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of every line with an edge: two names, a weight where there is one."""
    columns: list[int] | None = None
    first = True
    for number, line in enumerate(stream, 1):
        text = line.strip()
        if not text or text.startswith(COMMENTS):
            continue
        if first and delimiter is None:
            # A dictionary of attributes has commas of its own.
            bare = text.partition("{")[0]
            delimiter = next((mark for mark in ("\t", ",", ";") if mark in bare), " ")
        cells = _split(text, str(delimiter))
        if first:
            first = False
            if _is_heading(cells) if header is None else header:
                columns = _columns(cells)
                continue
        yield number, cells if columns is None else [cells[at] for at in columns if at < len(cells)]


def _split(text: str, delimiter: str) -> list[str]:
    text, brace, attributes = text.partition("{")
    if delimiter == " ":
        cells = text.split()
    else:
        cells = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
        cells = [cell.strip() for cell in cells]
    if brace:
        return [*cells[:2], brace + attributes]
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    return cells


def _is_heading(cells: list[str]) -> bool:
    """Say whether the first line has a word where a weight belongs."""
    return len(cells) > 2 and not cells[2].startswith("{") and _number(cells[2]) is None


def _columns(headings: list[str]) -> list[int] | None:
    """Return where names and weights are, as the headings say; None for the first three columns."""
    words = [heading.lower() for heading in headings]
    source, target, weight = (
        next((at for at, word in enumerate(words) if word in known), None)
        for known in (SOURCES, TARGETS, WEIGHTS)
    )
    if source is None or target is None:
        return None
    if weight is None and (source, target) == (0, 1) and len(words) > 2 and words[2] not in NO_WEIGHTS:
        return None
    return [source, target] if weight is None else [source, target, weight]


def _weight(cells: list[str], number: int, place: Path) -> float:
    if len(cells) < 3 or not cells[2]:
        return 1.0
    text = cells[2]
    if text.startswith("{"):
        attribute = ATTRIBUTE.search(text)
        value = 1.0 if attribute is None else _number(attribute[1])
    else:
        value = _number(text)
    if value is None:
        raise FileFormatError(
            f"{place}, line {number}: the weight {text!r} is not a number. Expected two names and a number, "
            "or two names alone; pass --delimiter if the cells are separated by something else, --header if "
            "the first line has headings."
        )
    return value


def _is_number(text: str) -> bool:
    return _number(text) is not None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _adjacency(pairs: IntArray, weights: Any, n: int, *, directed: bool) -> tuple[SparseMatrix, int]:
    """Return the matrix, symmetric unless the graph is directed, and how many pairs came more than once."""
    if not directed:
        pairs = np.sort(pairs, axis=1)
    upper = sp.csr_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    times = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    if not directed:
        upper = sp.csr_array(upper + sp.triu(upper, 1).T)
    return upper, int(np.count_nonzero(times.data > 1))


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
