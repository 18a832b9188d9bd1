"""Files of the command line: arrays, tables and text, each as a function that writes it to a path."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from nonneg._typing import FloatArray
from nonneg.io import Table
from nonneg.report.record import Record, Writer, clean

TABLE_KINDS = frozenset({"csv", "tsv", "parquet"})
"""Formats of data whose factors are written as .csv too."""


def array_file(array: Any) -> Writer:
    """Return a writer of a .npy file."""

    def write(path: Path) -> None:
        # `numpy.save` has the C library write to files, and does not ask whether the last 4 KB had room.
        with path.open("wb") as stream:
            np.save(cast(Any, SimpleNamespace(write=stream.write)), array, allow_pickle=False)

    return write


def table_file(heading: Iterable[Any], rows: Iterable[Iterable[Any]], delimiter: str = ",") -> Writer:
    """Return a writer of a .csv or .tsv file."""

    def write(path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as stream:
            # Line ends as other tools write them: \r\n in .csv (RFC 4180), \n in .tsv.
            end = "\r\n" if delimiter == "," else "\n"
            writer = csv.writer(stream, delimiter=delimiter, lineterminator=end)
            writer.writerow([_cell(cell) for cell in heading])
            writer.writerows([_cell(cell) for cell in row] for row in rows)

    return write


def entries_file(entries: Sequence[Mapping[str, Any]], delimiter: str = ",") -> Writer:
    """Return a writer of entries with the same keys, a row for each."""
    return table_file(entries[0] if entries else (), [entry.values() for entry in entries], delimiter)


def _cell(value: Any) -> Any:
    """Keep spreadsheets from running a name as a formula: an apostrophe goes before =, +, -, @."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float | bool):
        # Nothing where there is no number.
        return "" if np.isnan(value) else int(value) if isinstance(value, bool) else value
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        try:
            float(value)
        except ValueError:
            return f"'{clean(value)}"
    return clean(value) if isinstance(value, str) else value


def factor_file(
    factor: FloatArray, corner: str, row_names: Sequence[str] | None, column_names: Sequence[str] | None
) -> Writer:
    """Return a writer of a factor as a .csv file."""
    # Nine digits give every float32 back; a float64 is written as short as possible.
    rows = factor.tolist()
    if factor.dtype == np.float32:
        rows = [[f"{value:.9g}" for value in row] for row in rows]
    names = column_names or [f"feature_{at}" for at in range(factor.shape[1])]
    if row_names is None:
        return table_file(names, rows)
    return table_file([corner, *names], ([name, *row] for name, row in zip(row_names, rows, strict=True)))


def named_rows(names: Sequence[Any], values: Any) -> list[list[Any]]:
    """Return the rows of a table, a name before each."""
    return [[name, *row] for name, row in zip(names, np.asarray(values).tolist(), strict=True)]


def tsv(heading: Iterable[Any], rows: Iterable[Iterable[Any]]) -> Writer:
    """Return a writer of tab-separated values; numbers with six digits."""
    return table_file(heading, ([_digits(cell) for cell in row] for row in rows), "\t")


def _digits(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) and not np.isnan(value) else value


def add_factors(record: Record, table: Table, W: FloatArray) -> None:
    """Add the factors of a fit to the files of its record; as .csv too where the data are a table."""
    H = record.model.components_
    record.files = {"W.npy": array_file(W), "H.npy": array_file(H)}
    rows, columns = table.row_names, table.column_names
    if rows is not None or columns is not None or table.kind in TABLE_KINDS:
        components = [f"component_{at}" for at in range(H.shape[0])]
        record.files["W.csv"] = factor_file(W, "sample", rows, components)
        record.files["H.csv"] = factor_file(H, "component", components, columns)


def proportions_file(
    proportions: FloatArray, names: Sequence[str], topic_names: Sequence[str | None] = ()
) -> Writer:
    """Return a writer of the topic proportions of documents, after the topic with the largest one."""
    best = np.where(proportions.sum(axis=1) > 0, proportions.argmax(axis=1), -1).tolist()
    columns: dict[str, Any] = {"document": names, "topic": best}
    if any(topic_names):
        columns["name"] = [(topic_names[at] or "") if at >= 0 else "" for at in best]
    columns |= {f"topic_{at}": map(_digits, column) for at, column in enumerate(proportions.T.tolist())}
    return table_file(columns, list(zip(*columns.values(), strict=True)))
