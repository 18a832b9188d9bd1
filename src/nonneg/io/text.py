"""Reader of .csv and .tsv, plain or compressed, with or without header and index column."""

from __future__ import annotations

import csv
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import FileFormatError
from nonneg.io.limits import open_gzip_text
from nonneg.io.table import Contents, ReadOptions

_N_SAMPLED_LINES = 40
_N_SAMPLED_CHARACTERS = 2_000_000


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the entries and names; empty cells and NA become NaN."""
    try:
        layout = _layout_of(path, options)
        if layout is None:
            raise FileFormatError(f"{path} contains no row of numbers. Expected one sample per line.")
        _check_header(layout, path)
        columns = layout.column_names
        features, label = options.selection.places(columns, layout.n_cells - layout.has_index, str(path))
        X, names, labels = _parsed(path, layout, features, label)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path} is not text in UTF-8 (byte 0x{error.object[error.start]:02x} cannot be read). "
            "Save it as UTF-8."
        ) from error
    label_name = None if label is None else str(label) if columns is None else columns[label]
    chosen = None if columns is None else [columns[at] for at in features]
    return Contents(X, names or None, chosen, labels or None, label_name, selected=True)


def _layout_of(path: Path, options: ReadOptions) -> Layout | None:
    delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with _opened(path) as stream:
        return find_layout(_first_lines(stream), delimiter, options)


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return open_gzip_text(path, "utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _first_lines(stream: IO[str]) -> list[tuple[int, str]]:
    """Take the first lines that are not blank, with their numbers."""
    sampled: list[tuple[int, str]] = []
    n_characters = 0
    for number, line in enumerate(stream, start=1):
        if not _is_blank(line):
            sampled.append((number, line))
            n_characters += len(line)
        if len(sampled) >= _N_SAMPLED_LINES or (len(sampled) >= 5 and n_characters > _N_SAMPLED_CHARACTERS):
            break
    return sampled


def _is_blank(line: str) -> bool:
    return not line.strip(" \r\n")


def _check_header(layout: Layout, path: Path) -> None:
    n_columns = layout.n_cells - layout.has_index
    if n_columns == 0:
        raise FileFormatError(
            f"{path} contains a single column, which was read as row names. Pass index=False (--no-index) "
            f"if it contains numbers."
        )
    if layout.column_names is not None and len(layout.column_names) != n_columns:
        raise FileFormatError(
            f"{path}, line {layout.n_skipped}: the header names {len(layout.column_names)} columns, but the "
            f"rows below have {n_columns}. Make the two agree, or pass header=False (--no-header)."
        )


def _parsed(
    path: Path, layout: Layout, features: list[int], label: int | None
) -> tuple[FloatArray, list[str], list[str]]:
    """Return the entries, the names of the rows and their labels."""
    names: list[str] = []
    labels: list[str] = []
    rows: list[FloatArray] = []
    faults: dict[int, tuple[int, str]] = {}  # in every column the first cell that is not a number
    first = int(layout.has_index)
    whole = features == list(range(layout.n_cells - first))
    for number, line in _numbered_rows(path, layout):
        cells = split_cells(line, layout.delimiter)
        if len(cells) != layout.n_cells:
            if faults:
                break
            raise FileFormatError(
                f"{path}, line {number}: expected {layout.n_cells} cells, got {len(cells)}. "
                "The file may be truncated, or a cell may contain the delimiter without quotes."
            )
        names += cells[:first]
        if label is not None:
            labels.append(cells[label + first])
        entries = cells[first:] if whole else [cells[at + first] for at in features]
        if layout.decimal_comma:
            entries = [cell.replace(",", ".") for cell in entries]
        try:
            # NumPy's compiled parser, which takes 1_000 for a thousand.
            if "_" in line and any("_" in cell for cell in entries):
                raise ValueError
            rows.append(np.array(entries, dtype=np.float64))
        except ValueError:
            for at, cell in zip(features, entries, strict=True):
                if not is_missing(cell) and not is_number(cell):
                    faults.setdefault(at + first, (number, cells[at + first]))
            if not faults:
                rows.append(np.array([np.nan if is_missing(cell) else float(cell) for cell in entries]))
    if faults:
        raise _bad_cells(path, layout, faults)
    if not rows:
        raise FileFormatError(f"{path} contains no row of numbers. Expected one sample per line.")
    return np.stack(rows), names, labels


def _numbered_rows(path: Path, layout: Layout) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a row of the table, with their numbers."""
    with _opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            if number > layout.n_skipped and not _is_blank(line):
                yield number, line


def line_of_row(path: Path, options: ReadOptions, row: int) -> int | None:
    """Return the number of the line that holds a row of the table, counted from 1."""
    layout = _layout_of(path, options)
    if layout is None:
        return None
    return next((number for number, _ in itertools.islice(_numbered_rows(path, layout), row, None)), None)


def _bad_cells(path: Path, layout: Layout, faults: dict[int, tuple[int, str]]) -> FileFormatError:
    if len(faults) == 1 or layout.column_names is None:
        column, (number, cell) = next(iter(faults.items()))
        return _bad_cell(path, layout, number, column, cell)
    names = [layout.column_names[column - layout.has_index] for column in sorted(faults)]
    cells = [
        f"{name!r} (line {number}: {cell[:40]!r})"
        for name, (_, (number, cell)) in zip(names, sorted(faults.items()), strict=True)
    ]
    return FileFormatError(
        f"{path} has {len(names)} columns with cells that are not numbers: {', '.join(cells)}. Leave them "
        f"out with --drop {shlex.quote(','.join(names))}, or compare the components with one of them using "
        "--label-column."
    )


def _bad_cell(path: Path, layout: Layout, line: int, column: int, cell: str) -> FileFormatError:
    shown = cell if len(cell) <= 40 else f"{cell[:37]}..."
    name = "" if layout.column_names is None else f" ({layout.column_names[column - layout.has_index]!r})"
    # Names stand in the first column and the first line alone.
    remedies = {
        (True, False): "If it is a name, pass index=True (--index).",
        (False, True): "If it is a name, pass header=True (--header).",
        (True, True): "If it is a name, pass header=True (--header) or index=True (--index).",
    }
    at = (column == 0, line == layout.n_skipped + 1 and layout.column_names is None)
    column_name = str(column) if not name else layout.column_names[column - layout.has_index]  # type: ignore[index]
    remedy = remedies.get(
        at,
        f"If its column contains text, leave it out with --drop {column_name}, or compare the components "
        f"with it using --label-column {column_name}.",
    )
    return FileFormatError(
        f"{path}, line {line}, column {column + 1}{name}: expected a number, got {shown!r}. "
        "Correct the cell, or leave it empty where missing entries are allowed (`NMF` with missing='mask', "
        f"`nonneg fit --missing mask`). {remedy}"
    )


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
