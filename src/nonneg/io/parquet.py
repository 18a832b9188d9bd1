"""Parquet files: one column per feature, and at most one column of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError
from nonneg.io.stored import StoredMatrix
from nonneg.io.table import ReadOptions


class ParquetRows(StoredMatrix):
    """The row groups of a Parquet file."""

    def __init__(self, path: Path, options: ReadOptions, memory: Any = None) -> None:
        parquet = import_optional("pyarrow.parquet", extra="formats", purpose="Reading a .parquet file")
        self._file = parquet.ParquetFile(path)
        schema, about = self._file.schema_arrow, self._file.metadata
        # The columns in which pandas stored the index of a data frame; a plain range is stored in none.
        stored = [
            name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if name in schema.names
        ]
        index = _index_column(schema, stored, options)
        features = [name for name in schema.names if name != index and name not in stored]
        if options.selection:
            places, label = options.selection.places(features, len(features), str(path))
            if label is not None:
                self.label_name = features[label]
                self.labels = self._texts(self.label_name)
            features = [features[at] for at in places]
        _check_numeric(schema, features, path)
        kinds = [schema.field(name) for name in features]
        dtype = np.result_type(*(np.dtype(kind.type.to_pandas_dtype()) for kind in kinds))
        # Empty cells become NaN, which only floating-point numbers have.
        has_nan = dtype in (np.float32, np.float64) or not any(kind.nullable for kind in kinds)
        shape = about.num_rows, len(features)
        super().__init__(str(path), shape, dtype if has_nan else np.float64, memory)
        self._features = self.column_names = features
        groups = [about.row_group(at) for at in range(about.num_row_groups)]
        self._edges = np.cumsum([0, *(group.num_rows for group in groups)])
        self.n_bytes = sum(group.total_byte_size for group in groups)
        if index is not None:
            self.row_names = self._texts(index)
        self.chunk_rows = int(np.diff(self._edges).max(initial=1))

    def _texts(self, name: str) -> list[str]:
        return [str(value) for value in self._file.read(columns=[name]).column(name).to_pylist()]

    def _read(self, start: int, stop: int) -> Any:
        first = int(np.searchsorted(self._edges, start, side="right")) - 1
        last = int(np.searchsorted(self._edges, stop, side="left"))
        table = self._file.read_row_groups(list(range(first, last)), columns=self._features)
        rows = np.column_stack([table.column(name).to_numpy() for name in self._features])
        return rows[start - self._edges[first] : stop - self._edges[first]]


def _check_numeric(schema: Any, features: list[str], path: Path) -> None:
    for position, name in enumerate(schema.names):
        if name in features and not _is_numeric(schema.field(name).type):
            raise FileFormatError(
                f"{path}, column {position + 1} ({name!r}): expected numbers, "
                f"got {schema.field(name).type}. "
                f"Leave it out with --drop {name}, or make it the index of the data frame before writing."
            )
    if not features:
        raise FileFormatError(f"{path} contains no numeric column.")


def _index_column(schema: Any, stored: list[str], options: ReadOptions) -> str | None:
    """Return the column of names, if there is one."""
    if options.index is False or not schema.names:
        return None
    first = str(schema.names[0])
    if stored or options.selection.names(first):
        return stored[0] if stored else None
    return first if options.index is True or not _is_numeric(schema.field(first).type) else None


def _is_numeric(kind: Any) -> bool:
    types = import_optional("pyarrow.types", extra="formats", purpose="Reading a .parquet file")
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
