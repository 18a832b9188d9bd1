"""HDF5 files, opened if they are sound, and where AnnData (.h5ad) and 10x Genomics (.h5) keep matrices."""

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
from nonneg.io.table import ReadOptions

_WALK_SECONDS = 120.0
# Attributes and small arrays of at most a thousand nodes: groups of other tools may hold many more.
_WALK = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (5, 6))  # a loop without end, however loaded the machine is
except ImportError:
    pass
try:
    import h5py
except ImportError:
    sys.exit()  # it was put on the path by other means: read without this check
left = [1000]
def attempt(function, *args):
    try:
        return function(*args)
    except Exception:
        return None  # a broken link or an exotic type: whether it matters shows where it is read
def walk(node, depth):
    left[0] -= 1
    for name in attempt(list, node.attrs) or ():
        attempt(node.attrs.get, name)
    if isinstance(node, h5py.Dataset):
        if node.size is not None and node.size * node.dtype.itemsize <= 1 << 20:
            attempt(node.__getitem__, ())
    elif depth < 4:
        for name in attempt(list, node) or ():
            found = attempt(node.get, name)
            if found is not None and left[0] > 0:
                attempt(walk, found, depth + 1)
with h5py.File(sys.argv[1], "r") as file:
    walk(file, 0)
"""


def open_checked(path: Path, purpose: str) -> Any:
    """Open an HDF5 file for reading, if it is sound."""
    h5py = import_optional("h5py", extra="formats", purpose=purpose)
    if not h5py.is_hdf5(path):
        raise FileFormatError(
            f"{path} is not an HDF5 file, or its beginning is damaged. Write it again from its source."
        )
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
        done = subprocess.run(
            [sys.executable, "-P", "-c", _WALK, str(path)],
            timeout=_WALK_SECONDS,
            check=False,
            capture_output=True,
        )
    except subprocess.TimeoutExpired as error:
        raise FileFormatError(
            f"{path} is damaged, or its disk is slow: its structure could not be read within "
            f"{_WALK_SECONDS:g} s. Write it again from its source."
        ) from error
    except OSError:
        return  # an embedded Python has no executable to start
    if done.returncode not in (0, 1):  # 1: an exception, which reading it here will raise, too
        raise FileFormatError(
            f"{path} is damaged: HDF5 crashed or did not end while reading it. Write it again from its "
            "source."
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


def chosen_matrix(
    file: Any, options: ReadOptions, source: str
) -> tuple[Any, list[str] | None, list[str] | None, Any]:
    """Return X or the chosen layer, the names of cells and variables, and which variables are wanted."""
    wanted = options.variable or "X"
    if wanted not in file:
        known = [name for name in ("X", "raw/X") if name in file]
        known += [f"layers/{name}" for name in file.get("layers", {})]
        raise FileFormatError(
            f"{source} contains no {wanted!r}. It contains: {', '.join(known) or 'no matrix'}. "
            "Choose one with variable='NAME' (--variable NAME)."
        )
    variables = file["raw"] if wanted.startswith("raw/") else file
    chosen = _highly_variable(variables["var"], source) if options.highly_variable else None
    return file[wanted], _names(file, "obs"), _names(variables, "var"), chosen


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


def read_cell_column(path: Path, name: str) -> tuple[str, ...]:
    """Return a column of the cells, such as their type, as text."""
    with open_checked(path, "Reading a .h5ad file") as file:
        frame = file.get("obs", {})
        if name not in frame:
            raise FileFormatError(
                f"{path} contains no column {name!r} of cells. It contains: {', '.join(frame)}."
            )
        return tuple(_column(frame[name], name))


def layer_names(path: Path) -> list[str]:
    """Return the names of the layers."""
    with open_checked(path, "Reading a .h5ad file") as file:
        return list(file.get("layers", {}))


def _column(column: Any, name: str) -> list[str]:
    if not is_group(column):
        return text_of(column[()])
    if "categories" not in column:
        return _column(column["values"], name)
    categories = _column(column["categories"], name)
    codes = column["codes"][()].tolist()
    if not all(-1 <= code < len(categories) for code in codes):
        raise FileFormatError(f"The column {name!r} has codes without a category: it is damaged.")
    return [categories[code] if code >= 0 else "none" for code in codes]


def sparse_layout(node: Any, source: str) -> tuple[bool, tuple[int, int]]:
    """Return whether a group holds a matrix by rows (else by columns), and its shape."""
    (kind,) = text_of([node.attrs.get("encoding-type", "")])
    if kind[:3] not in ("csr", "csc"):
        raise FileFormatError(
            f"{source} stores {node.name} as {kind or 'a group'!r}; "
            "expected a dense array, csr_matrix or csc_matrix."
        )
    shape = tuple(int(length) for length in node.attrs["shape"])
    if len(shape) != 2:
        raise FileFormatError(f"{source} stores {node.name} with the shape {shape}; expected two lengths.")
    return kind.startswith("csr"), shape


def _names(file: Any, side: str) -> list[str] | None:
    if side not in file:
        return None
    frame = file[side]
    (name,) = text_of([frame.attrs.get("_index", "_index")])
    return _column(frame[name], f"{side}/{name}") if name in frame else None


def tenx_counts(file: Any, path: Path) -> tuple[Any, tuple[int, int], list[str], list[str]]:
    """Return the group of the counts, cells x features, with the names of cells and features."""
    group = file.get("matrix", {})
    if "features" not in group:
        raise FileFormatError(
            f"{path} is not a 10x Genomics matrix (Cell Ranger 3 or later): there is no group 'matrix' with "
            f"'features'. It contains: {', '.join(file) or 'nothing'}. Choose a dataset with variable='NAME' "
            "(--variable NAME), or save the data as .npy, .npz or .h5ad."
        )
    # The file holds features x cells by columns, which is cells x features by rows.
    n_features, n_cells = (int(length) for length in group["shape"][()])
    names = unique_names(text_of(group["features/name"][()]), text_of(group["features/id"][()]))
    return group, (n_cells, n_features), text_of(group["barcodes"][()]), names
