"""Matrices in HDF5 and Zarr: datasets, AnnData stores (.h5ad, .zarr) and 10x Genomics counts (.h5)."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError
from nonneg.io.stored import ArrayRows, CompressedRows, StoredMatrix
from nonneg.io.table import ReadOptions, check_variable

_WALK_SECONDS = 120.0
# Attributes and small arrays of at most a thousand nodes: groups of other tools may hold many more.
_WALK = """
import contextlib, sys
with contextlib.suppress(ImportError):
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (5, 6))  # a loop without end, however loaded the machine is
try:
    import h5py
except ImportError:
    sys.exit()  # it was put on the path by other means: read without this check
def attempt(function, *args):
    try:
        return function(*args)
    except Exception:
        return None  # a broken link or an exotic type: whether it matters shows where it is read
def visit(node):
    for name in attempt(list, node.attrs) or ():
        attempt(node.attrs.get, name)
    if not isinstance(node, h5py.Dataset):
        nodes.extend(attempt(node.get, name) for name in list(node)[: 1000 - len(nodes)])
    elif node.size is not None and node.size * node.dtype.itemsize <= 1 << 20:
        node[()]
with h5py.File(sys.argv[1], "r") as file:
    nodes = [file]
    for node in nodes:
        attempt(visit, node)
