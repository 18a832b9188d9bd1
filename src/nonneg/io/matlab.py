"""Reader of .mat: MATLAB files, those of version 7.3 (which are HDF5) among them."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io

from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import is_group, open_checked, text_of
from nonneg.io.limits import check_expansion, expansion_limit
from nonneg.io.table import ReadOptions, Table, choose_array, compressed_matrix

_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_NUMERIC = frozenset(["double", "single", "logical", "sparse", *_INTEGERS])
_MATRIX, _COMPRESSED = 14, 15
# Signed and unsigned integers, floats, nested matrices and text: types of elements in version 5.
_DATA_TYPES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 16, 17, 18})
_NUMERIC_CLASSES = frozenset({5, *range(6, 16)})  # sparse, double, single, integers


def read(path: Path, options: ReadOptions) -> Table:
    """Read one matrix."""
    return Table(choose_array(arrays_of(path), options.variable, str(path)))


def arrays_of(path: Path) -> dict[str, Any]:
    """Read the numeric variables of a file."""
    with path.open("rb") as stream:
        head = stream.read(520)
    # MATLAB puts a text of 512 bytes before the HDF5 part; other writers may leave it out.
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")) or head[512:516] == b"\x89HDF":
        with open_checked(path, "Reading a MATLAB 7.3 file") as file:
            arrays = {name: _array(node, path) for name, node in file.items() if not name.startswith("#")}
        return {name: array for name, array in arrays.items() if array is not None}
    _check_elements(path)
    variables = io.whosmat(path)
    if len({name for name, *_ in variables}) < len(variables):  # one might be read in place of the other
        raise ValueError("two variables have the same name")
    names = [name for name, _, kind in variables if kind in _NUMERIC]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sparse arrays that SciPy will return: they are read as well
        arrays = io.loadmat(path, variable_names=names)
    return {name: arrays[name] for name in names}


def _array(node: Any, path: Path) -> Any:
    """Read a numeric variable of version 7.3, None for what is no matrix."""
    if is_group(node):
        if "MATLAB_sparse" not in node.attrs or "data" not in node:
            return None
        data, rows, starts = (node[part][()] for part in ("data", "ir", "jc"))
        shape = int(node.attrs["MATLAB_sparse"]), len(starts) - 1
        return compressed_matrix(data, rows, starts, shape, by_rows=False, source=str(path))
    (kind,) = text_of([node.attrs.get("MATLAB_class", "double")])
    if kind not in _NUMERIC or node.dtype.kind not in "buif" or "MATLAB_empty" in node.attrs:
        return None
    return node[()].T  # MATLAB stores columns first


def _check_elements(path: Path) -> None:
    """Reject a file with elements of unknown types: SciPy looks them up in a table without a check."""
    content = np.memmap(path, mode="r").data
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    # SciPy takes a zero here for version 4, of which it makes room for whatever a header declares.
    if order is None or 0 in content[:4]:
        raise FileFormatError(
            f"{path} is a MATLAB file of version 4, or damaged. Save it again: save('file.mat', '-v7')."
        )
    for kind, element in _elements(content[128:], order):
        if kind == _COMPRESSED:
            unpacked = zlib.decompressobj().decompress(element, int(expansion_limit(path)) + 1)
            check_expansion(len(unpacked), path)
            kind, element = next(_elements(unpacked, order))
        if kind != _MATRIX:
            raise ValueError(f"an element of type {kind} where a matrix was expected")
        (_, flags), *parts = _elements(element, order)
        # Cells, structures, objects and text are not read; their elements are nested.
        is_read = struct.unpack_from(order + "I", flags)[0] & 0xFF in _NUMERIC_CLASSES
        if is_read and (unknown := {part for part, _ in parts} - _DATA_TYPES):
            raise ValueError(f"an element of type {min(unknown)} in a matrix")


def _elements(content: Any, order: str) -> Iterator[tuple[int, Any]]:
    """Yield the type and the content of one element after another."""
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from(order + "II", content, at)
        small = kind >> 16
        if small:  # up to four bytes stand in the tag itself
            kind, size = kind & 0xFFFF, 0
        at += 8
        if at + size > len(content) or small > 4:
            raise ValueError("it ends within an element")
        yield kind, content[at : at + size]
        at += size if kind == _COMPRESSED else size + -size % 8
