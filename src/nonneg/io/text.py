"""Reader of .csv and .tsv, plain or compressed, with or without header and index column."""

from __future__ import annotations

import csv
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import numpy as np

from nonneg.exceptions import FileFormatError
from nonneg.io.limits import open_gzip_text
from nonneg.io.table import ReadOptions, Table

MISSING = frozenset({"", "na", "n/a", "#n/a", "null", "none", "-nan"})
"""What marks a missing entry, in small letters, besides NaN."""
WHITESPACE = " "
"""As a delimiter: any run of blanks."""

_N_SAMPLED_LINES = 40
_N_SAMPLED_CHARACTERS = 2_000_000
_INDEX_NAMES = frozenset({"", "index", "id", "row", "rownames", "row_names", "unnamed: 0"})
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b.*")


@dataclass(frozen=True)
class Layout:
    """Where the entries and the names of a text table are."""

    delimiter: str  # what separates cells
    decimal_comma: bool  # whether numbers are written as ``1,5``
    n_skipped: int  # lines before the first row of entries
    column_names: tuple[str, ...] | None  # from the header, without the name of the index column
    has_index: bool  # whether the first column holds row names
    n_cells: int  # cells a row, the name among them


def read(path: Path, options: ReadOptions) -> Table:
    """Read the entries and names; empty cells and NA become NaN."""
    try:
        delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
        with _opened(path) as stream:
            layout = _find_layout(_first_lines(stream), delimiter, options)
        return _parsed(path, layout, options) if layout else _no_rows(path)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path} is not text in UTF-8 (byte 0x{error.object[error.start]:02x} cannot be read). "
            "Save it as UTF-8."
        ) from error