"""


def open_checked(path: Path, purpose: str) -> Any:
    """Open an HDF5 file for reading, if it is sound."""
    h5py = import_optional("h5py", extra="formats", purpose=purpose)
    status = path.stat()
    _check_structure(path.absolute(), status.st_size, status.st_mtime_ns)
    return h5py.File(path, "r")


@functools.lru_cache(maxsize=64)
def _check_structure(path: Path, size: int, changed: int) -> None:
    """Walk through the file in another process: HDF5 crashes or hangs on some damaged ones.

    Once for a file, which is opened several times: for its names, its size and its entries.
    """
    # About 0.2 s. The data themselves are read here alone.
    try:
        command = [sys.executable, "-P", "-c", _WALK, str(path)]
        code = subprocess.run(command, timeout=_WALK_SECONDS, check=False, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        code = None
    except OSError:
        return  # an embedded Python has no executable to start
    if code not in (0, 1):  # 1: an exception, which reading it here will raise, too
        raise FileFormatError(
            f"{path} is damaged, or its disk is slow: HDF5 crashed, or did not end within "
            f"{_WALK_SECONDS:g} s, while reading its structure. Write it again from its source."
        )


def is_group(node: Any) -> bool:
    """Tell a group from a dataset."""
    return hasattr(node, "keys")


def text_of(values: Any) -> list[str]:
    """Turn stored text, bytes or numbers into strings."""
    return [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        for value in np.asarray(values).tolist()
    ]


def unique_names(names: list[str], identifiers: list[str]) -> list[str]:
    """Keep readable names apart: one that occurs twice gets its identifier behind it."""
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} ({identifier})"
        for name, identifier in zip(names, identifiers, strict=True)
    ]


HIGHLY_VARIABLE = "highly_variable"


def node_rows(node: Any, source: str) -> StoredMatrix:
    """Open a dataset of HDF5 or Zarr, or a group that contains a sparse matrix as AnnData writes it."""
    if not is_group(node):
        return ArrayRows(node, source)
    (kind,) = text_of([node.attrs.get("encoding-type", "")])
    shape = tuple(int(length) for length in node.attrs.get("shape", ()))
    if kind[:3] not in ("csr", "csc") or len(shape) != 2:
        raise FileFormatError(
            f"{source} stores {node.name} as {kind or 'a group'!r} of shape {shape}; "
            "expected a dense array, csr_matrix or csc_matrix of two dimensions."
        )
    parts = node["data"], node["indices"], node["indptr"]
    return CompressedRows(*parts, shape, source, by_columns=kind.startswith("csc"))


def open_h5ad(path: Path, options: ReadOptions) -> StoredMatrix:
    """Open a matrix of an AnnData file."""
    file = open_checked(path, "Reading a .h5ad file")
    stored = _annotated(file, options, str(path))
    stored.file = file
    return stored


def open_zarr(path: Path, options: ReadOptions) -> StoredMatrix:
    """Open a Zarr array, one of a group that `variable` names, or the matrix of an AnnData store."""
    zarr = import_optional("zarr", extra="formats", purpose="Reading a Zarr array")
    node = zarr.open(str(path), mode="r")
    if is_group(node):
        return _annotated(node, options, str(path))
    check_variable(options.variable, path, "a Zarr array", several=False)
    return node_rows(node, str(path))


def _annotated(root: Any, options: ReadOptions, source: str) -> StoredMatrix:
    """Open X or the chosen layer of an AnnData store, with the names of cells and variables."""
    path = options.variable or "X"
    if path not in root:
        known = [name for name in root if not is_group(root[name])]
        known += [name for name in ("X", "raw/X") if name in root and name not in known]
        known += [f"layers/{name}" for name in root.get("layers", {})]
        raise FileFormatError(
            f"{source} contains no {path!r}. It contains: {', '.join(known) or 'no matrix'}. "
            "Choose one with variable='NAME' (--variable NAME)."
        )
    stored = node_rows(root[path], source)
    annotated = root["raw"] if path.startswith("raw/") else root
    stored.row_names, stored.column_names = _names(root, "obs"), _names(annotated, "var")
    if options.highly_variable:
        stored.select(_highly_variable(annotated["var"], source))
    return stored


def _names(root: Any, side: str) -> list[str] | None:
    frame = root.get(side)
    if frame is None:
        return None
    (name,) = text_of([frame.attrs.get("_index", "_index")])
    return _column(frame[name], f"{side}/{name}") if name in frame else None


def _highly_variable(frame: Any, source: str) -> Any:
    if HIGHLY_VARIABLE not in frame:
        raise FileFormatError(
            f"{source} contains no column {HIGHLY_VARIABLE!r} of variables (columns: {', '.join(frame)}). "
            "Run scanpy.pp.highly_variable_genes and write the file again, or leave highly_variable "
            "(--highly-variable) out."
        )
    column = frame[HIGHLY_VARIABLE]
    flags = column["values"][()] if is_group(column) else column[()]
    chosen = np.flatnonzero(np.asarray(flags).astype(bool))
    if chosen.size == 0:
        raise FileFormatError(f"{source} marks none of its variables as highly variable.")
    return chosen


def _column(column: Any, name: str) -> list[str]:
    """Read a column of a data frame as AnnData writes it: plain, with missing values, or categories."""
    if not is_group(column):
        return text_of(column[()])
    if "categories" not in column:
        return _column(column["values"], name)
    categories = _column(column["categories"], name)
    codes = column["codes"][()].tolist()
    if not all(-1 <= code < len(categories) for code in codes):
        raise FileFormatError(f"The column {name!r} has codes without a category: it is damaged.")
    return [categories[code] if code >= 0 else "none" for code in codes]


def read_cell_column(path: Path, name: str) -> tuple[str, ...]:
    """Return a column of the cells, such as their type, as text."""
    with open_checked(path, "Reading a .h5ad file") as file:
        frame = file.get("obs", {})
        if name not in frame:
            raise FileFormatError(
                f"{path} contains no column {name!r} of cells. It contains: {', '.join(frame)}."
            )
        return tuple(_column(frame[name], name))


def open_hdf5(path: Path, options: ReadOptions) -> StoredMatrix:
    """Open the counts of 10x Genomics, or the dataset that `variable` names."""
    file = open_checked(path, "Reading an HDF5 file")
    contents = ", ".join(file) or "nothing"
    if options.variable is not None:
        if options.variable not in file:
            raise FileFormatError(f"{path} contains no {options.variable!r}. It contains: {contents}.")
        stored = node_rows(file[options.variable], str(path))
    else:
        group = file.get("matrix", {})
        if "features" not in group:
            raise FileFormatError(
                f"{path} is not a 10x Genomics matrix (Cell Ranger 3 or later): there is no group 'matrix' "
                f"with 'features'. It contains: {contents}. Choose a dataset with variable='NAME' "
                "(--variable NAME), or save the data as .npy, .npz or .h5ad."
            )
        # The file holds features x cells by columns, which is cells x features by rows.
        n_features, n_cells = (int(length) for length in group["shape"][()])
        shape = n_cells, n_features
        stored = CompressedRows(group["data"], group["indices"], group["indptr"], shape, str(path))
        stored.row_names = text_of(group["barcodes"][()])
        names, identifiers = (text_of(group[f"features/{part}"][()]) for part in ("name", "id"))
        stored.column_names = unique_names(names, identifiers)
    stored.file = file
    return stored
