"""Reader of .npz: NumPy arrays under names, or one sparse matrix as scipy.sparse.save_npz writes it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import SparseMatrix
from nonneg.exceptions import FileFormatError
from nonneg.io.npy import read_array, unsafe_file
from nonneg.io.table import Contents, ReadOptions
from nonneg.io.variables import choose_variable


def read(path: Path, options: ReadOptions) -> Contents:
    """Read one dense array, or the sparse matrix."""
    if not zipfile.is_zipfile(path):
        raise FileFormatError(
            f"{path} is not a .npz archive, or it is truncated. Write it again with numpy.savez or "
            "scipy.sparse.save_npz."
        )
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
        if not members:
            raise FileFormatError(f"{path} is a zip archive without NumPy arrays.")
        if {"format", "shape", "data"} <= members.keys() and options.variable is None:
            return Contents(_read_sparse(path))
        headers = {name: _header(archive, member) for name, member in members.items()}
        shapes = {
            name: shape
            for name, (shape, dtype) in headers.items()
            if dtype.kind in "buif" or options.variable is not None
        }
        # Where nothing is numeric, the reader of the first array says why.
        chosen = choose_variable(shapes, options.variable, str(path)) if shapes else next(iter(members))
        with archive.open(members[chosen]) as stream:
            return Contents(read_array(stream, f"{path} (variable {chosen})"))


def _header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read_header = np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
    return shape, dtype


def _read_sparse(path: Path) -> SparseMatrix:
    try:
        return sparse.load_npz(path)
    except ValueError as error:
        if "Object arrays" in str(error):
            raise unsafe_file(str(path)) from error
        raise
