"""Edge lists as text: two names and possibly a weight per line."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.io.limits import open_gzip_text

DUPLICATES = ("sum", "max")
COMMENTS = ("#", "%")
# Two names and a weight; further cells, such as times, are not read.
N_CELLS = 3
SOURCES = ("source", "from", "src", "node1", "node_1", "u")
TARGETS = ("target", "to", "dst", "node2", "node_2", "v")
WEIGHTS = ("weight", "weights")
NO_WEIGHTS = frozenset({"id", "type", "label", "time", "timestamp", "date", "year"})
"""Headings of columns with numbers that are not weights."""
# This many cells between blanks are more likely a row of a matrix; weights and times make four.
MANY_CELLS = 4
# networkx writes attributes as a dictionary.
ATTRIBUTE = re.compile(r"""['"]weight['"]\s*:\s*([-+.\deE]+)""")


class EdgeList(NamedTuple):
    """A graph from a list of edges."""

    adjacency: SparseMatrix  # CSR, symmetric unless it was read as a directed graph
    names: tuple[str, ...]  # names of the nodes in the order in which they first appear
    # What a person should know: how many pairs came more than once, and cells that were not read.
    notes: tuple[str, ...]


class Edges(NamedTuple):
    """Edges as they were read, one per line."""

    first: IntArray  # the nodes of each
    second: IntArray
    weights: FloatArray  # its weight
    names: tuple[str, ...]  # of the nodes


def read_edge_list(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    duplicates: str = "sum",
    kind: str = "auto",
) -> EdgeList:
    """Read an edge list; `kind` "directed" keeps the directions, "bipartite" tells the two columns apart."""
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")  # as a shell passes it on
        if len(delimiter) != 1:
            raise InvalidParameterError(f"delimiter must be one character, got {delimiter!r}.")
    places: dict[str, int] = {}
    first_line: list[str] = []
    most_cells = 0
    sources, targets, weights = array("q"), array("q"), array("d")
    try:
        with _opened(path) as stream:
            for number, n_cells, cells in _cells(stream, delimiter, header):
                if not cells:
                    header = True
                    continue
                first_line = first_line or cells
                first = places.setdefault(cells[0], len(places))
                most_cells = max(most_cells, n_cells)
                if len(cells) == 1:
                    continue
                sources.append(first)
                targets.append(places.setdefault(cells[1], len(places)))
                weights.append(_weight(cells, number, path))
    except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
        raise FileFormatError(f"{path} could not be read as text: {error}. Write it as UTF-8.") from error
    if not sources:
        raise FileFormatError(
            f"{path} contains no edges. Expected two names and possibly a weight per line, such as "
            f"'Ann,Bob,3'; pass --delimiter if the cells are separated by something else."
        )
    ends = np.frombuffer(sources, dtype=np.int64), np.frombuffer(targets, dtype=np.int64)
    edges = Edges(*ends, np.frombuffer(weights), tuple(places))
    notes: tuple[str, ...] = ()
    if header is None and len(sources) > 1:
        edges, notes = _without_headings(edges, first_line)
    if kind == "bipartite":
        edges = _apart(edges)
    adjacency, n_repeated = _joined(edges, duplicates, directed=kind == "directed")
    if n_repeated:
        done = "their weights were added" if duplicates == "sum" else "the largest weight counts"
        notes += (f"{n_repeated} pairs of nodes are in more than one line; {done}",)
    if most_cells:
        notes += (
            f"lines have up to {most_cells} cells; the first three were read as two names and a weight. A "
            "matrix is read from .mtx, .npz, .npy or .mat",
        )
    return EdgeList(adjacency, edges.names, notes)


def _opened(path: Path) -> IO[str]:
    if path.name.lower().endswith(".gz"):
        return open_gzip_text(path, "utf-8-sig", newline="")
    return path.open("r", encoding="utf-8-sig", newline="")


