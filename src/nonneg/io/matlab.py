"""Reader of .mat: MATLAB files, those of version 7.3 (which are HDF5) among them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

from scipy import io

from nonneg._typing import MatrixLike
from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import is_group, opened
from nonneg.io.table import Contents, ReadOptions, choose_variable, compressed_matrix, read_matrices

NUMERIC = frozenset(
    [
        "double",
        "single",
        "logical",
        "sparse",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ]
)


_MATRIX, _COMPRESSED = 14, 15
# Signed and unsigned integers, floats, nested matrices and text: types of elements in version 5.
_DATA_TYPES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 16, 17, 18})
_NUMERIC_CLASSES = frozenset({5, *range(6, 16)})  # sparse, double, single, integers
# Bytes of an entry by the precision in the header of version 4: double, single, integers.
_VERSION_4_BYTES = {0: 8, 1: 4, 2: 4, 3: 2, 4: 2, 5: 1}


def read(path: Path, options: ReadOptions) -> Contents:
    """Read one matrix."""
    if is_version_73(path):
        return Contents(_read_version_73(path, options.variable))
    check_elements(path)
    shapes = {
        name: tuple(shape)
        for name, shape, kind in io.whosmat(path)
        if kind in NUMERIC or options.variable is not None
    }
    chosen = choose_variable(shapes, options.variable, str(path))
    return Contents(read_matrices(io.loadmat, path, variable_names=[chosen])[chosen])


def read_all(path: Path) -> dict[str, Any]:
    """Read all numeric arrays."""
    if is_version_73(path):
        with opened(path, "Reading a MATLAB 7.3 file") as file:
            nodes = {name: node for name, node in file.items() if _shape(node) is not None}
            return {name: node[()].T for name, node in nodes.items() if not is_group(node)}
    check_elements(path)
    names = [name for name, _, kind in io.whosmat(path) if kind in NUMERIC]
    arrays = read_matrices(io.loadmat, path, variable_names=names)
    return {name: array for name, array in arrays.items() if getattr(array, "dtype", None) is not None}


def check_elements(path: Path) -> None:
    """Reject a file with elements of unknown types: SciPy looks them up in a table without a check."""
    with path.open("rb") as stream:
        header = stream.read(128)
        if 0 in header[:4]:  # how SciPy tells version 4, which has no elements
            _check_version_4(header, stream, path)
            return
        if len(header) < 128 or header[126:128] not in (b"IM", b"MI"):
            return
        order = "<" if header[126:128] == b"IM" else ">"
        while tag := stream.read(8):
            kind, size = _tag(tag, order, path)
            end = stream.tell() + size
            if kind == _COMPRESSED:
                inside = _Inflated(stream, size, path)
                _check_matrix(inside, order, path)
            elif kind == _MATRIX:
                stream.seek(-8, 1)
                _check_matrix(stream, order, path)
            stream.seek(end)


def _check_version_4(header: bytes, stream: Any, path: Path) -> None:
    """Reject sizes that the file does not hold: SciPy makes room for what a header declares."""
    n_bytes = stream.seek(0, 2)
    kind = struct.unpack("<i", header[:4])[0] if len(header) >= 4 else 0
    order, at = "<" if 0 <= kind <= 5000 else ">", 0
    while at < n_bytes:
        stream.seek(at)
        if len(head := stream.read(20)) < 20:
            raise _damaged(path, "it ends within the header of a variable")
        kind, n_rows, n_columns, is_complex, name = struct.unpack(order + "5i", head)
        precision = kind // 10 % 10
        size = n_rows * n_columns * _VERSION_4_BYTES.get(precision, 8) * (1 + (is_complex != 0))
        at += 20 + name + size
        if min(n_rows, n_columns, name) < 0 or at > n_bytes:
            raise _damaged(path, f"a variable of {n_rows} x {n_columns} entries in a file of {n_bytes} bytes")


def _check_matrix(stream: Any, order: str, path: Path) -> None:
    kind, size = _tag(stream.read(8), order, path)
    if kind != _MATRIX:
        raise _damaged(path, f"an element of type {kind} where a matrix was expected")
    left, numeric = size, True
    while left > 0 and numeric:
        tag = stream.read(8)
        kind, length = _tag(tag, order, path)
        small = kind >> 16
        if small:
            # Up to four bytes of data stand in the tag itself.
            kind, length, taken = kind & 0xFFFF, 0, 8
        else:
            taken = 8 + length + (-length) % 8
        if kind not in _DATA_TYPES or taken > left + 7 or small > 4:
            raise _damaged(path, f"an element of type {kind} and {length} bytes")
        if left == size and not small:
            flags = stream.read(length)
            # Cells, structures, objects and text are not read; their elements are nested.
            numeric = len(flags) == length >= 4 and flags[0 if order == "<" else 3] in _NUMERIC_CLASSES
            _skip(stream, (-length) % 8)
        elif not small:
            _skip(stream, taken - 8)
        left -= taken


def _tag(tag: bytes, order: str, path: Path) -> tuple[int, int]:
    if len(tag) != 8:
        raise _damaged(path, "it ends within an element")
    kind, size = struct.unpack(order + "II", tag)
    return kind, size


def _skip(stream: Any, n_bytes: int) -> None:
    while n_bytes > 0 and (read := len(stream.read(min(n_bytes, 1 << 20)))):
        n_bytes -= read


def _damaged(path: Path, what: str) -> FileFormatError:
    return FileFormatError(f"{path} is damaged: {what}. Write it again from its source.")


class _Inflated:
    """A compressed element, decompressed as it is read."""

    def __init__(self, stream: Any, size: int, path: Path) -> None:
        self.stream, self.left, self.path = stream, size, path
        self.engine, self.ready = zlib.decompressobj(), b""

    def read(self, n_bytes: int) -> bytes:
        while len(self.ready) < n_bytes and not self.engine.eof:
            packed = self.engine.unconsumed_tail
            if not packed:
                packed = self.stream.read(min(self.left, 1 << 16))
                self.left -= len(packed)
                if not packed:
                    break
            try:
                self.ready += self.engine.decompress(packed, 1 << 20)
            except zlib.error as error:
                raise _damaged(self.path, str(error)) from error
        found, self.ready = self.ready[:n_bytes], self.ready[n_bytes:]
        return found


def is_version_73(path: Path) -> bool:
    """Say whether a file is of version 7.3, which is HDF5."""
    with path.open("rb") as stream:
        head = stream.read(520)
    # MATLAB puts a text of 512 bytes before the HDF5 part; other writers may leave it out.
    return head.startswith((b"MATLAB 7.3", b"\x89HDF")) or head[512:516] == b"\x89HDF"


def _read_version_73(path: Path, wanted: str | None) -> MatrixLike:
    with opened(path, "Reading a MATLAB 7.3 file") as file:
        shapes = {
            name: shape
            for name, node in file.items()
            if not name.startswith("#") and (shape := _shape(node)) is not None
        }
        node = file[choose_variable(shapes, wanted, str(path))]
        if is_group(node):
            data, rows, starts = node["data"][()], node["ir"][()], node["jc"][()]
            n_rows, n_columns = node.attrs["MATLAB_sparse"], node["jc"].shape[0] - 1
            shape = (int(n_rows), int(n_columns))
            return compressed_matrix(data, rows, starts, shape, by_rows=False, source=str(path))
        # MATLAB stores columns first, so that the array comes in transposed.
        return node[()].T


def _shape(node: Any) -> tuple[int, ...] | None:
    """Give the shape of a numeric variable as MATLAB shows it, None for what is no matrix."""
    if is_group(node):
        if "MATLAB_sparse" not in node.attrs or "data" not in node:
            return None
        return int(node.attrs["MATLAB_sparse"]), node["jc"].shape[0] - 1
    kind = node.attrs.get("MATLAB_class", b"double")
    name = kind.decode() if isinstance(kind, bytes) else str(kind)
    if name not in NUMERIC or node.dtype.kind not in "buif" or "MATLAB_empty" in node.attrs:
        return None
    return tuple(reversed(node.shape))
