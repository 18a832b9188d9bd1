"""A matrix on disk that is read by blocks of rows, and never whole unless it fits in memory."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._optional import import_optional
from nonneg._typing import IntArray
from nonneg.exceptions import FileFormatError
from nonneg.io.memory import checked_memory, written_bytes
from nonneg.io.table import ReadOptions, check_two_axes, compressed_matrix, sound_sparse

# Larger blocks read no faster: a block of this size takes tens of milliseconds from a fast disk, a hundred
# times what it costs to begin one.
_BLOCK_BYTES = 128 * 10**6
# Two blocks are in memory, each with what its work needs for a while; the rest is for the factors.
_BLOCK_PART = 8
# Parts of a block that threads copy, several per thread so that none waits for the slowest.
N_PARTS = 32


def in_parts(function: Callable[[int, int], Any], n: int, workers: Executor) -> None:
    """Call a function on ranges, each of them a worker's."""
    step = -(-n // N_PARTS)
    for done in [workers.submit(function, at, min(at + step, n)) for at in range(0, n, step)]:
        done.result()


class StoredMatrix(AbstractContextManager["StoredMatrix"], ABC):
    """A matrix in a file, as `open_matrix` returns it: samples in rows, read block by block.

    Pass it to `NMF.fit`, `NMF.transform`, `factorize` or `non_negative_factorization`. A matrix that fits in
    `memory` is read whole; any other is read again in every iteration.

    Attributes
    ----------
    shape : tuple of int
        Number of samples and of features.
    dtype : numpy.dtype
        Type of the entries on disk. Integers become float64 block by block.
    is_sparse : bool
        Whether rows are stored as CSR.
    source : str
        Where the entries are.
    memory : int
        Number of bytes that a fit may use for blocks and factors.
    row_names, column_names : sequence of str or None
        Names of samples and features, where the file has them.
    """

    is_sparse: bool = False
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    source: str
    n_bytes: int  # on disk, which one pass reads
    memory: int
    row_names: Sequence[str] | None = None
    column_names: Sequence[str] | None = None
    labels: Sequence[str] | None = None  # of samples, from a column that is no feature
    label_name: str | None = None
    columns: IntArray | None = None  # the chosen columns; None for all
    converted_dtype: np.dtype[Any] | None = None  # what the user wants the entries to be
    chunk_rows: int = 1  # rows that are stored together
    file: Any = None  # what `close` closes

    def __init__(self, source: str, shape: Any, dtype: Any, memory: Any = None) -> None:
        self.source, self.dtype = source, np.dtype(dtype)
        self.shape = (int(shape[0]), int(shape[1]))
        self._stored_shape = self.shape  # before columns are chosen
        self.n_bytes = self.shape[0] * self.shape[1] * self.dtype.itemsize
        self.memory = checked_memory(memory)

    def __repr__(self) -> str:
        """Describe the matrix, not its entries."""
        kind = "sparse " if self.is_sparse else ""
        entries = f"{self.shape[0]} x {self.shape[1]} {kind}{self.dtype}"
        return f"{type(self).__name__}({entries}, {written_bytes(self.n_bytes)}, {self.source!r})"

    @property
    def working_dtype(self) -> np.dtype[Any]:
        """The type in which blocks are worked on: float32 if stored so, float64 otherwise."""
        dtype = self.converted_dtype or self.dtype
        return np.dtype(dtype if dtype in (np.float32, np.float64) else np.float64)

    @abstractmethod
    def _read(self, start: int, stop: int) -> Any:
        """Read all columns of a range of rows, as stored."""

    def read_rows(self, start: int, stop: int) -> Any:
        """Read a range of rows.

        Parameters
        ----------
        start, stop : int
            The first row, and the one after the last.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            The rows, in the type in which blocks are processed.
        """
        rows = self.read_stored(start, stop)
        if rows.dtype.kind in "biuf":
            rows = rows.astype(self.working_dtype, copy=False)
        return rows

    def read_stored(self, start: int, stop: int) -> Any:
        """Read the chosen columns of a range of rows, in the type that is stored."""
        rows = self._read(start, stop)
        return rows if self.columns is None else rows[:, self.columns]

    def read_into(self, out: Any, start: int, stop: int, writers: Executor) -> None:
        """Read a range of rows into memory that is there already, on several threads."""
        rows = self.read_rows(start, stop)
        in_parts(lambda at, end: np.copyto(out[at:end], rows[at:end]), stop - start, writers)

    def read_all(self) -> Any:
        """Read the whole matrix.

        Returns
        -------
        ndarray or scipy.sparse.csr_array
            The entries, in the type in which blocks are processed.
        """
        return self.read_rows(0, self.shape[0])

    def select(self, columns: IntArray) -> None:
        """Keep some columns only; the others are read and dropped."""
        self.columns = columns if self.columns is None else self.columns[columns]
        self.shape = (self.shape[0], len(columns))
        if self.column_names is not None:
            self.column_names = [self.column_names[at] for at in columns]

    def take_rows(self, rows: IntArray) -> Any:
        """Read some rows in ascending order, with the blocks in which they are."""
        edges = self.cuts()
        places = np.searchsorted(edges, rows, side="right") - 1
        parts = []
        for at in np.unique(places):
            block = self.read_rows(int(edges[at]), int(edges[at + 1]))
            parts.append(block[rows[places == at] - edges[at]])
        return sp.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)

    def row_bytes(self) -> float:
        """Return the bytes of a row in memory, on average."""
        return float(self._stored_shape[1] * self.working_dtype.itemsize)

    def fits(self) -> bool:
        """Tell whether the whole matrix fits in `memory`, with room for what a fit needs in addition.

        Returns
        -------
        bool
            Whether a fit reads it whole.
        """
        # Of a sparse matrix products with X' keep the transpose; integers exist twice while they are read.
        copies = 2 if self.is_sparse or self.working_dtype != self.dtype else 1
        return copies * self.row_bytes() * self.shape[0] <= 0.75 * self.memory

    def block_bytes(self) -> int:
        """Return the size of a block in memory."""
        return int(min(_BLOCK_BYTES, max(1, self.memory // _BLOCK_PART)))

    def cuts(self) -> IntArray:
        """Return the rows at which blocks begin, and the number of rows."""
        # Whole chunks: one that is cut in two would be read twice.
        n_rows = max(1, int(self.block_bytes() / max(self.row_bytes(), 1.0)))
        step = max(1, n_rows // self.chunk_rows) * self.chunk_rows
        n_bytes = min(step, self.shape[0]) * self.row_bytes()
        if 3 * n_bytes > self.memory and self.chunk_rows > 1:
            raise FileFormatError(
                f"{self.source} is stored in chunks of {self.chunk_rows} rows, which are "
                f"{written_bytes(n_bytes)} with all columns: two of them do not fit in "
                f"{written_bytes(self.memory)}. Write it again in chunks of fewer rows and all columns, or "
                "allow more memory."
            )
        return np.append(np.arange(0, self.shape[0], step), self.shape[0])

    def close(self) -> None:
        """Close the file, if it was opened for this matrix."""
        if self.file is not None:
            self.file.close()

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()


class FileRows(StoredMatrix):
    """Rows that lie one after another in a file."""

    def __init__(self, path: str | os.PathLike[str], shape: Any, dtype: Any, offset: int) -> None:
        super().__init__(str(path), shape, dtype)
        self.path, self.offset = Path(path).absolute(), int(offset)

    def _read(self, start: int, stop: int, out: Any = None) -> Any:
        rows: Any = np.empty((stop - start, self._stored_shape[1]), self.dtype) if out is None else out
        # Opened for each range: threads read at once, and no descriptor outlives a fork.
        with self.path.open("rb") as file:
            file.seek(self.offset + start * self._stored_shape[1] * self.dtype.itemsize)
            if file.readinto(rows.reshape(-1).view(np.uint8)) < rows.nbytes:
                raise FileFormatError(f"{self.source} is truncated, or has become shorter while it was read.")
        return rows

    def read_into(self, out: Any, start: int, stop: int, writers: Executor) -> None:
        """Read a range of rows into memory that is there already, on several threads."""
        if self.dtype == out.dtype and self.columns is None and out.flags.c_contiguous:
            in_parts(lambda at, end: self._read(start + at, start + end, out[at:end]), stop - start, writers)
        else:
            super().read_into(out, start, stop, writers)


class ArrayRows(StoredMatrix):
    """An array that is read by slices: a Zarr array, an HDF5 dataset, or a memory-mapped one."""

    def __init__(self, array: Any, source: str, memory: Any = None) -> None:
        check_two_axes(array.shape, source)
        super().__init__(source, array.shape, array.dtype, memory)
        self.array = array
        chunks = getattr(array, "shards", None) or getattr(array, "chunks", None)
        self.chunk_rows = min(int(chunks[0]), self.shape[0]) if chunks else 1

    def _read(self, start: int, stop: int) -> Any:
        return np.asarray(self.array[start:stop])


def memmap_rows(array: Any) -> StoredMatrix:
    """Open what a memory-mapped array shows: its file where that holds the same bytes, else its slices."""
    # Reading the file is faster than page faults, and its pages do not count as memory of the process. A
    # slice begins elsewhere in it, and changes may be in memory alone.
    whole = array.ndim == 2 and array.flags.c_contiguous and isinstance(array.base, mmap.mmap)
    if whole and array.mode == "r" and array.filename is not None:
        return FileRows(array.filename, array.shape, array.dtype, array.offset)
    return ArrayRows(array, str(array.filename or "a memory-mapped array"))


class CompressedRows(StoredMatrix):
    """The arrays of a CSR matrix, of which a block reads only its part, or of a CSC matrix, read whole."""

    is_sparse = True

    def __init__(
        self, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], source: str, memory: Any = None,
        *, by_columns: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(source, shape, data.dtype, memory)
        indptr, n_entries, length = np.asarray(indptr[:]), indices.shape[0], shape[by_columns]
        with sound_sparse(source):
            if (
                indptr.ndim != 1 or indptr.dtype.kind not in "iu" or len(indptr) != length + 1
                or data.shape[0] != n_entries or indptr[0] != 0 or indptr[-1] > n_entries
                or bool((indptr[1:] < indptr[:-1]).any())
            ):  # fmt: skip
                raise ValueError(f"indptr must rise from 0 to {n_entries} in {length + 1} entries")
        indptr = indptr.astype(np.int64, copy=False)
        self._parts, self._by_columns = (data, indices, indptr), by_columns
        self.nnz = int(indptr[-1])
        self._index_bytes = np.dtype(indices.dtype).itemsize
        self.n_bytes = self.nnz * (self.dtype.itemsize + self._index_bytes) + indptr.nbytes

    def row_bytes(self) -> float:
        """Return the bytes of a row in memory, on average."""
        # Columns that were left out are read all the same.
        return self.nnz * self._entry_bytes() / max(1, self.shape[0])

    def _entry_bytes(self) -> int:
        return self.working_dtype.itemsize + max(4, self._index_bytes)

    def cuts(self) -> IntArray:
        """Return the rows at which blocks begin, and the number of rows."""
        if self._by_columns:
            raise FileFormatError(
                f"{self.source} is stored by columns (CSC) and can only be read whole, but it does not fit "
                f"in {written_bytes(self.memory)}. Store it as CSR: adata.X = adata.X.tocsr(); or allow more "
                "memory."
            )
        # By the number of entries: rows may differ a thousandfold. Of arrays in one dimension a block reads
        # at most one chunk more at either end.
        most, indptr = max(1, self.block_bytes() // self._entry_bytes()), self._parts[2]
        longest = int(np.diff(indptr).max(initial=0))
        if 3 * longest * self._entry_bytes() > self.memory:
            raise FileFormatError(
                f"{self.source} has a row with {longest} entries: two rows of that size do not fit in "
                f"{written_bytes(self.memory)}. Allow more memory."
            )
        edges = [0]
        while edges[-1] < self.shape[0]:
            begin = edges[-1]
            stop = int(np.searchsorted(indptr, indptr[begin] + most, side="right")) - 1
            edges.append(min(max(stop, begin + 1), self.shape[0]))
        return np.asarray(edges)

    def _read(self, start: int, stop: int) -> Any:
        data, indices, indptr = self._parts
        build = partial(compressed_matrix, by_rows=not self._by_columns, source=self.source)
        if self._by_columns:
            return build(data[:], indices[:], indptr, self._stored_shape).tocsr()[start:stop]
        first, last = int(indptr[start]), int(indptr[stop])
        shape = stop - start, self._stored_shape[1]
        return build(data[first:last], indices[first:last], indptr[start : stop + 1] - first, shape)


class ParquetRows(StoredMatrix):
    """The row groups of a Parquet file."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        parquet = import_optional("pyarrow.parquet", extra="formats", purpose="Reading a .parquet file")
        self.file = parquet.ParquetFile(path)
        schema, about = self.file.schema_arrow, self.file.metadata
        empty = schema.empty_table()
        dtypes = {name: empty.column(name).to_numpy().dtype for name in schema.names}
        numeric = {name for name, dtype in dtypes.items() if dtype.kind in "biuf"}
        # The columns in which pandas stored the index of a data frame; a plain range is stored in none.
        indices = (schema.pandas_metadata or {}).get("index_columns", ())
        stored = [name for name in schema.names if name in indices]
        first = [name for name in schema.names[:1] if name not in (*options.mentioned, *options.known)]
        names = stored or (first if options.index is True or not numeric.issuperset(first) else [])
        index = names[0] if names and options.index is not False else None
        features = [name for name in schema.names if name != index and name not in stored]
        if not features:
            raise FileFormatError(f"{path} contains no numeric column.")
        places, label = options.places(features, len(features), str(path))
        if label is not None:
            self.label_name = features[label]
            self.labels = self._texts(self.label_name)
        features = [features[at] for at in places]
        if text := [name for name in features if name not in numeric]:
            raise FileFormatError(
                f"{path}, column {text[0]!r}: expected numbers, got {schema.field(text[0]).type}. Leave it "
                f"out with --drop {','.join(text)}, or make it the index of the data frame before writing."
            )
        # Empty cells become NaN, which whole numbers lack.
        common = np.result_type(*(dtypes[name] for name in features))
        dtype = common if common == np.float32 else np.float64
        super().__init__(str(path), (about.num_rows, len(features)), dtype)
        self._features = self.column_names = features
        self._edges = np.cumsum([0, *(about.row_group(at).num_rows for at in range(about.num_row_groups))])
        self.n_bytes = path.stat().st_size
        self.row_names = None if index is None else self._texts(index)
        self.chunk_rows = int(np.diff(self._edges).max(initial=1))

    def _texts(self, name: str) -> list[str]:
        return [str(value) for value in self.file.read(columns=[name]).column(name).to_pylist()]

    def _read(self, start: int, stop: int) -> Any:
        first = int(np.searchsorted(self._edges, start, side="right")) - 1
        last = int(np.searchsorted(self._edges, stop, side="left"))
        table = self.file.read_row_groups(list(range(first, last)), columns=self._features)
        rows = np.column_stack([table.column(name).to_numpy() for name in self._features])
        return rows[start - self._edges[first] : stop - self._edges[first]]