def _no_rows(path: Path) -> NoReturn:
    raise FileFormatError(f"{path} contains no row of numbers. Expected one sample per line.")


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return open_gzip_text(path, "utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _first_lines(stream: IO[str]) -> list[str]:
    sampled: list[str] = []
    for line in itertools.islice(stream, _N_SAMPLED_LINES):
        sampled.append(line)
        if len(sampled) >= 5 and sum(map(len, sampled)) > _N_SAMPLED_CHARACTERS:
            break
    return sampled


def _rows(lines: Iterable[str], delimiter: str, n_before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of every line that is not blank, with its number; cells in quotes may have several."""
    if delimiter == WHITESPACE:
        lines = (" ".join(line.split()) for line in lines)
    reader = csv.reader(lines, delimiter=delimiter)
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip(" ")):
            yield n_before + reader.line_num, cells


def _number(cell: str, *, decimal_comma: bool = False) -> float | None:
    """Return the number in a cell, NaN for a missing one; None for anything else."""
    cell = cell.strip()
    if cell.lower() in MISSING:
        return np.nan
    if decimal_comma:
        cell = cell.replace(",", ".")
    elif _THOUSANDS.fullmatch(cell):
        cell = cell.replace(",", "")
    try:
        return None if "_" in cell else float(cell)  # Python alone reads 1_000 as a thousand
    except ValueError:
        return None


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


def _parsed(path: Path, layout: Layout, options: ReadOptions) -> Table:
    _check_header(layout, path)
    columns, first = layout.column_names, int(layout.has_index)
    features, label = options.selection.places(columns, layout.n_cells - first, str(path))
    whole = features == list(range(layout.n_cells - first))
    names: list[str] = []
    labels: list[str] = []
    numbers: list[int] = []
    entries: list[np.ndarray] = []
    faults: dict[int, tuple[int, str]] = {}  # in every column the first cell that is not a number
    with _opened(path) as stream:
        body = itertools.islice(stream, layout.n_skipped, None)
        for number, cells in _rows(body, layout.delimiter, layout.n_skipped):
            if len(cells) != layout.n_cells:
                if faults:
                    break
                raise FileFormatError(
                    f"{path}, line {number}: expected {layout.n_cells} cells, got {len(cells)}. "
                    "The file may be truncated, or a cell may contain the delimiter without quotes."
                )
            row = cells[first:] if whole else [cells[at + first] for at in features]
            try:
                if layout.decimal_comma or "_" in "".join(row):
                    raise ValueError
                values = np.fromiter(map(float, row), np.float64, len(row))
            except ValueError:
                found = [_number(cell, decimal_comma=layout.decimal_comma) for cell in row]
                for at, cell, value in zip(features, row, found, strict=True):
                    if value is None:
                        faults.setdefault(at + first, (number, cell.strip()))
                values = np.array(found, dtype=np.float64)  # None becomes NaN
            if not faults:
                entries.append(values)
                numbers.append(number)
                names += [cell.strip() for cell in cells[:first]]
                labels += [] if label is None else [cells[label + first].strip()]
    if faults:
        raise _bad_cells(path, layout, dict(sorted(faults.items())))
    if not entries:
        return _no_rows(path)
    return Table(
        np.stack(entries),
        names or None,
        None if columns is None else [columns[at] for at in features],
        labels=labels or None,
        label_name=None if label is None else str(label) if columns is None else columns[label],
        lines=numbers,
    )


def _bad_cells(path: Path, layout: Layout, faults: dict[int, tuple[int, str]]) -> FileFormatError:
    """Name all columns with cells that are not numbers, and what to do with them."""
    names = None if layout.column_names is None else ["", *layout.column_names][not layout.has_index :]
    called = {at: str(at) if names is None else names[at] for at in faults}
    dropped = shlex.quote(",".join(called.values()))
    cells = []
    for at, (line, cell) in faults.items():
        name = "" if names is None else f" ({called[at]!r})"
        date = ", a date" if _DATE.fullmatch(cell) else ""
        cell = cell if len(cell) <= 40 else f"{cell[:37]}..."
        cells.append(f"line {line}, column {at + 1}{name}: expected a number, got {cell!r}{date}")
    # Names stand in the first column and the first line alone.
    first_line = names is None and any(line == layout.n_skipped + 1 for line, _ in faults.values())
    remedies = ["header=True (--header)"] * first_line + ["index=True (--index)"] * (0 in faults)
    remedy = f" If it is a name, pass {' or '.join(remedies)}." if remedies else ""
    return FileFormatError(
        f"{path}, {'; '.join(cells)}. Correct the cell, or leave it empty where missing entries are allowed "
        "(`NMF` with missing='mask', `nonneg fit --missing mask`). If its column contains text, leave it out "
        f"with --drop {dropped}, or compare the components with it using --label-column.{remedy}"
    )


def _find_layout(lines: Sequence[str], suffix_delimiter: str, options: ReadOptions) -> Layout | None:
    """Decide the layout from the first lines of a file."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    n_before = next((at for at in filled if not lines[at].startswith("#")), len(lines))
    table, comments = lines[n_before:], [lines[at] for at in filled if at < n_before]
    if not table:
        return None
    delimiter = options.delimiter or _find_delimiter(table, suffix_delimiter)
    numbered = list(_rows(table, delimiter, n_before))
    rows = [[cell.strip() for cell in cells] for _, cells in numbered]
    decimal_comma = delimiter != "," and _has_decimal_commas(rows, delimiter)

    def is_text(cell: str) -> bool:
        return _number(cell, decimal_comma=decimal_comma) is None

    n_cells = _usual_length(rows[1:] or rows, preferred=len(rows[0]))
    header: list[str] | None = None
    n_skipped = n_before
    if comments and options.header is not False:
        # numpy.savetxt writes names behind a hash sign; other comments have another length.
        _, cells = next(_rows([comments[-1].lstrip("# ")], delimiter, 0), (0, []))
        header = [cell.strip() for cell in cells] if len(cells) == n_cells > 1 else None
    if header is None and (
        options.header is True or (options.header == "auto" and _looks_like_header(rows, n_cells, is_text))
    ):
        header, rows, n_skipped = rows[0], rows[1:], numbered[0][0]
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
        names = _unique(header[1:] if has_index and len(header) == n_cells else header)
    return Layout(delimiter, decimal_comma, n_skipped, names, has_index, n_cells)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    """Number names that occur more than once, as pandas does: sales, sales.1, sales.2."""
    unique: dict[str, None] = {}
    for name in names:
        different, number = name, 0
        while different in unique:
            number += 1
            different = f"{name}.{number}"
        unique[different] = None
    return tuple(unique)


def _usual_length(rows: Sequence[Sequence[str]], preferred: int = 0) -> int:
    """Return the length of most rows; of several that are as frequent the preferred one, or the first."""
    counts = Counter(map(len, rows))
    return max(counts, key=lambda length: (counts[length], length == preferred))


def _find_delimiter(lines: Sequence[str], suffix_delimiter: str) -> str:
    best, best_score = suffix_delimiter, 0.0
    for candidate in dict.fromkeys([suffix_delimiter, ",", "\t", ";", "|", WHITESPACE]):
        rows = [cells for _, cells in _rows(lines, candidate, 0)]
        rows = rows[1:] or rows
        length = _usual_length(rows)
        if length < 2:
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(_number(cell, decimal_comma=candidate != ",") is not None for cell in cells)
        agreeing = sum(len(row) == length for row in rows)
        # The ending of the file is right unless the lines clearly say otherwise.
        score = (
            (numbers / len(cells)) * (agreeing / len(rows)) * (1.2 if candidate == suffix_delimiter else 1.0)
        )
        if score > best_score:
            best, best_score = candidate, score
    return best


def _has_decimal_commas(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    cells = [cell for row in rows for cell in row]
    with_comma = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    if not with_comma or any("." in cell and _number(cell) is not None for cell in cells):
        return False
    # 1,234 is a thousand and more where nothing else says otherwise; semicolons come with decimal commas.
    return delimiter == ";" or not all(map(_THOUSANDS.fullmatch, with_comma))


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
