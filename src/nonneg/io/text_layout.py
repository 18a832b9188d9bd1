"""How a text table is laid out, decided from its first lines: delimiter, decimal sign, header, index."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nonneg.io.table import ReadOptions

MISSING = ("NA", "N/A", "#N/A", "NULL", "null", "None", "none")
"""What marks a missing entry, besides the empty cell and every spelling of NaN."""

WHITESPACE = " "
"""As a delimiter: any run of blanks."""

_INDEX_NAMES = frozenset({"", "index", "id", "row", "rownames", "row_names", "unnamed: 0"})
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Layout:
    """Where the entries and the names of a text table are."""

    delimiter: str  # what separates cells
    decimal_comma: bool  # whether numbers are written as ``1,5``
    n_skipped: int  # lines before the first row of entries
    column_names: tuple[str, ...] | None  # from the header, without the name of the index column
    has_index: bool  # whether the first column holds row names
    n_cells: int  # cells a row, the name among them


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a line, minding quotes."""
    line = line.rstrip("\r\n")
    if delimiter == WHITESPACE:
        line = re.sub(r"\s+", " ", line.strip())
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [""])]


def is_missing(cell: str) -> bool:
    """Say whether a cell stands for an absent entry."""
    return not cell or cell in MISSING


def is_number(cell: str, *, decimal_comma: bool = False) -> bool:
    """Say whether a cell holds a number, NaN among them."""
    try:
        float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a thousand; no other program does


def find_layout(
    numbered: Sequence[tuple[int, str]], suffix_delimiter: str, options: ReadOptions
) -> Layout | None:
    """Decide the layout from the first lines of a file."""
    n_comments = next(
        (at for at, (_, line) in enumerate(numbered) if not line.startswith("#")), len(numbered)
    )
    comments, table = numbered[:n_comments], numbered[n_comments:]
    if not table:
        return None
    lines = [line for _, line in table]
    delimiter = options.delimiter or _find_delimiter(lines, suffix_delimiter)
    rows = [split_cells(line, delimiter) for line in lines]
    decimal_comma = delimiter != "," and _has_decimal_commas(rows)

    def is_text(cell: str) -> bool:
        return not is_missing(cell) and not is_number(cell, decimal_comma=decimal_comma)

    n_cells = _usual_length(rows[1:] or rows, preferred=len(rows[0]))
    header: list[str] | None = None
    n_skipped = table[0][0] - 1
    if comments and options.header is not False:
        header = _commented_header(comments[-1][1], delimiter, n_cells)
    if header is None and (
        options.header is True or (options.header == "auto" and _looks_like_header(rows, n_cells, is_text))
    ):
        header, rows = rows[0], rows[1:]
        n_skipped = table[0][0]
    if not rows:
        return None
    # A column that the caller speaks of is no column of row names.
    mentioned = header is not None and len(header) == n_cells and options.selection.names(header[0])
    has_index = options.index is True or (
        options.index == "auto" and not mentioned and _looks_like_index(header, rows, n_cells, is_text)
    )
    names = None
    if header is not None:
        # R writes no name over the index column, so that its header is one cell shorter.
        names = tuple(header[1:] if has_index and len(header) == n_cells else header)
    return Layout(delimiter, decimal_comma, n_skipped, names, has_index, n_cells)


def _usual_length(rows: Sequence[Sequence[str]], preferred: int = 0) -> int:
    """Return the length of most rows; of several that are as frequent the preferred one, or the first."""
    counts = Counter(map(len, rows))
    return max(counts, key=lambda length: (counts[length], length == preferred))


def _find_delimiter(lines: Sequence[str], suffix_delimiter: str) -> str:
    body = lines[1:] or lines
    best, best_score = suffix_delimiter, 0.0
    for candidate in dict.fromkeys([suffix_delimiter, ",", "\t", ";", "|", WHITESPACE]):
        rows = [split_cells(line, candidate) for line in body]
        length = _usual_length(rows)
        if length < 2:
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(is_number(cell, decimal_comma=candidate != ",") or is_missing(cell) for cell in cells)
        agreeing = sum(len(row) == length for row in rows)
        # The ending of the file is right unless the lines clearly say otherwise.
        score = (
            (numbers / len(cells)) * (agreeing / len(rows)) * (1.2 if candidate == suffix_delimiter else 1.0)
        )
        if score > best_score:
            best, best_score = candidate, score
    return best


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell for row in rows for cell in row]
    return any(map(_DECIMAL_COMMA.fullmatch, cells)) and not any(
        "." in cell and is_number(cell) for cell in cells
    )


def _commented_header(line: str, delimiter: str, n_cells: int) -> list[str] | None:
    """Read the names that numpy.savetxt writes behind a hash sign; other comments have another length."""
    cells = split_cells(line.lstrip("# "), delimiter)
    return cells if len(cells) == n_cells and n_cells > 1 else None


def _looks_like_header(rows: Sequence[Sequence[str]], n_cells: int, is_text: Callable[[str], bool]) -> bool:
    first, rest = rows[0], rows[1:]
    if rest and len(first) == n_cells - 1:
        return True
    cells = first[1:] if len(first) > 1 else first
    # One wrong cell in a first row of entries must stay an error, so that half of the cells are asked for.
    if 2 * sum(map(is_text, cells)) >= len(cells):
        return True
    if rest and first[0] == "" and not any(row[0] == "" for row in rest):
        return True
    return (
        len(cells) >= 4
        and len(rest) >= 3
        and _counts_up(cells)
        and not any(_counts_up(row[1:]) for row in rest)
    )


def _counts_up(cells: Sequence[str]) -> bool:
    """Say whether cells are integers in steps of one: years, or the numbers pandas gives to columns."""
    if not all(map(str.isdecimal, cells)):
        return False
    return all(int(after) == int(before) + 1 for before, after in itertools.pairwise(cells))


def _looks_like_index(
    header: Sequence[str] | None, rows: Sequence[Sequence[str]], n_cells: int, is_text: Callable[[str], bool]
) -> bool:
    if n_cells < 2:
        return False
    if header is not None and (len(header) == n_cells - 1 or header[0].lower() in _INDEX_NAMES):
        return True
    return 2 * sum(is_text(row[0]) for row in rows) > len(rows)
