"""Reader of .h5ad: AnnData, one cell per row, read without the anndata library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import MatrixLike
from nonneg.exceptions import FileFormatError
from nonneg.io.hdf5 import is_group, opened, text_of
from nonneg.io.table import Contents, ReadOptions, compressed_matrix

HIGHLY_VARIABLE = "highly_variable"


def read(path: Path, options: ReadOptions) -> Contents:
    """Read X, or the layer that `variable` names, with the names of cells and variables."""
    with opened(path, "Reading a .h5ad file") as file:
        node, rows, columns, kept = chosen_matrix(file, options, str(path))
        X = _matrix(node, path)
        return Contents(X if kept is None else X[:, kept], rows, columns)


def chosen_matrix(
    file: Any, options: ReadOptions, source: str
) -> tuple[Any, list[str] | None, list[str] | None, list[int] | None]:
    """Return X or the chosen layer, the names of cells and variables, and which variables are wanted."""
    wanted = options.variable or "X"
    if wanted not in file:
        raise FileFormatError(
            f"{source} contains no {wanted!r}. It contains: {', '.join(_matrices(file)) or 'no matrix'}. "
            "Choose one with variable='NAME' (--variable NAME)."
        )
    variables = file["raw"] if wanted.startswith("raw/") else file
    names, kept = _names(variables, "var"), None
    if options.highly_variable:
        kept = _highly_variable(variables, source)
        names = None if names is None else [names[at] for at in kept]
    return file[wanted], _names(file, "obs"), names, kept


def _highly_variable(variables: Any, source: str) -> list[int]:
    frame = variables["var"]
    names = list(frame if is_group(frame) else frame.dtype.names or ())
    if HIGHLY_VARIABLE not in names:
        raise FileFormatError(
            f"{source} contains no column {HIGHLY_VARIABLE!r} of variables (columns: {', '.join(names)}). "
            "Run scanpy.pp.highly_variable_genes and write the file again, or leave highly_variable "
            "(--highly-variable) out."
        )
    column = frame[HIGHLY_VARIABLE]
    values = column["values"][()] if is_group(column) else column[()] if is_group(frame) else column
    kept = np.flatnonzero(np.asarray(values).astype(bool))
    if kept.size == 0:
        raise FileFormatError(f"{source} marks none of its variables as highly variable.")
    return [int(at) for at in kept]


def read_cell_column(path: Path, name: str) -> tuple[str, ...]:
    """Return a column of the cells, such as their type, as text."""
    with opened(path, "Reading a .h5ad file") as file:
        frame = file.get("obs", {})
        names = list(frame if is_group(frame) else [])
        if name not in names:
            raise FileFormatError(
                f"{path} contains no column {name!r} of cells. It contains: {', '.join(names)}."
            )
        return tuple(_column(frame[name], name))


def _column(column: Any, name: str) -> list[str]:
    if not is_group(column):
        values = column[()]
        return [str(value) for value in values] if values.dtype.kind in "biuf" else text_of(values)
    if "categories" not in column:
        return _column(column["values"], name)
    categories = _column(column["categories"], name)
    codes = column["codes"][()].tolist()
    if not all(-1 <= code < len(categories) for code in codes):
        raise FileFormatError(f"The column {name!r} has codes without a category: it is damaged.")
    return [categories[code] if code >= 0 else "none" for code in codes]


def _matrices(file: Any) -> list[str]:
    found = [name for name in ("X", "raw/X") if name in file]
    return found + [f"layers/{name}" for name in file.get("layers", {})]


def _matrix(node: Any, path: Path) -> MatrixLike:
    if not is_group(node):
        return node[()]
    by_rows, shape = sparse_layout(node, str(path))
    data, indices, indptr = (node[name][()] for name in ("data", "indices", "indptr"))
    return compressed_matrix(data, indices, indptr, shape, by_rows=by_rows, source=str(path))


def sparse_layout(node: Any, source: str) -> tuple[bool, tuple[int, int]]:
    """Return whether a group holds a matrix by rows (else by columns), and its shape."""
    kind = node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", ""))
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind[:3] not in ("csr", "csc"):
        raise FileFormatError(
            f"{source} stores {node.name} as {kind or 'a group'!r}; "
            "expected a dense array, csr_matrix or csc_matrix."
        )
    shape = tuple(int(length) for length in node.attrs.get("shape", node.attrs.get("h5sparse_shape")))
    if len(shape) != 2:
        raise FileFormatError(f"{source} stores {node.name} with the shape {shape}; expected two lengths.")
    return kind.startswith("csr"), shape


def _names(file: Any, side: str) -> list[str] | None:
    if side not in file:
        return None
    frame = file[side]
    if not is_group(frame):  # files from before AnnData 0.7: one array of records
        fields = frame.dtype.names or ()
        field = next((name for name in ("index", "_index") if name in fields), None)
        return None if field is None else text_of(frame[field])
    name = frame.attrs.get("_index", "_index")
    name = name.decode() if isinstance(name, bytes) else name
    if name not in frame:
        return None
    column = frame[name]
    if is_group(column):
        if "categories" in column:
            categories = text_of(column["categories"][()])
            codes = column["codes"][()].tolist()
            if not all(0 <= code < len(categories) for code in codes):
                raise FileFormatError(f"The names in {side!r} have codes without a category: it is damaged.")
            return [categories[code] for code in codes]
        return text_of(column["values"][()])
    return text_of(column[()])
