"""Reader of .zarr folders: one array, or an AnnData store."""

from __future__ import annotations

from pathlib import Path

from nonneg.io.memory import checked_memory
from nonneg.io.open_matrix import open_zarr
from nonneg.io.table import Contents, ReadOptions


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the matrix whole, with its names."""
    stored = open_zarr(path, options, checked_memory(None))
    return Contents(stored.read_all(), stored.row_names, stored.column_names)
