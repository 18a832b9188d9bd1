"""Find stored arrays among the variables of a file by what is known of their contents.

The names of variables in other people's files are theirs to choose; the entries are what was agreed on. An
array is taken from whichever variable has the known entries, as it is, turned over, or counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError
from reproduction.data.content import Known, described, differences, sparse_arrays

Variables = Mapping[str, Any]


def located(variables: Variables, known: Known, what: str) -> np.ndarray[Any, Any]:
    """Return the dense array with the known entries."""
    for value in variables.values():
        if hasattr(value, "tocsr") or np.asarray(value).dtype.kind not in "buif":
            continue
        for view in _views(np.asarray(value), known.shape):
            array = _cast(view, known.dtype)
            if array is not None and described(array) == known:
                return array
    raise _nothing_found(variables, f"{what}, {known.dtype} of shape {known.shape}")


def located_sparse(variables: Variables, known: Mapping[str, Known], what: str) -> dict[str, Any]:
    """Return the arrays of the sparse matrix with the known entries."""
    import scipy.sparse

    for value in variables.values():
        matrix = value
        if not hasattr(value, "tocsr"):
            array = np.asarray(value)
            if array.ndim != 2 or min(array.shape) < 2 or array.dtype.kind not in "buif":
                continue
            matrix = scipy.sparse.csr_array(array)
        for turned in (matrix, matrix.T):
            arrays = sparse_arrays(turned)
            if not differences(arrays, known):
                return arrays
    raise _nothing_found(variables, what)


def _views(array: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    """Yield the variants of an array that may be the stored one."""
    candidates = [array, array.T]
    if array.size == np.prod(shape):
        # Labels are columns in MATLAB; pixels of an image may lie in one row.
        candidates += [array.reshape(shape), array.reshape(shape, order="F")]
    for candidate in candidates:
        if candidate.shape == shape:
            yield candidate
            if len(shape) == 1:
                yield candidate.astype(np.float64) - 1.0  # counted from 1


def _cast(array: Any, dtype: str) -> Any:
    """Return the array in another type, or None where an entry would change."""
    with np.errstate(invalid="ignore"):
        cast = array.astype(dtype)
    return cast if np.array_equal(cast, array) else None


def _nothing_found(variables: Variables, wanted: str) -> FileFormatError:
    shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in variables.items()) or "nothing"
    return FileFormatError(
        f"Expected {wanted}, with known entries, among the variables of the source, which contains: "
        f"{shapes}. The source is damaged or a different version."
    )
