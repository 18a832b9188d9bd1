"""Reader of a folder of 10x Genomics files: matrix.mtx, barcodes.tsv, and features.tsv or genes.tsv."""

from __future__ import annotations

from pathlib import Path

from scipy import sparse

from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import unique_names
from nonneg.io.limits import open_gzip_text
from nonneg.io.matrix_market import read_matrix
from nonneg.io.table import Contents, ReadOptions


def read(path: Path, options: ReadOptions) -> Contents:
    """Read the counts; cells become rows and features columns."""
    matrix = _find(path, "matrix.mtx")
    features = _lines(_find(path, "features.tsv", "genes.tsv"))
    barcodes = [cells[0] for cells in _lines(_find(path, "barcodes.tsv"))]
    counts = sparse.csr_array(read_matrix(matrix).T)
    if counts.shape != (len(barcodes), len(features)):
        raise FileFormatError(
            f"{matrix} has {counts.shape[1]} features and {counts.shape[0]} barcodes, but {len(features)} "
            f"features and {len(barcodes)} barcodes are named next to it. The files do not belong together, "
            "or one is truncated."
        )
    identifiers = [cells[0] for cells in features]
    symbols = [cells[1] if len(cells) > 1 else cells[0] for cells in features]
    return Contents(counts, barcodes, unique_names(symbols, identifiers))


def _find(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    raise FileFormatError(
        f"{folder} is a folder without {' or '.join(names)} (or .gz). A folder is read as a 10x Genomics "
        "matrix: matrix.mtx, barcodes.tsv, and features.tsv or genes.tsv. Otherwise give a file."
    )


def _lines(path: Path) -> list[list[str]]:
    compressed = path.suffix == ".gz"
    with open_gzip_text(path) if compressed else path.open(encoding="utf-8") as stream:
        return [line.rstrip("\r\n").split("\t") for line in stream if line.strip()]
