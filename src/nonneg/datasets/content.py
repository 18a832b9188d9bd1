"""The contents of stored arrays: digests that do not depend on how an archive was packed."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nonneg.exceptions import FileFormatError

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Known(NamedTuple):
    """What is known about a stored array.

    Parameters
    ----------
    dtype : str
        Its type as NumPy writes it, such as ``"<u2"``.
    shape : tuple of int
        Its shape.
    sha256 : str
        The digest of its entries, row by row.
    """

    dtype: str
    shape: tuple[int, ...]
    sha256: str


def described(array: Any) -> Known:
    """Describe an array: type, shape and digest of its entries.

    Parameters
    ----------
    array : array
        Plain numbers or text.

    Returns
    -------
    Known
        The same for the same entries, whatever the byte order of the machine and the layout in memory.
    """
    values = np.asarray(array)
    values = np.asarray(values, dtype=values.dtype.newbyteorder("<"), order="C")
    return Known(values.dtype.str, values.shape, hashlib.sha256(values.tobytes()).hexdigest())


def read_archive(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of an .npz file by name; nothing is unpickled.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of str to array
        As stored.

    Raises
    ------
    FileFormatError
        If it is no archive of plain arrays.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            f"{path} cannot be read as an .npz file of plain arrays: {error}. Replace it."
        ) from error


def differences(arrays: Arrays, known: Mapping[str, Known]) -> list[str]:
    """List where arrays differ from what is known about them.

    Parameters
    ----------
    arrays : mapping of str to array
        What is there.
    known : mapping of str to Known
        What should be there.

    Returns
    -------
    list of str
        One sentence an array; empty where all are the same.
    """
    found = [f"{name} is missing" for name in known if name not in arrays]
    found += [f"{name} is not expected" for name in arrays if name not in known]
    for name in known.keys() & arrays.keys():
        now = described(arrays[name])
        if now[:2] != known[name][:2]:
            found.append(
                f"{name} is {now.dtype} of shape {now.shape}, not {known[name].dtype} of {known[name].shape}"
            )
        elif now.sha256 != known[name].sha256:
            found.append(f"{name} has other entries")
    return sorted(found)


def sparse_arrays(matrix: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays by which SciPy stores a sparse matrix in an .npz file.

    Parameters
    ----------
    matrix : sparse matrix
        Any; rows are stored one after another, columns in order, without zeros.

    Returns
    -------
    dict of str to array
        What `scipy.sparse.load_npz` reads.
    """
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    rows.sort_indices()
    return {
        "indices": rows.indices.astype(np.int32),
        "indptr": rows.indptr.astype(np.int32),
        "format": np.array(b"csr"),
        "shape": np.array(rows.shape, dtype=np.int64),
        "data": narrowed(rows.data),
    }


def narrowed(values: Any) -> np.ndarray[Any, Any]:
    """Return whole numbers from 0 in the smallest type that holds each of them exactly.

    Parameters
    ----------
    values : array
        Any.

    Returns
    -------
    array
        The same values; as they came where one is negative, broken or no number.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "buif" or not array.size:
        return array
    if array.min() < 0 or not np.array_equal(array, np.floor(array)):
        return array
    largest = array.max()
    for kind in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(kind).max:
            return array.astype(kind)
    return array
