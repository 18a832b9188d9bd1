"""Reader of .mat: MATLAB files, those of version 7.3 (which are HDF5) among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import io, sparse

from nonneg._scipy import read_matrices
from nonneg._typing import MatrixLike
from nonneg.io.hdf5 import is_group, opened
from nonneg.io.table import Contents, ReadOptions
from nonneg.io.variables import choose_variable

_NUMERIC = frozenset(
    [
        "double",
        "single",
        "logical",
        "sparse",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ]
)


def read(path: Path, options: ReadOptions) -> Contents:
    """Read one matrix."""
    if is_version_73(path):
        return Contents(_read_version_73(path, options.variable))
    shapes = {
        name: tuple(shape)
        for name, shape, kind in io.whosmat(path)
        if kind in _NUMERIC or options.variable is not None
    }
    chosen = choose_variable(shapes, options.variable, str(path))
    return Contents(read_matrices(io.loadmat, path, variable_names=[chosen])[chosen])


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
            return sparse.csc_array((data, rows, starts), shape=_shape(node))
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
    if name not in _NUMERIC or node.dtype.kind not in "buif" or "MATLAB_empty" in node.attrs:
        return None
    return tuple(reversed(node.shape))
