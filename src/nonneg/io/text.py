"""Reader of .csv, .tsv and .txt, plain or compressed, with or without header and index column."""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import mode
from typing import IO, TypeAlias

import numpy as np

from nonneg.exceptions import FileFormatError
from nonneg.io.limits import open_text
from nonneg.io.table import ReadOptions, Table

MISSING = frozenset({"", "na", "n/a", "#n/a", "null", "none", "-nan"})
"""Marks of a missing entry, in small letters, besides NaN."""
WHITESPACE = " "
"""As a delimiter: any run of blanks."""
Parser: TypeAlias = Callable[[str], float | None]

_N_SAMPLED_LINES = 20
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_DATE = re.compile(r"(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([-/.])\d\d?\3\d{4})\b")
_INDEX_NAMES = frozenset({"", "index", "id", "row", "rownames", "row_names", "unnamed: 0"})


def read(path: Path, options: ReadOptions) -> Table:
    """Read the entries and names; empty cells and NA become NaN."""
    usual_delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    try:
        with open_text(path, "utf-8-sig") as stream:
            return _read(stream, usual_delimiter, options, path)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"{path} is not text in UTF-8 (byte 0x{error.object[error.start]:02x} cannot be read). "
            "Save it as UTF-8."
        ) from error


def _read(stream: IO[str], usual_delimiter: str, options: ReadOptions, path: Path) -> Table:
    """Decide from the first lines where entries and names are, then read all of them."""
    lines = list(islice(stream, _N_SAMPLED_LINES))
    filled = [at for at, line in enumerate(lines) if line.strip()]
    # Excel may say in the first line which delimiter follows.
    n_before = next((at for at in filled if not lines[at].startswith(("#", "sep="))), len(lines))
    delimiter = options.delimiter or _find_delimiter(lines[n_before:], usual_delimiter)
    rows = _rows(chain(lines[n_before:], stream), delimiter, n_before)
    numbered = list(islice(rows, _N_SAMPLED_LINES))
    if not numbered:
        raise _no_rows(path)
    sampled = [[cell.strip() for cell in cells] for _, cells in numbered]
    # Where semicolons separate cells, commas stand before decimals; elsewhere 1,234 is a thousand and more.
    parse = partial(_number, decimal_comma=delimiter == ";")
    n_cells, header = _usual_length(sampled), None
    if options.header is not False:
        # numpy.savetxt writes names behind a hash sign; other comments have another length.
        comments = [lines[at].lstrip("# ") for at in filled if at < n_before and lines[at][0] == "#"]
        for _, cells in _rows(comments[-1:], delimiter, 0):
            header = [cell.strip() for cell in cells] if len(cells) == n_cells > 1 else None
        wanted = options.header is True or _looks_like_header(sampled, n_cells, parse)
        if header is None and wanted:
            header, sampled, numbered = sampled[0], sampled[1:], numbered[1:]
    # A column that the caller speaks of is no column of row names.
    named = (*options.mentioned, *options.known)
    mentioned = header is not None and len(header) == n_cells and header[0] in named
    has_index = options.index is True or (
        options.index == "auto" and not mentioned and _looks_like_index(header, sampled, n_cells, parse)
    )
    if header is not None:
        # R writes no name over the index column, so that its header is one cell shorter.
        header = _unique(header[1:] if has_index and len(header) == n_cells else header)
        if len(header) != n_cells - has_index:
            raise FileFormatError(
                f"{path}: the header names {len(header)} columns, but the rows below have "
                f"{n_cells - has_index}. Make the two agree, or pass header=False (--no-header)."
            )
    if n_cells == has_index:
        raise FileFormatError(
            f"{path} contains a single column, which was read as row names. Pass index=False (--no-index) "
            f"if it contains numbers."
        )
    return _entries(chain(numbered, rows), n_cells, has_index, header, parse, options, path)


def _entries(
    rows: Iterable[tuple[int, list[str]]], n_cells: int, has_index: bool, header: list[str] | None,
    parse: Parser, options: ReadOptions, path: Path,
) -> Table:  # fmt: skip
    """Read the rows of a table whose layout is known."""
    first = int(has_index)
    features, label = options.places(header, n_cells - first, str(path))
    whole = len(features) == n_cells - first
    names: list[str] = []
    labels: list[str] = []
    numbers: list[int] = []
    entries: list[np.ndarray] = []
    bad: dict[int, tuple[int, str]] = {}  # the first cell of a column that is no number, and its line
    for number, cells in rows:
        if len(cells) != n_cells:
            raise FileFormatError(
                f"{path}, line {number}: expected {n_cells} cells, got {len(cells)}. "
                "The file may be truncated, or a cell may contain the delimiter without quotes."
            )
        row = cells[first:] if whole else [cells[at + first] for at in features]
        try:
            if "_" in "".join(row):
                raise ValueError
            values = np.fromiter(map(float, row), np.float64, len(row))
        except ValueError:
            parsed = [parse(cell) for cell in row]
            for at, value in zip(features, parsed, strict=True):
                if value is None:
                    bad.setdefault(at + first, (number, cells[at + first].strip()))
            values = np.array(parsed, dtype=np.float64)
        entries.append(values)
        numbers.append(number)
        names += [cell.strip() for cell in cells[:first]]
        labels += [] if label is None else [cells[label + first].strip()]
    if bad and header and options.known and not set(header) & set(options.known):
        raise FileFormatError(f"{path} has no feature of the model, such as {options.known[0]!r}.")
    if len(bad) == len(features) > 1 and len({line for line, _ in bad.values()}) == 1:
        line = min(bad.values())[0]
        raise FileFormatError(f"{path}, line {line}: no cell is a number. Remove units; names need --header.")
    if bad:
        raise _bad_columns(path, bad, header, has_index)
    if not entries:
        raise _no_rows(path)
    return Table(
        np.stack(entries),
        names or None,
        None if header is None else [header[at] for at in features],
        labels=labels or None,
        label_name=None if label is None else str(label) if header is None else header[label],
        lines=numbers,
    )


