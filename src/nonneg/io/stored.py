"""A matrix on disk that is read by blocks of rows, and never whole unless it fits in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import IntArray
from nonneg.exceptions import FileFormatError
from nonneg.io.memory import checked_memory, written_bytes

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


class StoredMatrix(ABC):
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
    columns: IntArray | None = None  # the chosen columns; None for all
    converted_dtype: np.dtype[Any] | None = None  # what the user wants the entries to be
    chunk_rows: int = 1  # rows that are stored together

    def __init__(self, source: str, shape: Any, memory: Any = None) -> None:
        self.source = source
        self.shape = (int(shape[0]), int(shape[1]))
        self._stored_shape = self.shape  # before columns are chosen
        self.memory = checked_memory(memory)

    def __repr__(self) -> str:
        """Describe the matrix, not its entries."""
        kind = "sparse " if self.is_sparse else ""
        entries = f"{self.shape[0]} x {self.shape[1]} {kind}{self.dtype}"
        return f"{type(self).__name__}({entries}, {written_bytes(self.n_bytes)}, {self.source!r})"

    @property
    def ndim(self) -> int:
        """The number of dimensions, 2."""
        return len(self.shape)

    @property
    def working_dtype(self) -> np.dtype[Any]:
        """The type in which blocks are worked on: float32 if stored so, float64 otherwise."""
        kept = self.converted_dtype or self.dtype
        return np.dtype(kept if kept in (np.float32, np.float64) else np.float64)

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
        rows = self._read(start, stop)
        if self.columns is not None:
            rows = rows[:, self.columns]
        if rows.dtype.kind in "biuf":
            rows = rows.astype(self.working_dtype, copy=False)
        return rows

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
        wanted = max(1, int(self.block_bytes() / max(self.row_bytes(), 1.0)))
        step = max(1, wanted // self.chunk_rows) * self.chunk_rows
        self.check_chunk(min(step, self.shape[0]) * self.row_bytes())
        return np.append(np.arange(0, self.shape[0], step), self.shape[0])

    def check_chunk(self, n_bytes: float) -> None:
        """Reject chunks with too many rows for two of them to fit in memory."""
        if 3 * n_bytes > self.memory and self.chunk_rows > 1:
            raise FileFormatError(
                f"{self.source} is stored in chunks of {self.chunk_rows} rows, which are "
                f"{written_bytes(n_bytes)} with all columns: two of them do not fit in "
                f"{written_bytes(self.memory)}. Write it again in chunks of fewer rows and all columns, or "
                "allow more memory."
            )

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> StoredMatrix:
        """Return the matrix."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()