def _cells(
    stream: IO[str], delimiter: str | None, header: bool | None
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield every line that counts: its number, how many cells it has where these are many, and its cells."""
    # A line of headings has none.
    split: Any = None
    columns: list[int] | None = None
    for number, line in enumerate(stream, 1):
        if split is None:
            text = line.strip()
            if not text or text.startswith(COMMENTS):
                continue
            split, between_blanks = _splitter(text, delimiter)
            cells = split(text)
            if _is_heading(cells) if header is None else header:
                columns = _columns(text.split() if between_blanks else cells)
                if columns is not None and between_blanks:
                    split = str.split
                yield number, 0, []
                continue
            n_cells = len(text.split()) if between_blanks and "{" not in text else 0
            limit = n_cells if n_cells > MANY_CELLS else 0
        else:
            cells, limit = split(line), 0
        if cells and cells[0] and cells[0][0] not in COMMENTS:
            if columns is None:
                yield number, len(cells) if len(cells) > N_CELLS else limit, cells
            elif chosen := [cells[at] for at in takewhile(len(cells).__gt__, columns)]:
                yield number, 0, chosen


def _columns(headings: list[str]) -> list[int] | None:
    """Return where names and weights are, as the headings say; None for the first three columns."""
    found = [heading.strip('"').lower() for heading in headings]
    source, target, weight = (
        next((at for at, heading in enumerate(found) if heading in known), None)
        for known in (SOURCES, TARGETS, WEIGHTS)
    )
    if source is None or target is None:
        return None
    if weight is not None:
        return None if (source, target, weight) == (0, 1, 2) else [source, target, weight]
    third = found[2] if len(found) > N_CELLS - 1 else ""
    return None if (source, target) == (0, 1) and third not in NO_WEIGHTS else [source, target]


def _splitter(line: str, delimiter: str | None) -> tuple[Any, bool]:
    """Return what splits lines into cells, and whether blanks separate these."""
    if delimiter is None:
        # A dictionary of attributes has commas of its own.
        bare = line.partition("{")[0]
        delimiter = next((mark for mark in ("\t", ",", ";") if mark in bare), None)
    if delimiter is None or (delimiter.isspace() and delimiter != "\t"):
        return (lambda line: line.split(None, 2)), True
    mark = delimiter

    def split(line: str) -> list[str]:
        line = line.strip()
        if '"' in line:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=mark, skipinitialspace=True))]
        cells = [cell.strip() for cell in line.split(mark, 2 if "{" in line else -1)]
        return cells[:1] if cells[1:] == [""] else cells

    return split, False


def _is_heading(cells: list[str]) -> bool:
    third = cells[2].split() if len(cells) > 2 and not cells[2].startswith("{") else []
    return bool(third) and _number(third[0]) is None


def _without_headings(edges: Edges, cells: list[str]) -> tuple[Edges, tuple[str, ...]]:
    """Take the first line off the edges where its two names are headings, or say that they may be."""
    if len(cells) < 2 or (len(cells) > 2 and cells[2]):
        return edges, ()
    n_named = len(set(cells[:2]))
    elsewhere = min(edges.first[1:].min(initial=n_named), edges.second[1:].min(initial=n_named)) < n_named
    if elsewhere or any(_number(name) is not None for name in cells[:2]):
        return edges, ()
    known = {cell.strip('"').lower() for cell in cells[:2]} <= {*SOURCES, *TARGETS}
    if known or all(_number(name) is not None for name in edges.names[n_named:]):
        left = Edges(
            edges.first[1:] - n_named, edges.second[1:] - n_named, edges.weights[1:], edges.names[n_named:]
        )
        return left, ()
    return edges, (
        f"{cells[0]!r} and {cells[1]!r} of the first line are in no other line; pass --header if they are "
        "headings",
    )


def _weight(cells: list[str], number: int, path: Path) -> float:
    if len(cells) < 3 or not cells[2]:
        return 1.0
    text = cells[2].strip()
    if text.startswith("{"):
        found = ATTRIBUTE.search(text)
        value = 1.0 if found is None else _number(found[1])
    else:
        value = _number(text.split()[0])
    if value is None:
        raise FileFormatError(
            f"{path}, line {number}: the weight {text!r} is not a number. Expected two names and a number, "
            "or two names alone; pass --delimiter if the cells are separated by something else."
        )
    return value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _apart(edges: Edges) -> Edges:
    """Number the names of the first column and those of the second one after the other."""
    alone = np.setdiff1d(np.arange(len(edges.names)), np.concatenate([edges.first, edges.second]))
    rows = np.union1d(edges.first, alone)
    columns, second = np.unique(edges.second, return_inverse=True)
    names = tuple(edges.names[at] for at in (*rows, *columns))
    return Edges(np.searchsorted(rows, edges.first), len(rows) + second, edges.weights, names)


def _joined(edges: Edges, duplicates: str, *, directed: bool) -> tuple[SparseMatrix, int]:
    low, high, weights, n = edges.first, edges.second, edges.weights, len(edges.names)
    if not directed:
        low, high = np.minimum(low, high), np.maximum(low, high)
    unique, inverse = np.unique(low * n + high, return_inverse=True)
    if duplicates == "sum":
        joined = np.bincount(inverse, weights=weights, minlength=len(unique))
    else:
        joined = np.full(len(unique), -np.inf)
        np.maximum.at(joined, inverse, weights)
    rows, columns = unique // n, unique % n
    apart = rows != columns if not directed else np.zeros(len(rows), dtype=bool)
    places = np.concatenate([rows, columns[apart]]), np.concatenate([columns, rows[apart]])
    values = np.concatenate([joined, joined[apart]])
    adjacency = sp.csr_array(sp.coo_array((values, places), shape=(n, n)))
    return adjacency, int(np.count_nonzero(np.bincount(inverse) > 1))
