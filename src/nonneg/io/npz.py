"""Readers of .npy and .npz: NumPy arrays, or a sparse matrix as scipy.sparse.save_npz writes it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nonneg._typing import SparseMatrix
from nonneg.exceptions import FileFormatError, UnsafeFileError
from nonneg.io.limits import check_archive, check_expansion
from nonneg.io.table import ReadOptions, Table, choose_array, compressed_matrix, sound_sparse


def map_array(path: Path) -> Any:
    """Map the array of a .npy file, whose entries are not read yet."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        if "Python objects" in str(error):
            raise unsafe_file(path) from error
        raise


def read_npz(path: Path, options: ReadOptions) -> Table:
    """Read one dense array, or the sparse matrix."""
    arrays = arrays_of(path)
    if {"format", "shape", "data"} <= arrays.keys() and options.variable is None:
        return Table(_read_sparse(path, arrays))
    array = choose_array(arrays, options.variable, str(path))
    if array.dtype.hasobject:
        raise unsafe_file(path)
    return Table(array)


def arrays_of(path: Path) -> dict[str, Any]:
    """Read the arrays of an archive; objects, which are not read, leave an empty array of their type."""
    with zipfile.ZipFile(path) as archive:
        check_archive(archive, path)
    arrays = {}
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            try:
                arrays[name] = stored[name]
            except (ValueError, MemoryError) as error:
                # NumPy makes room for all that a header declares before it reads.
                if "allow_pickle" not in str(error):
                    raise FileFormatError(f"{path} is corrupt or truncated: {name}: {error}") from error
                arrays[name] = np.empty(0, dtype=object)
    arrays = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    if not arrays:
        raise FileFormatError(f"{path} is a zip archive without NumPy arrays.")
    return arrays


def _read_sparse(path: Path, arrays: dict[str, Any]) -> SparseMatrix:
    if any(array.dtype.hasobject for array in arrays.values()):
        raise unsafe_file(path)
    with sound_sparse(path):
        form, shape = arrays["format"].astype(str).item(), (int(arrays["shape"][0]), int(arrays["shape"][1]))
        check_expansion(8.0 * shape[0], path)  # of nearly empty rows a small file may declare any number
        if form == "coo":
            return sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
        if form not in ("csr", "csc"):
            raise ValueError(f"the format {form!r} where csr, csc or coo was expected")
        data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
        return compressed_matrix(data, indices, indptr, shape, by_rows=form == "csr", source=str(path))


def unsafe_file(path: Path) -> UnsafeFileError:
    """Build the error for a file that would need pickle."""
    return UnsafeFileError(
        f"{path} contains Python objects, which only pickle can read, and a pickle can run code: "
        "it is rejected. Save plain numbers instead, such as numpy.save(path, array.astype(float))."
    )
