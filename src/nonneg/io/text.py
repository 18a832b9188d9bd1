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

Picked = tuple[list[int], int | None]
"""Positions of the features and of the labels among the columns, row names aside."""
_N_SAMPLED_LINES = 40
_N_SAMPLED_CHARACTERS = 2_000_000
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the entries and names; empty cells and NA become NaN."""
    # NumPy's compiled parser reads the entries; Python touches each line once, to take the row name off.
    delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    try:
        with _opened(path) as stream:
            layout = find_layout(_first_lines(stream), delimiter, options)
        if layout is None:
            raise FileFormatError(f"{path} contains no row of numbers. Expected one sample per line.")
        _check_header(layout, path)
        n_columns = layout.n_cells - layout.has_index
        picked = options.selection.places(layout.column_names, n_columns, str(path))
        return _read_with(layout, path, picked if options.selection else None)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path} is not text in UTF-8 (byte 0x{error.object[error.start]:02x} cannot be read). "
            "Save it as UTF-8."
        ) from error


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


def _read_with(layout: Layout, path: Path, picked: Picked | None) -> Contents:
    try:
        X, names, labels = _parse(path, layout, picked, fill=False)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        # Only files with absent entries pay for the second pass, which writes NaN into them.
        try:
            X, names, labels = _parse(path, layout, picked, fill=True)
        except UnicodeDecodeError:
            raise
        except ValueError:
            raise _first_fault(path, layout, picked, str(error)) from error
    row_names = names if layout.has_index else None
    if picked is None:
        return Contents(X, row_names, layout.column_names)
    (kept, label), columns = picked, layout.column_names
    label_name = None if label is None else str(label) if columns is None else columns[label]
    chosen = None if columns is None else [columns[at] for at in kept]
    return Contents(X, row_names, chosen, None if label is None else labels, label_name, selected=True)


def _parse(
    path: Path, layout: Layout, picked: Picked | None, *, fill: bool
) -> tuple[FloatArray, list[str], list[str]]:
    names: list[str] = []
    labels: list[str] = []
    with _opened(path) as stream:
        lines: Iterator[str] = itertools.islice(stream, layout.n_skipped, None)
        if picked is not None:
            lines = _checked_lines(lines, layout, picked[1], labels)
        rows = _rows(lines, layout, names, fill=fill)
        X = np.loadtxt(
            rows,
            delimiter=None if layout.delimiter == WHITESPACE else layout.delimiter,
            comments=None,
            quotechar='"',
            ndmin=2,
            usecols=None if picked is None else picked[0],
        )
    if picked is None and X.shape[1] != layout.n_cells - layout.has_index:
        # The sampled lines had another length than all the others together.
        raise ValueError("the rows have different lengths")
    return X, names, labels


def _checked_lines(
    lines: Iterator[str], layout: Layout, label: int | None, labels: list[str]
) -> Iterator[str]:
    """Yield lines whose label is appended to `labels`; NumPy does not count the cells it leaves out."""
    for line in lines:
        if not _is_blank(line):
            cells = split_cells(line, layout.delimiter)
            if len(cells) != layout.n_cells:
                raise ValueError("the rows have different lengths")
            if label is not None:
                labels.append(cells[label + layout.has_index])
        yield line


def line_of_row(path: Path, options: ReadOptions, row: int) -> int | None:
    """Return the number of the line that holds a row of the table, counted from 1."""
    delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    with _opened(path) as stream:
        layout = find_layout(_first_lines(stream), delimiter, options)
    if layout is None:
        return None
    with _opened(path) as stream:
        numbered = enumerate(stream, start=1)
        filled = (at for at, line in numbered if at > layout.n_skipped and not _is_blank(line))
        return next(itertools.islice(filled, row, None), None)


def _rows(lines: Iterator[str], layout: Layout, names: list[str], *, fill: bool) -> Iterator[str]:
    """Yield each row without its name, which is appended to `names`."""
    absent = _absent_entry(layout.delimiter) if fill else None
    for line in lines:
        if _is_blank(line):
            continue
        row = line
        if layout.has_index:
            name, row = _without_name(row, layout.delimiter)
            names.append(name)
        if layout.decimal_comma:
            row = row.replace(",", ".")
        if absent is not None:
            row = absent.sub("nan", row.rstrip("\r\n"))
        yield row


def _without_name(line: str, delimiter: str) -> tuple[str, str]:
    if delimiter == WHITESPACE:
        line = line.lstrip()
    if line.startswith('"') and (quoted := _QUOTED.match(line)):
        rest = line[quoted.end() :]
        return quoted[1].replace('""', '"'), rest.lstrip() if delimiter == WHITESPACE else rest.partition(
            delimiter
        )[2]
    if delimiter == WHITESPACE:
        name, *rest_of_line = line.split(None, 1)
        return name, "".join(rest_of_line)
    name, _, rest = line.partition(delimiter)
    return name.strip(), rest


def _absent_entry(delimiter: str) -> re.Pattern[str]:
    words = "|".join(map(re.escape, MISSING))
    if delimiter == WHITESPACE:
        return re.compile(rf'(?<!\S)"?(?:{words})"?(?!\S)')
    edge = re.escape(delimiter)
    return re.compile(rf'(?<![^{edge}]) *"? *(?:{words}|) *"? *(?![^{edge}])')


def _first_fault(path: Path, layout: Layout, picked: Picked | None, reason: str) -> FileFormatError:
    """Find the first row of another length, or in every column the first cell that is not a number."""
    faults: dict[int, tuple[int, str]] = {}
    with _opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            if number <= layout.n_skipped or _is_blank(line):
                continue
            cells = split_cells(line, layout.delimiter)
            if len(cells) != layout.n_cells:
                if faults:
                    break
                return FileFormatError(
                    f"{path}, line {number}: expected {layout.n_cells} cells, got {len(cells)}. "
                    "The file may be truncated, or a cell may contain the delimiter without quotes."
                )
            used = range(layout.n_cells - layout.has_index) if picked is None else picked[0]
            for column in (at + layout.has_index for at in used):
                cell = cells[column]
                if not is_missing(cell) and not is_number(cell, decimal_comma=layout.decimal_comma):
                    faults.setdefault(column, (number, cell))
    if not faults:
        return FileFormatError(f"{path} could not be read as a table of numbers: {reason}")
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
