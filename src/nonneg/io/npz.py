"""Readers of .npy and .npz: NumPy arrays, or a sparse matrix as scipy.sparse.save_npz writes it."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from nonneg._typing import SparseMatrix
from nonneg.exceptions import FileFormatError, UnsafeFileError
from nonneg.io.limits import check_archive, check_rows
from nonneg.io.table import ReadOptions, StoredArray, Table, check_format, choose_array, sound_sparse

_PICKLE_MARK = b"\x80"  # protocols 2 and later begin with this byte


def read_npz(path: Path, options: ReadOptions) -> Table:
    """Read one dense array, or the sparse matrix."""
    headers = _headers(path)
    if {"format", "shape", "data"} <= headers.keys() and options.variable is None:
        return Table(_read_sparse(path, {name: dtype for name, (_, dtype) in headers.items()}))
    return Table(choose_array(arrays_of(path), options.variable, str(path)).load())


def arrays_of(path: Path) -> dict[str, StoredArray]:
    """List the arrays of an archive; where none is numeric, reading one says what it is."""
    headers = _headers(path)
    none = not any(dtype.kind in "buif" for _, dtype in headers.values())

    def load(name: str) -> Any:
        if headers[name][1].hasobject:
            raise unsafe_file(f"{path} (variable {name})")
        with np.load(path, allow_pickle=False) as stored:
            return stored[name]

    return {
        name: StoredArray(shape, none or dtype.kind in "buif", partial(load, name))
        for name, (shape, dtype) in headers.items()
    }


def _headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shapes and dtypes of the arrays of an archive, after a check of what they expand to."""
    if not zipfile.is_zipfile(path):
        raise FileFormatError(
            f"{path} is not a .npz archive, or it is truncated. Write it again with numpy.savez or "
            "scipy.sparse.save_npz."
        )
    headers = {}
    with zipfile.ZipFile(path) as archive:
        check_archive(archive, path)
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as stream:
                    shape, _, dtype = _header(stream, f"{path} (variable {name})", member.file_size)
                headers[name] = shape, dtype
    if not headers:
        raise FileFormatError(f"{path} is a zip archive without NumPy arrays.")
    return headers


def _read_sparse(path: Path, dtypes: Mapping[str, np.dtype[Any]]) -> SparseMatrix:
    if any(dtype.hasobject for dtype in dtypes.values()):
        raise unsafe_file(str(path))
    with sound_sparse(path):
        if any(dtypes[name].kind not in "iu" for name in ("indices", "indptr") if name in dtypes):
            raise ValueError("indices and indptr must be integers")
        with np.load(path, allow_pickle=False) as stored:
            check_rows(int(np.ravel(stored["shape"])[0]), path)
        matrix = sparse.load_npz(path)
        check_format(matrix)  # before it is converted
        if matrix.format == "bsr" and any(np.mod(matrix.shape, matrix.blocksize)):
            raise ValueError(f"blocks of shape {matrix.blocksize} in a matrix of shape {matrix.shape}")
    return matrix


def read_layout(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order (whether Fortran's), dtype and where the entries begin, without reading them."""
    with path.open("rb") as stream:
        shape, fortran, dtype = _header(stream, str(path), path.stat().st_size)
        if dtype.hasobject:
            raise unsafe_file(str(path))
        return shape, fortran, dtype, stream.tell()


def _header(stream: IO[bytes], source: str, n_bytes: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an array in NumPy's format, and check that the entries are there."""
    mark = stream.read(len(np.lib.format.MAGIC_PREFIX))
    if mark.startswith(_PICKLE_MARK):
        raise unsafe_file(source)
    if mark != np.lib.format.MAGIC_PREFIX:
        raise FileFormatError(
            f"{source} is not a NumPy file: it begins with {mark!r}, not with "
            f"{np.lib.format.MAGIC_PREFIX!r}. Write it with numpy.save."
        )
    stream.seek(0)
    try:
        first = np.lib.format.read_magic(stream) == (1, 0)
        parse = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = parse(stream)
    except Exception as error:  # NumPy's parser of headers raises whatever it stumbles over
        raise FileFormatError(f"{source} is corrupt: {error} Write it again with numpy.save.") from error
    # NumPy makes room for all that the header declares before it reads.
    declared, held = math.prod(shape) * dtype.itemsize, n_bytes - stream.tell()
    if not dtype.hasobject and (declared > held or min(shape, default=0) < 0):
        raise FileFormatError(
            f"{source} is corrupt or truncated: its header declares {declared} bytes, but it has {held}. "
            "Write it again with numpy.save."
        )
    return shape, fortran, dtype


def unsafe_file(source: str) -> UnsafeFileError:
    """Build the error for a file that would need pickle."""
    return UnsafeFileError(
        f"{source} contains Python objects, which only pickle can read, and a pickle can run code: "
        "it is rejected. Save plain numbers instead, such as numpy.save(path, array.astype(float))."
    )
