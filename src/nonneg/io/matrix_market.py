"""Readers of Matrix Market files, and of 10x Genomics folders with matrix.mtx, barcodes and features."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import unique_names
from nonneg.io.limits import check_expansion, open_bytes, open_text
from nonneg.io.table import ReadOptions, Table

_HEADER = re.compile(
    rb"%%matrixmarket matrix (?:(array) (?=\S+ general)(?!pattern)|coordinate )"
    rb"((?:unsigned-)?integer|real|double|pattern) (general|symmetric)"
)
_LONGEST_LINE = 1 << 16


def read(path: Path, options: ReadOptions) -> Table:
    """Read a matrix: by NumPy's parser, because SciPy's trusts the text and reads beyond a damaged one."""
    with open_bytes(path) as stream:
        header = _HEADER.fullmatch(b" ".join(stream.readline(_LONGEST_LINE).lower().split()))
        if header is None:
            raise FileFormatError(
                f"{path} is not a Matrix Market file of real numbers: its first line must read "
                "'%%MatrixMarket matrix coordinate real general' or the like, or 'array real general' for "
                "all of a dense matrix. Write it again from its source."
            )
        dense, field, symmetry = header.groups()
        line = stream.readline(_LONGEST_LINE)
        while line.startswith(b"%") or line.isspace():
            line = stream.readline(_LONGEST_LINE)
        if re.fullmatch(rb"\s*\d+\s+\d+\s*" if dense else rb"\s*\d+\s+\d+\s+\d+\s*", line) is None:
            numbers = "rows and columns" if dense else "rows, columns and entries"
            raise FileFormatError(
                f"{path}: expected {numbers} as whole numbers after the comments, got {line[:60]!r}."
            )
        n_rows, n_columns, *n_entries = map(int, line.split())
        if not dense:
            check_expansion(8.0 * n_rows, path)  # nearly empty rows take far more memory than the file
        fields = [("row", int), ("column", int)] * (not dense) + [("value", float)] * (field != b"pattern")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a text without numbers, which are counted below
            entries = np.loadtxt(stream, dtype=fields, comments=None, ndmin=1)
    declared = n_rows * n_columns if dense else n_entries[0]
    if len(entries) != declared:
        raise FileFormatError(
            f"{path} declares {declared} entries but has {len(entries)}: it is truncated, or its header is "
            "wrong. Write it again from its source."
        )
    values = np.ones(declared) if field == b"pattern" else entries["value"]
    if b"integer" in field:
        values = values.astype(np.int64)
    if dense:
        return Table(values.reshape(n_columns, n_rows).T)
    rows, columns = entries["row"] - 1, entries["column"] - 1
    if symmetry == b"symmetric":
        other = rows != columns
        values = np.append(values, values[other])
        rows, columns = np.append(rows, columns[other]), np.append(columns, rows[other])
    return Table(sparse.coo_array((values, (rows, columns)), shape=(n_rows, n_columns)))


def read_tenx_folder(path: Path, options: ReadOptions) -> Table:
    """Read the counts; cells become rows and features columns."""
    matrix = _find(path, "matrix.mtx")
    features = _lines(_find(path, "features.tsv", "genes.tsv"))
    barcodes = [cells[0] for cells in _lines(_find(path, "barcodes.tsv"))]
    counts = sparse.csr_array(read(matrix, options).X.T)
    if counts.shape != (len(barcodes), len(features)):
        raise FileFormatError(
            f"{matrix} has {counts.shape[1]} features and {counts.shape[0]} barcodes, but {len(features)} "
            f"features and {len(barcodes)} barcodes are named next to it. The files do not belong together, "
            "or one is truncated."
        )
    identifiers = [cells[0] for cells in features]
    symbols = [cells[1] if len(cells) > 1 else cells[0] for cells in features]
    return Table(counts, barcodes, unique_names(symbols, identifiers))


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
    with open_text(path) as stream:
        return [line.rstrip("\r\n").split("\t") for line in stream if line.strip()]
