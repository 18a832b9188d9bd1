"""Reader of .h5 as Cell Ranger writes it: version 3 (a group "matrix") or 2 (a group per genome)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import is_group, opened, text_of, unique_names
from nonneg.io.table import Contents, ReadOptions, compressed_matrix

_PARTS = frozenset({"data", "indices", "indptr", "shape", "barcodes"})


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the counts; cells become rows and features columns."""
    with opened(path, "Reading a 10x .h5 file") as file:
        group, shape, rows, columns = chosen_group(file, options.variable, path)
        data, indices, indptr = (group[name][()] for name in ("data", "indices", "indptr"))
        counts = compressed_matrix(data, indices, indptr, shape, by_rows=True, source=str(path))
        return Contents(counts, rows, columns)


def chosen_group(
    file: Any, variable: str | None, path: Path
) -> tuple[Any, tuple[int, int], list[str], list[str]]:
    """Return the group of the counts, cells x features, with the names of cells and features."""
    group = _group(file, variable, path)
    if "features" in group:
        identifiers, symbols = group["features/id"][()], group["features/name"][()]
    else:
        identifiers, symbols = group["genes"][()], group["gene_names"][()]
    # The file holds features x cells by columns, which is cells x features by rows.
    n_features, n_cells = (int(length) for length in group["shape"][()])
    names = unique_names(text_of(symbols), text_of(identifiers))
    return group, (n_cells, n_features), text_of(group["barcodes"][()]), names


def _group(file: Any, wanted: str | None, path: Path) -> Any:
    groups = [name for name, node in file.items() if is_group(node) and node.keys() >= _PARTS]
    if not groups:
        raise FileFormatError(
            f"{path} is not a 10x Genomics matrix: no group contains {', '.join(sorted(_PARTS))}. It "
            f"contains: {', '.join(file) or 'nothing'}. Save other HDF5 data as .npy, .npz or .h5ad."
        )
    if wanted is not None and wanted not in groups:
        raise FileFormatError(f"{path} contains no genome {wanted!r}. It contains: {', '.join(groups)}.")
    if wanted is None and len(groups) > 1:
        raise FileFormatError(
            f"{path} contains several genomes: {', '.join(groups)}. "
            "Choose one with variable='NAME' (--variable NAME)."
        )
    return file[wanted or groups[0]]