def _no_rows(path: Path) -> FileFormatError:
    return FileFormatError(f"{path} contains no row of numbers. Expected one sample per line.")


def _bad_columns(
    path: Path, bad: dict[int, tuple[int, str]], header: list[str] | None, has_index: bool
) -> FileFormatError:
    """Name every column with a cell that is not a number, and what to do with them."""
    names = None if header is None else ["", *header][not has_index :]
    columns = [str(at) if names is None else names[at] for at in bad]
    listing = "; ".join(
        f"line {line}, column {at + 1}{'' if names is None else f' ({name!r})'}: expected a number, got "
        f"{'the date ' if _DATE.match(cell) else ''}{cell[:40]!r}"
        for name, (at, (line, cell)) in zip(columns, bad.items(), strict=True)
    )
    unnamed = " Names in the first line or column need header=True (--header) or index=True (--index)."
    return FileFormatError(
        f"{path}: {listing}. Leave columns of text out with --drop {shlex.quote(','.join(columns))}; "
        "--label-column or --group-by takes one of known classes. Correct a single wrong cell, or leave it "
        f"empty and ignore it (missing='mask', --missing mask).{unnamed * (names is None)}"
    )


def _rows(lines: Iterable[str], delimiter: str, n_before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of every line that is not blank, with its number; cells in quotes may have several."""
    if delimiter == WHITESPACE:
        lines = (" ".join(line.split()) for line in lines)
    reader = csv.reader(lines, delimiter=delimiter)
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip(" ")):
            yield n_before + reader.line_num, cells


def _number(cell: str, *, decimal_comma: bool) -> float | None:
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


def _unique(names: Iterable[str]) -> list[str]:
    """Number names that occur more than once, as pandas does: sales, sales.1, sales.2; name the others."""
    seen: Counter[str] = Counter()
    unique = []
    for name in (name or f"unnamed_{at}" for at, name in enumerate(names)):
        unique.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return unique


def _usual_length(rows: Sequence[Sequence[str]]) -> int:
    """Return the length of most rows; the first one, which may be a shorter header, decides no tie."""
    return mode([len(row) for row in [*rows[1:], *rows[:1]]])


def _find_delimiter(lines: Sequence[str], usual_delimiter: str) -> str:
    """Return the delimiter that makes the most cells numbers and the most lines equally long."""

    def score(candidate: str) -> float:
        rows = [cells for _, cells in _rows(lines, candidate, 0)]
        if not rows or (length := _usual_length(rows)) < 2:
            return 0.0
        rows = rows[1:] or rows
        cells = [cell for row in rows for cell in row]
        numbers = sum(_number(cell, decimal_comma=candidate == ";") is not None for cell in cells)
        agreeing = sum(len(row) == length for row in rows)
        # The ending of the file is right unless the lines clearly say otherwise.
        return numbers / len(cells) * agreeing / len(rows) * (1.2 if candidate == usual_delimiter else 1.0)

    return max(dict.fromkeys([usual_delimiter, ",", "\t", ";", "|", WHITESPACE]), key=score)


def _looks_like_header(rows: Sequence[Sequence[str]], n_cells: int, parse: Parser) -> bool:
    first, rest = rows[0], rows[1:]
    if rest and len(first) == n_cells - 1:
        return True
    cells = first[1:] if len(first) > 1 else first
    # One wrong cell in a first row of entries must stay an error, so that half of the cells are asked for.
    if 2 * sum(parse(cell) is None for cell in cells) >= len(cells):
        return True
    if rest and first[0] == "" and not any(row[0] == "" for row in rest):
        return True
    # Whole numbers in equal steps, such as years or wavelengths, above decimals or several other rows.
    runs = [row[not first[0].isdecimal() :] for row in rows]
    whole = any(all(map(str.isdecimal, run)) for run in runs[1:])
    several = len(runs[0]) >= 3 + whole and len(rest) >= 2 + whole
    return several and _in_steps(runs[0]) and not any(map(_in_steps, runs[1:]))


def _in_steps(cells: Sequence[str]) -> bool:
    if not all(map(str.isdecimal, cells)):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(cells)}
    return len(steps) == 1 and min(steps) > 0


def _looks_like_index(
    header: Sequence[str] | None, rows: Sequence[Sequence[str]], n_cells: int, parse: Parser
) -> bool:
    if n_cells < 2:
        return False
    if header is not None and (len(header) == n_cells - 1 or header[0].lower() in _INDEX_NAMES):
        return True
    return 2 * sum(parse(row[0]) is None for row in rows) > len(rows)
