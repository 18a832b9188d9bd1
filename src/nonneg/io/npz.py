"""Reader of .npz: NumPy arrays under names, or one sparse matrix as scipy.sparse.save_npz writes it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import SparseMatrix
from nonneg.exceptions import FileFormatError
from nonneg.io.limits import check_archive, check_rows
from nonneg.io.npy import read_array, read_header
from nonneg.io.table import Contents, ReadOptions, compressed_matrix
from nonneg.io.variables import choose_variable


def read(path: Path, options: ReadOptions) -> Contents:
    """Read one dense array, or the sparse matrix."""
    if not zipfile.is_zipfile(path):
        raise FileFormatError(
            f"{path} is not a .npz archive, or it is truncated. Write it again with numpy.savez or "
            "scipy.sparse.save_npz."
        )
    with zipfile.ZipFile(path) as archive:
        check_archive(archive, path)
        members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
        if not members:
            raise FileFormatError(f"{path} is a zip archive without NumPy arrays.")
        if {"format", "shape", "data"} <= members.keys() and options.variable is None:
            try:
                return Contents(_read_sparse(archive, members, path))
            except MemoryError as error:
                raise FileFormatError(
                    f"{path} declares a sparse matrix that does not fit in memory: {error}."
                ) from error
        headers = {name: _header(archive, member) for name, member in members.items()}
        shapes = {
            name: shape
            for name, (shape, dtype) in headers.items()
            if dtype.kind in "buif" or options.variable is not None
        }
        # Where nothing is numeric, the reader of the first array says why.
        chosen = choose_variable(shapes, options.variable, str(path)) if shapes else next(iter(members))
        with archive.open(members[chosen]) as stream:
            size = archive.getinfo(members[chosen]).file_size
            return Contents(read_array(stream, f"{path} (variable {chosen})", size))


def _header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(member) as stream:
        return read_header(stream)


def _read_sparse(archive: zipfile.ZipFile, members: dict[str, str], path: Path) -> SparseMatrix:
    def part(name: str) -> Any:
        if name not in members:
            raise FileFormatError(f"{path} contains a sparse matrix without {name!r}: it is damaged.")
        with archive.open(members[name]) as stream:
            return read_array(stream, f"{path} (variable {name})", archive.getinfo(members[name]).file_size)

    layout = np.asarray(part("format")).item()
    layout = layout.decode() if isinstance(layout, bytes) else str(layout)
    lengths = [int(length) for length in np.ravel(part("shape"))]
    if len(lengths) != 2:
        raise FileFormatError(
            f"{path} contains a sparse array of shape {tuple(lengths)}; expected two lengths."
        )
    shape = (lengths[0], lengths[1])
    if layout in ("csr", "csc"):
        data, indices, indptr = (part(name) for name in ("data", "indices", "indptr"))
        return compressed_matrix(data, indices, indptr, shape, by_rows=layout == "csr", source=str(path))
    check_rows(shape[0], path)
    if layout == "coo":
        coordinates = part("coords") if "coords" in members else (part("row"), part("col"))
        # SciPy checks the coordinates of this layout itself.
        return sparse.coo_array((part("data"), tuple(coordinates)), shape=shape).tocsr()
    if layout == "bsr":
        data, indices, indptr = (part(name) for name in ("data", "indices", "indptr"))
        if data.ndim != 3 or 0 in data.shape[1:] or any(np.mod(shape, data.shape[1:])):
            raise FileFormatError(f"{path} contains blocks of shape {data.shape[1:]} in a matrix of {shape}.")
        blocks = (shape[0] // data.shape[1], shape[1] // data.shape[2])
        compressed_matrix(np.arange(len(data)), indices, indptr, blocks, by_rows=True, source=str(path))
        return sparse.bsr_array((data, indices, indptr), shape=shape).tocsr()
    if layout == "dia":
        return sparse.dia_array((part("data"), part("offsets")), shape=shape).tocoo().tocsr()
    raise FileFormatError(
        f"{path} contains a sparse matrix in the unknown layout {layout!r}. Save X.tocsr() instead."
    )
