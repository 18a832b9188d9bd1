"""Sparse matrices on disk: rows of CSR groups as AnnData and 10x Genomics write them to HDF5 or Zarr."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from typing import Any

import numpy as np

from nonneg._lazy import cached_property
from nonneg._typing import IntArray
from nonneg.exceptions import FileFormatError, NonnegWarning, OutputError
from nonneg.io.memory import temporary_array, written_bytes
from nonneg.io.stored import StoredMatrix
from nonneg.io.table import compressed_matrix


class CompressedRows(StoredMatrix):
    """The arrays of a CSR matrix; of data and indices only what a block needs is read."""

    is_sparse = True

    def __init__(
        self, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], source: str, memory: Any = None,
        *, file: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(source, shape, memory)
        self.dtype = np.dtype(data.dtype)
        self._data, self._indices, self._file = data, indices, file
        self._indptr = _checked_indptr(np.asarray(indptr[:]), data.shape[0], indices.shape[0], shape, source)
        self.nnz = int(self._indptr[-1])
        self._index_bytes = np.dtype(indices.dtype).itemsize
        self.n_bytes = self.nnz * (self.dtype.itemsize + self._index_bytes) + self._indptr.nbytes

    def row_bytes(self) -> float:
        """Return the bytes of a row in memory, on average."""
        # Columns that were left out are read all the same.
        return self.nnz * self._entry_bytes() / max(1, self.shape[0])

    def _entry_bytes(self) -> int:
        return self.working_dtype.itemsize + max(4, self._index_bytes)

    def cuts(self) -> IntArray:
        """Return the rows at which blocks begin, and the number of rows."""
        # By the number of entries: rows may differ a thousandfold. Of arrays in one dimension a block reads
        # at most one chunk more at either end.
        most = max(1, self.block_bytes() // self._entry_bytes())
        longest = int(np.diff(self._indptr).max(initial=0))
        if 3 * longest * self._entry_bytes() > self.memory:
            raise FileFormatError(
                f"{self.source} has a row with {longest} entries: two rows of that size do not fit in "
                f"{written_bytes(self.memory)}. Allow more memory."
            )
        edges = [0]
        while edges[-1] < self.shape[0]:
            begin = edges[-1]
            stop = int(np.searchsorted(self._indptr, self._indptr[begin] + most, side="right")) - 1
            edges.append(min(max(stop, begin + 1), self.shape[0]))
        return np.asarray(edges)

    def _read(self, start: int, stop: int) -> Any:
        indptr = self._indptr[start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        indptr = indptr - first
        small = max(last - first, self._stored_shape[1]) <= np.iinfo(np.int32).max
        index = np.int32 if small else np.int64
        indices = np.asarray(self._indices[first:last])
        return compressed_matrix(
            np.asarray(self._data[first:last]),
            indices.astype(index, copy=False) if indices.dtype.kind in "iu" else indices,
            indptr.astype(index),
            (stop - start, self._stored_shape[1]),
            by_rows=True,
            source=self.source,
        )

    def close(self) -> None:
        """Close the file, if it was opened for this matrix."""
        if self._file is not None:
            self._file.close()


class CompressedColumns(StoredMatrix):
    """The arrays of a CSC matrix: read whole where it fits, else rewritten by rows before the first block."""

    is_sparse = True

    def __init__(
        self, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], source: str, memory: Any = None,
        *, file: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(source, shape, memory)
        self.dtype = np.dtype(data.dtype)
        self._parts, self._file = (data, indices, indptr), file
        self._index_bytes = max(4, np.dtype(indices.dtype).itemsize)
        self.nnz = int(data.shape[0])
        self.n_bytes = self.nnz * (self.dtype.itemsize + self._index_bytes)

    def row_bytes(self) -> float:
        """Return the bytes of a row in memory, on average."""
        return self.nnz * (self.working_dtype.itemsize + self._index_bytes) / max(1, self.shape[0])

    @cached_property
    def _rows(self) -> CompressedRows:
        parts = by_rows(*self._parts, self._stored_shape, self.source, self.memory)
        rows = CompressedRows(*parts, self._stored_shape, self.source, self.memory)
        rows.converted_dtype = self.converted_dtype
        return rows

    def cuts(self) -> IntArray:
        """Return the rows at which blocks begin, and the number of rows."""
        return self._rows.cuts()

    def _read(self, start: int, stop: int) -> Any:
        if "_rows" not in vars(self) and (start, stop) == (0, self.shape[0]):
            data, indices, indptr = (part[:] for part in self._parts)
            return compressed_matrix(
                data, indices, indptr, self._stored_shape, by_rows=False, source=self.source
            ).tocsr()
        return self._rows._read(start, stop)

    def close(self) -> None:
        """Close the file, if it was opened for this matrix."""
        if self._file is not None:
            self._file.close()


def _checked_indptr(indptr: Any, n_data: int, n_indices: int, shape: tuple[int, int], source: str) -> Any:
    if (
        indptr.ndim != 1 or indptr.dtype.kind not in "iu" or len(indptr) != shape[0] + 1
        or n_data != n_indices or indptr[0] != 0 or indptr[-1] > n_indices
        or bool((indptr[1:] < indptr[:-1]).any())
    ):  # fmt: skip
        raise FileFormatError(
            f"{source} contains a sparse matrix with impossible indices: indptr must rise from 0 to "
            f"{n_indices} in {shape[0] + 1} entries. Write it again from its source."
        )
    return indptr.astype(np.int64, copy=False)


def by_rows(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], source: str, memory: int
) -> tuple[Any, Any, Any]:
    """Rewrite a CSC matrix by rows, into temporary files that vanish with the arrays."""
    indptr = _checked_indptr(np.asarray(indptr[:]), data.shape[0], indices.shape[0], shape[::-1], source)
    nnz, n_rows = int(indptr[-1]), shape[0]
    column_type = np.dtype(np.int32 if shape[1] <= np.iinfo(np.int32).max else np.int64)
    value_type = np.dtype(data.dtype)
    needed = nnz * (value_type.itemsize + column_type.itemsize)
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OutputError(
            f"{source} is stored by columns (CSC) and must be rewritten by rows, which takes "
            f"{written_bytes(needed)}; {folder} has {written_bytes(free)} left. Set TMPDIR to a larger disk, "
            "or write the file as CSR."
        )
    warnings.warn(
        f"{source} is stored by columns (CSC): it is rewritten by rows once, to a temporary file of "
        f"{written_bytes(needed)} in {folder}. Write it as CSR to avoid that.",
        NonnegWarning,
        stacklevel=2,
    )
    # Entries whose rows, columns, order and values are in memory at a time.
    step = max(1, memory // (8 * (value_type.itemsize + 24)))
    counts = np.zeros(n_rows + 1, dtype=np.int64)
    for first in range(0, nnz, step):
        rows = _checked_rows(np.asarray(indices[first : min(nnz, first + step)]), n_rows, source)
        counts[1:] += np.bincount(rows, minlength=n_rows)
    pointers = np.cumsum(counts)
    values, columns = temporary_array((nnz,), value_type), temporary_array((nnz,), column_type)
    free_place = pointers[:-1].copy()
    for first in range(0, nnz, step):
        last = min(nnz, first + step)
        rows = _checked_rows(np.asarray(indices[first:last]), n_rows, source)
        of_column = np.searchsorted(indptr, np.arange(first, last), side="right") - 1
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        # The n-th entry of a row in this part goes n places after the first free one.
        begins = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
        within = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
        place = free_place[rows] + within
        values[place] = np.asarray(data[first:last])[order]
        columns[place] = of_column[order]
        free_place += np.bincount(rows, minlength=n_rows)
    return values, columns, pointers


def _checked_rows(rows: Any, n_rows: int, source: str) -> Any:
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
        raise FileFormatError(
            f"{source} contains a sparse matrix with impossible indices: rows from {rows.min()} to "
            f"{rows.max()} of {n_rows}. Write it again from its source."
        )
    return rows
