"""Reader of .parquet: one column per feature, and at most one column of names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError
from nonneg.io.table import Contents, ReadOptions


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the numeric columns; empty cells become NaN."""
    parquet = import_optional("pyarrow.parquet", extra="formats", purpose="Reading a .parquet file")
    table = parquet.read_table(path)
    index = _index_column(table, options)
    features = [name for name in table.column_names if name != index and name not in _stored_index(table)]
    labels = label_name = None
    if options.selection:
        kept, label = options.selection.places(features, len(features), str(path))
        if label is not None:
            label_name = features[label]
            labels = [str(one) for one in table.column(label_name).to_pylist()]
        features = [features[at] for at in kept]
    for position, name in enumerate(table.column_names):
        if name in features and not _is_numeric(table.schema.field(name).type):
            raise FileFormatError(
                f"{path}, column {position + 1} ({name!r}): expected numbers, "
                f"got {table.schema.field(name).type}. "
                f"Leave it out with --drop {name}, or make it the index of the data frame before writing."
            )
    if not features:
        raise FileFormatError(f"{path} holds no numeric column.")
    columns = [table.column(name).to_numpy() for name in features]
    dtype = np.result_type(*columns)
    X = np.empty((table.num_rows, len(columns)), dtype=np.uint8 if dtype.kind == "b" else dtype)
    for position, column in enumerate(columns):
        X[:, position] = column
    rows = None if index is None else [str(value) for value in table.column(index).to_pylist()]
    return Contents(X, rows, features, labels, label_name, selected=True)


def _index_column(table: Any, options: ReadOptions) -> str | None:
    if options.index is False or not table.column_names:
        return None
    stored = _stored_index(table)
    if stored:
        return stored[0]
    first = table.column_names[0]
    if options.selection.names(first):
        return None
    if options.index is True or not _is_numeric(table.schema.field(first).type):
        return str(first)
    return None


def _stored_index(table: Any) -> list[str]:
    """Name the columns in which pandas stored the index of a data frame (a plain range is stored in none)."""
    written = (table.schema.metadata or {}).get(b"pandas")
    if written is None:
        return []
    columns = json.loads(written).get("index_columns", [])
    return [name for name in columns if isinstance(name, str) and name in table.column_names]


def _is_numeric(kind: Any) -> bool:
    types = import_optional("pyarrow.types", extra="formats", purpose="Reading a .parquet file")
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
