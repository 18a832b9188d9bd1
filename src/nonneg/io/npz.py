"""Readers of .npy and .npz: NumPy arrays, or a sparse matrix as scipy.sparse.save_npz writes it."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nonneg._typing import SparseMatrix
from nonneg.exceptions import FileFormatError, UnsafeFileError
from nonneg.io.limits import check_archive, check_rows
from nonneg.io.table import Contents, ReadOptions, choose_variable, compressed_matrix


def read_npz(path: Path, options: ReadOptions) -> Contents:
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
        headers = {name: _member_header(archive, member) for name, member in members.items()}
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


def _member_header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
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


# Protocols 2 and later begin with this byte.
_PICKLE_MARK = b"\x80"


def read_npy(path: Path, options: ReadOptions) -> Contents:
    """Read the array."""
    with path.open("rb") as stream:
        return Contents(read_array(stream, str(path), path.stat().st_size))


def read_array(stream: IO[bytes], source: str, n_bytes: int) -> npt.NDArray[Any]:
    """Read an array in NumPy's format from an open file, and never by pickle."""
    mark = stream.read(len(np.lib.format.MAGIC_PREFIX))
    if mark.startswith(_PICKLE_MARK):
        raise unsafe_file(source)
    if mark != np.lib.format.MAGIC_PREFIX:
        raise FileFormatError(
            f"{source} is not a NumPy file: it begins with {mark!r}, "
            f"not with {np.lib.format.MAGIC_PREFIX!r}. Write it with numpy.save."
        )
    stream.seek(-len(mark), 1)
    try:
        shape, dtype = read_header(stream)
        declared = math.prod(shape) * dtype.itemsize
        # NumPy makes room for all that the header declares before it reads.
        if not dtype.hasobject and (declared > n_bytes or min(shape, default=0) < 0):
            raise ValueError(f"its header declares {declared} bytes, but it has {n_bytes}.")
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        if "Object arrays" in str(error):
            raise unsafe_file(source) from error
        raise FileFormatError(
            f"{source} is corrupt or truncated: {error} Write it again with numpy.save."
        ) from error


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read shape and dtype from the beginning of an array in NumPy's format."""
    shape, _, dtype = _header(stream)
    return shape, dtype


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    if np.lib.format.read_magic(stream) == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def read_layout(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order (whether Fortran's), dtype and where the entries begin, without reading them."""
    with path.open("rb") as stream:
        mark = stream.read(len(np.lib.format.MAGIC_PREFIX))
        if mark != np.lib.format.MAGIC_PREFIX:
            raise FileFormatError(
                f"{path} is not a NumPy file: it begins with {mark!r}, not with "
                f"{np.lib.format.MAGIC_PREFIX!r}. Write it with numpy.save."
            )
        stream.seek(0)
        try:
            shape, fortran, dtype = _header(stream)
        except ValueError as error:
            raise FileFormatError(f"{path} is corrupt: {error} Write it again with numpy.save.") from error
        if dtype.hasobject:
            raise unsafe_file(str(path))
        return shape, fortran, dtype, stream.tell()


def unsafe_file(source: str) -> UnsafeFileError:
    """Build the error for a file that would need pickle."""
    return UnsafeFileError(
        f"{source} contains Python objects, which only pickle can read, and a pickle can run code: "
        "it is rejected. Save plain numbers instead, such as numpy.save(path, array.astype(float))."
    )
