"""Reader of .csv and .tsv, plain or compressed, with or without header and index column."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import FileFormatError
from nonneg.io.limits import open_gzip_text
from nonneg.io.table import Contents, ReadOptions
from nonneg.io.text_layout import (
    MISSING,
    WHITESPACE,
    Layout,
    find_layout,
    is_missing,
    is_number,
    split_cells,
)

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
    """Find the first cell that is not a number, or the first row of another length."""
    with _opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            if number <= layout.n_skipped or _is_blank(line):
                continue
            cells = split_cells(line, layout.delimiter)
            if len(cells) != layout.n_cells:
                return FileFormatError(
                    f"{path}, line {number}: expected {layout.n_cells} cells, got {len(cells)}. "
                    "The file may be truncated, or a cell may contain the delimiter without quotes."
                )
            used = range(layout.n_cells - layout.has_index) if picked is None else picked[0]
            for column in (at + layout.has_index for at in used):
                cell = cells[column]
                if not is_missing(cell) and not is_number(cell, decimal_comma=layout.decimal_comma):
                    return _bad_cell(path, layout, number, column, cell)
    return FileFormatError(f"{path} could not be read as a table of numbers: {reason}")


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
