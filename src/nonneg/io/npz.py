"""Readers of .npy and .npz: NumPy arrays, or a sparse matrix as scipy.sparse.save_npz writes it."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nonneg._typing import SparseMatrix
from nonneg.exceptions import FileFormatError, UnsafeFileError
from nonneg.io.limits import check_archive, check_rows
from nonneg.io.table import Contents, ReadOptions, choose_variable


def read_npz(path: Path, options: ReadOptions) -> Contents:
    """Read one dense array, or the sparse matrix."""
    headers = _headers(path)
    if {"format", "shape", "data"} <= headers.keys() and options.variable is None:
        return Contents(_read_sparse(path, {name: dtype for name, (_, dtype) in headers.items()}))
    shapes = {
        name: shape
        for name, (shape, dtype) in headers.items()
        if dtype.kind in "buif" or options.variable is not None
    }
    # Where nothing is numeric, the reader of the first array says why.
    chosen = choose_variable(shapes, options.variable, str(path)) if shapes else next(iter(headers))
    with zipfile.ZipFile(path) as archive, archive.open(f"{chosen}.npy") as stream:
        size = archive.getinfo(f"{chosen}.npy").file_size
        return Contents(read_array(stream, f"{path} (variable {chosen})", size))


def read_arrays(path: Path) -> dict[str, Any]:
    """Read all numeric arrays."""
    numeric = [name for name, (_, dtype) in _headers(path).items() if dtype.kind in "buif"]
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in numeric}


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
                with archive.open(member) as stream:
                    shape, dtype = read_header(stream)
                name = member.filename.removesuffix(".npy")
                _check_size(shape, dtype, member.file_size, f"{path} (variable {name})")
                headers[name] = shape, dtype
    if not headers:
        raise FileFormatError(f"{path} is a zip archive without NumPy arrays.")
    return headers


def _read_sparse(path: Path, dtypes: Mapping[str, np.dtype[Any]]) -> SparseMatrix:
    if any(dtype.hasobject for dtype in dtypes.values()):
        raise unsafe_file(str(path))
    try:
        if any(dtypes[name].kind not in "iu" for name in ("indices", "indptr") if name in dtypes):
            raise ValueError("indices and indptr must be integers")
        with np.load(path, allow_pickle=False) as stored:
            check_rows(int(np.ravel(stored["shape"])[0]), path)
        matrix = sparse.load_npz(path)
        if hasattr(matrix, "check_format"):
            # Before it is converted: compiled loops trust the indices.
            matrix.check_format(full_check=True)
        if matrix.format == "bsr" and any(np.mod(matrix.shape, matrix.blocksize)):
            raise ValueError(f"blocks of shape {matrix.blocksize} in a matrix of shape {matrix.shape}")
    except FileFormatError:
        raise
    except Exception as error:  # SciPy raises whatever it stumbles over
        raise FileFormatError(
            f"{path} contains no sparse matrix as scipy.sparse.save_npz writes it, or one with impossible "
            f"indices: {error}. Write it again from its source."
        ) from error
    return matrix


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
        _check_size(shape, dtype, n_bytes, source)
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)
    except FileFormatError:
        raise
    except (ValueError, EOFError) as error:
        if "Object arrays" in str(error):
            raise unsafe_file(source) from error
        raise FileFormatError(
            f"{source} is corrupt or truncated: {error} Write it again with numpy.save."
        ) from error


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], n_bytes: int, source: str) -> None:
    # NumPy makes room for all that the header declares before it reads.
    declared = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and (declared > n_bytes or min(shape, default=0) < 0):
        raise FileFormatError(
            f"{source} is corrupt or truncated: its header declares {declared} bytes, but it has {n_bytes}. "
            "Write it again with numpy.save."
        )


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
        except Exception as error:  # NumPy's parser of headers raises whatever it stumbles over
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
