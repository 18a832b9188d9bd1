"""Edge lists in text: two names and possibly a weight a line."""

from __future__ import annotations

import csv
import gzip
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.exceptions import FileFormatError

DUPLICATES = ("sum", "max")
COMMENTS = ("#", "%")
# Two names and a weight; further cells, such as times, are not read.
N_CELLS = 3
HEADINGS = frozenset(
    {"source", "target", "from", "to", "src", "dst", "node1", "node2", "node_1", "node_2", "u", "v", "weight"}
)
# networkx writes attributes as a dictionary.
ATTRIBUTE = re.compile(r"""['"]weight['"]\s*:\s*([-+.\deE]+)""")


class EdgeList(NamedTuple):
    """An undirected graph from a list of edges.

    Attributes
    ----------
    adjacency : sparse array of shape (n_nodes, n_nodes)
        CSR, symmetric.
    names : tuple of str
        Names of the nodes in the order in which they first appear.
    notes : tuple of str
        What a person should know: how many pairs came more than once, and cells that were not read.
    """

    adjacency: SparseMatrix
    names: tuple[str, ...]
    notes: tuple[str, ...]


def read_edge_list(
    path: Path, *, delimiter: str | None = None, header: bool | None = None, duplicates: str = "sum"
) -> EdgeList:
    """Read an edge list.

    Parameters
    ----------
    path : Path
        Text, compressed where it ends in .gz. Empty lines and those that begin with # or % are left out. A
        line with one name is a node without an edge.
    delimiter : str, optional
        What separates the cells; None takes a tab, comma or semicolon where the first line has one, and
        blanks otherwise.
    header : bool, optional
        Whether the first line holds headings; None looks at it.
    duplicates : {"sum", "max"}
        What becomes of several lines about one pair, in either order.

    Returns
    -------
    EdgeList
        Every line is an undirected edge of its weight, 1 where there is none.

    Raises
    ------
    FileFormatError
        If a line has a weight that is no number, or nothing is left.
    """
    places: dict[str, int] = {}
    most_cells = 0
    sources, targets, weights = array("q"), array("q"), array("d")
    try:
        with _opened(path) as stream:
            for number, cells in _cells(stream, delimiter, header):
                first = places.setdefault(cells[0], len(places))
                most_cells = max(most_cells, len(cells))
                if len(cells) == 1:
                    continue
                sources.append(first)
                targets.append(places.setdefault(cells[1], len(places)))
                weights.append(_weight(cells, number, path))
    except (UnicodeDecodeError, EOFError, OSError, csv.Error) as error:
        raise FileFormatError(f"{path} could not be read as text: {error}. Write it as UTF-8.") from error
    if not sources:
        raise FileFormatError(
            f"{path} holds no edges. Two names and possibly a weight a line were expected, such as "
            "'Ann,Bob,3'."
        )
    pairs = np.frombuffer(sources, dtype=np.int64), np.frombuffer(targets, dtype=np.int64)
    adjacency, n_repeated = _joined(*pairs, np.frombuffer(weights), len(places), duplicates)
    notes: tuple[str, ...] = ()
    if n_repeated:
        done = "their weights were added" if duplicates == "sum" else "the largest weight counts"
        notes = (f"{n_repeated} pairs of nodes are in more than one line; {done}",)
    if most_cells > N_CELLS:
        notes += (
            f"lines hold up to {most_cells} cells; the first three were read as two names and a weight. A "
            "matrix is read from .mtx, .npz, .npy or .mat",
        )
    return EdgeList(adjacency, tuple(places), notes)


def _opened(path: Path) -> IO[str]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("r", encoding="utf-8-sig", newline="")


def _cells(stream: IO[str], delimiter: str | None, header: bool | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of every line that counts."""
    split: Any = None
    for number, line in enumerate(stream, 1):
        if split is None:
            text = line.strip()
            if not text or text.startswith(COMMENTS):
                continue
            split = _splitter(text, delimiter)
            cells = split(text)
            if _is_heading(cells) if header is None else header:
                continue
        else:
            cells = split(line)
        if cells and cells[0] and cells[0][0] not in COMMENTS:
            yield number, cells


def _splitter(line: str, delimiter: str | None) -> Any:
    if delimiter is None:
        # A dictionary of attributes has commas of its own.
        bare = line.partition("{")[0]
        delimiter = next((mark for mark in ("\t", ",", ";") if mark in bare), None)
    if delimiter is None or (delimiter.isspace() and delimiter != "\t"):
        return lambda line: line.split(None, 2)
    mark = delimiter

    def split(line: str) -> list[str]:
        line = line.strip()
        if '"' in line:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=mark, skipinitialspace=True))]
        cells = [cell.strip() for cell in line.split(mark, 2 if "{" in line else -1)]
        return cells[:1] if cells[1:] == [""] else cells

    return split


def _is_heading(cells: list[str]) -> bool:
    if len(cells) >= 2 and {cell.strip('"').lower() for cell in cells[:2]} <= HEADINGS:
        return True
    return len(cells) > 2 and not cells[2].startswith("{") and _number(cells[2].split()[0]) is None


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
            f"{path}, line {number}: the weight {text!r} is no number. Expected two names and a number, or "
            "two names alone; say --delimiter if the cells are separated by something else."
        )
    return value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _joined(
    first: IntArray, second: IntArray, weights: FloatArray, n: int, duplicates: str
) -> tuple[SparseMatrix, int]:
    low, high = np.minimum(first, second), np.maximum(first, second)
    keys = low * n + high
    unique, inverse = np.unique(keys, return_inverse=True)
    if duplicates == "sum":
        joined = np.bincount(inverse, weights=weights, minlength=len(unique))
    else:
        joined = np.full(len(unique), -np.inf)
        np.maximum.at(joined, inverse, weights)
    rows, columns = unique // n, unique % n
    apart = rows != columns
    places = np.concatenate([rows, columns[apart]]), np.concatenate([columns, rows[apart]])
    values = np.concatenate([joined, joined[apart]])
    adjacency = sp.csr_array(sp.coo_array((values, places), shape=(n, n)))
    return adjacency, int(np.count_nonzero(np.bincount(inverse) > 1))
