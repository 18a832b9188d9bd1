"""Contents of stored arrays: digests that do not depend on how an archive was packed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Known(NamedTuple):
    """Description of a stored array."""

    dtype: str  # its type as NumPy writes it, such as ``"<u2"``
    shape: tuple[int, ...]  # its shape
    sha256: str  # the digest of its entries, row by row


def described(array: Any) -> Known:
    """Describe an array: type, shape and digest of its entries."""
    values = np.asarray(array)
    values = np.asarray(values, dtype=values.dtype.newbyteorder("<"), order="C")
    return Known(values.dtype.str, values.shape, hashlib.sha256(values.tobytes()).hexdigest())


def differences(arrays: Arrays, known: Mapping[str, Known]) -> list[str]:
    """List where arrays differ from what is known about them."""
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
    """Return the arrays by which SciPy stores a sparse matrix in an .npz file."""
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
    """Return integers from 0 in the smallest type that holds each of them exactly."""
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
