"""Open a matrix on disk without reading it: a file by its path, or an array of Zarr, HDF5 or AnnData."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.io.hdf5 import chosen_group, chosen_matrix, is_group, open_checked, sparse_layout
from nonneg.io.memory import checked_memory
from nonneg.io.read import format_of, read_with
from nonneg.io.stored import (
    ArrayRows,
    CompressedColumns,
    CompressedRows,
    FileRows,
    StoredMatrix,
    memmap_rows,
    npy_rows,
)
from nonneg.io.table import Contents, ReadOptions, check_variable, choose_variable


def open_matrix(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    memory: int | str | None = None,
    dtype: str | None = None,
) -> StoredMatrix:
    """Open a matrix on disk, to be read by blocks of rows.

    Parameters
    ----------
    path : str or path
        A ``.npy`` file, a Zarr array or AnnData store (a folder that ends in ``.zarr``), an ``.h5ad`` file, a
        10x Genomics or other HDF5 file (``.h5``), or a Parquet file.
    variable : str, optional
        Which array of a file that contains several, such as ``"layers/counts"`` of an ``.h5ad`` file or the
        path of a dataset in an HDF5 file.
    memory : int or str, optional
        How much memory a fit may use, in bytes or as text such as ``"2GB"``. A matrix that fits is read
        whole. None is half of the memory of the machine (or of the container it runs in).
    dtype : {"float32", "float64"}, optional
        Convert the entries to this type, block by block. None keeps float32, and converts everything
        else to float64.

    Returns
    -------
    StoredMatrix
        What `NMF.fit` and `factorize` take as X.

    See Also
    --------
    nonneg.NMF : The estimator.
    nonneg.factorize : The function behind it.

    Notes
    -----
    A matrix that is stored by columns (CSC) is rewritten by rows once, to a temporary file in the folder that
    ``TMPDIR`` names.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from nonneg import NMF, open_matrix
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "X.npy"
    >>> np.save(path, np.random.default_rng(0).random((300, 20), dtype=np.float32))
    >>> X = open_matrix(path, memory="16kB")
    >>> X.fits()
    False
    >>> NMF(3, max_iter=5, tol=0).fit(X).components_.shape
    (3, 20)
    """
    if dtype not in (None, "float32", "float64"):
        raise InvalidParameterError(f"dtype={dtype!r} is not allowed. Expected 'float32', 'float64' or None.")
    stored = open_stored(Path(path), ReadOptions(variable=variable), memory)
    if dtype is not None:
        stored.converted_dtype = np.dtype(dtype)
    return stored


def open_stored(path: Path, options: ReadOptions, memory: Any) -> StoredMatrix:
    """Open a file as its ending says, with what the caller knows about it."""
    found = format_of(path)
    check_variable(options.variable, path, found.words, several=found.several)
    opener = _OPENERS.get(found.opener)
    if opener is None:
        raise FileFormatError(
            f"{path} is {found.words}, which can only be read whole. To read it block by block, write it as "
            ".npy, .zarr, .h5ad or .parquet."
        )
    memory = checked_memory(memory)
    stored = read_with(found, path, lambda: opener(path, options, memory))
    if options.selection and found.opener != "parquet":
        kept, _ = options.selection.places(stored.column_names, stored.shape[1], str(path))
        stored.select(np.asarray(kept, dtype=np.int64))
    return stored


def can_be_streamed(path: Path) -> bool:
    """Tell whether the rows of a file can be read block by block."""
    return bool(format_of(path).opener)


def read_whole(path: Path, options: ReadOptions) -> Contents:
    """Read a matrix whose rows could be read block by block whole, as it is stored, with its names."""
    found = format_of(path).opener
    with _OPENERS[found](path, options, checked_memory(None)) as stored:
        X = stored.read_stored(0, stored.shape[0])
        names = stored.row_names, stored.column_names, stored.labels, stored.label_name
        return Contents(X, *names, selected=found == "parquet")


def _open_npy(path: Path, options: ReadOptions, memory: int) -> StoredMatrix:
    return npy_rows(path, memory)


def _open_parquet(path: Path, options: ReadOptions, memory: int) -> StoredMatrix:
    from nonneg.io.parquet import ParquetRows

    return ParquetRows(path, options, memory)


def _open_h5ad(path: Path, options: ReadOptions, memory: int) -> StoredMatrix:
    file = open_checked(path, "Reading a .h5ad file")
    return _annotated(file, options, str(path), memory, file)


def _annotated(root: Any, options: ReadOptions, source: str, memory: int, file: Any = None) -> StoredMatrix:
    node, rows, columns, kept = chosen_matrix(root, options, source)
    stored = _node_rows(node, source, memory, file)
    if kept is not None:
        stored.select(np.asarray(kept, dtype=np.int64))
    stored.row_names, stored.column_names = rows, columns
    return stored


def _open_hdf5(path: Path, options: ReadOptions, memory: int) -> StoredMatrix:
    """Open the counts of 10x Genomics, or the dataset that `variable` names."""
    file = open_checked(path, "Reading an HDF5 file")
    if options.variable and options.variable in file and not is_group(file[options.variable]):
        return _node_rows(file[options.variable], str(path), memory, file)
    group, shape, rows, columns = chosen_group(file, options.variable, path)
    data, indices, indptr = (group[name] for name in ("data", "indices", "indptr"))
    stored = CompressedRows(data, indices, indptr, shape, str(path), memory, file=file)
    stored.row_names, stored.column_names = rows, columns
    return stored


def _open_zarr(path: Path, options: ReadOptions, memory: int) -> StoredMatrix:
    """Open a Zarr array, one of a group, or the matrix of an AnnData store."""
    zarr = import_optional("zarr", extra="formats", purpose="Reading a Zarr array")
    node = zarr.open(str(path), mode="r")
    if not is_group(node):
        if options.variable is not None:
            raise InvalidParameterError(
                f"variable={options.variable!r} (--variable) chooses among several arrays, but {path} "
                f"contains only one: leave it out."
            )
        return _node_rows(node, str(path), memory)
    if "X" in node or options.variable is not None:
        return _annotated(node, options, str(path), memory)
    shapes = {name: tuple(one.shape) for name, one in node.arrays()}
    return _node_rows(node[choose_variable(shapes, None, str(path))], str(path), memory)


_OPENERS: dict[str, Any] = {
    "npy": _open_npy,
    "zarr": _open_zarr,
    "h5ad": _open_h5ad,
    "hdf5": _open_hdf5,
    "parquet": _open_parquet,
}


def _node_rows(node: Any, source: str, memory: int, file: Any = None) -> StoredMatrix:
    """Open a dataset of HDF5 or Zarr, or a group that contains a sparse matrix."""
    if is_group(node):
        rows_first, shape = sparse_layout(node, source)
        data, indices, indptr = (node[name] for name in ("data", "indices", "indptr"))
        kind = CompressedRows if rows_first else CompressedColumns
        return kind(data, indices, indptr, shape, source, memory, file=file)
    offset = node.id.get_offset() if hasattr(node, "id") and getattr(node, "chunks", 1) is None else None
    if offset is not None and len(node.shape) == 2 and node.dtype.kind in "biuf" and not node.external:
        # Rows that lie one after another: read without the lock that HDF5 holds for all of Python.
        stored = FileRows(node.file.filename, node.shape, node.dtype, offset, memory=memory)
        stored.source = source
        return stored
    return ArrayRows(node, source, memory, file=file)


def as_stored(X: Any, memory: Any = None) -> StoredMatrix | None:
    """Return an array on disk as a matrix that is read by rows; None for arrays in memory.

    Takes what `open_matrix` returns, `numpy.memmap`, Zarr arrays, HDF5 datasets, groups of either in
    AnnData's sparse encoding, and the sparse datasets of an AnnData object in backed mode.
    """
    if isinstance(X, StoredMatrix):
        return X
    if isinstance(X, np.memmap):
        return memmap_rows(X, memory) if X.ndim == 2 and X.dtype.kind in "biuf" else None
    library = type(X).__module__.partition(".")[0]
    if library == "anndata" and hasattr(X, "group") and hasattr(X, "format"):
        X = X.group
        library = type(X).__module__.partition(".")[0]
    if library not in ("h5py", "zarr") or not (is_group(X) or hasattr(X, "shape")):
        return None
    name = getattr(getattr(X, "file", None), "filename", None) or str(getattr(X, "store", "")) or library
    return _node_rows(X, str(name), checked_memory(memory))
