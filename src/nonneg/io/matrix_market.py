"""Readers of Matrix Market files, and of 10x Genomics folders with matrix.mtx, barcodes and features."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from nonneg._typing import MatrixLike
from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import unique_names
from nonneg.io.limits import check_rows, open_bytes, open_text
from nonneg.io.table import ReadOptions, Table

_HEADER = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+(real|double|integer|pattern|"
    rb"unsigned-integer)[ \t]+(general|symmetric)[ \t]*\r?\n",
    re.IGNORECASE,
)
_LONGEST_LINE = 1 << 16


def read(path: Path, options: ReadOptions) -> Table:
    """Read the matrix."""
    return Table(read_matrix(path))


def read_matrix(path: Path) -> MatrixLike:
    """Read a matrix: by NumPy's parser, because SciPy's trusts the text and reads beyond a damaged one."""
    with open_bytes(path) as stream:
        header = _HEADER.fullmatch(stream.readline(_LONGEST_LINE))
        form, field, symmetry = (word.lower().decode() for word in header.groups()) if header else 3 * [""]
        if header is None or (form == "array" and (field == "pattern" or symmetry != "general")):
            raise FileFormatError(
                f"{path} is not a Matrix Market file of real numbers: its first line must read "
                "'%%MatrixMarket matrix coordinate real general' or the like, or 'array real general' for "
                "all of a dense matrix. Write it again from its source."
            )
        line = stream.readline(_LONGEST_LINE)
        while line.startswith(b"%") or line.isspace():
            line = stream.readline(_LONGEST_LINE)
        sizes = [int(size) for size in line.split() if size.isdigit()]
        if len(line.split()) != len(sizes) or len(sizes) != (3 if form == "coordinate" else 2):
            wanted = "rows, columns and entries" if form == "coordinate" else "rows and columns"
            raise FileFormatError(
                f"{path}: expected {wanted} as whole numbers after the comments, got {line[:60]!r}."
            )
        fields: list[tuple[str, type]] = [("row", int), ("column", int)] if form == "coordinate" else []
        fields += [] if field == "pattern" else [("value", float)]
        if form == "coordinate":
            check_rows(sizes[0], path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a text without numbers, which are counted below
            entries = np.loadtxt(stream, dtype=fields, comments=None, ndmin=1)
    declared = sizes[2] if form == "coordinate" else sizes[0] * sizes[1]
    if len(entries) != declared:
        raise FileFormatError(
            f"{path} declares {declared} entries but has {len(entries)}: it is truncated, or its header is "
            "wrong. Write it again from its source."
        )
    values = np.ones(declared) if field == "pattern" else entries["value"]
    if "integer" in field:
        values = values.astype(np.int64)
    if form == "array":
        return values.reshape(sizes[::-1]).T
    rows, columns = entries["row"] - 1, entries["column"] - 1
    if symmetry == "symmetric":
        other = rows != columns
        values = np.append(values, values[other])
        rows, columns = np.append(rows, columns[other]), np.append(columns, rows[other])
    return sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=tuple(sizes[:2])))


def read_tenx_folder(path: Path, options: ReadOptions) -> Table:
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
