"""Reader of .npy: one NumPy array."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from nonneg.exceptions import FileFormatError, UnsafeFileError
from nonneg.io.table import Contents, ReadOptions

# Protocols 2 and later begin with this byte.
_PICKLE_MARK = b"\x80"


def read(path: Path, options: ReadOptions) -> Contents:
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
