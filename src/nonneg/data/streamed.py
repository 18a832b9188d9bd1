"""Entries on disk, read in blocks of rows: the next block is read by a thread while the last is worked on.

A pass over the data is one read of the file. Two blocks are in memory; arrays with one row per sample are
NumPy arrays, in a temporary file where they would take too much of the budget. The first pass checks the
entries and computes all statistics, so that these cost no further one.
"""

from __future__ import annotations

import copy
import hashlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from array_api_compat import numpy as array_api_numpy

from nonneg._arrays import to_numpy
from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.local import local_matrix, observed_mask
from nonneg.data.matrix import BlockedMatrix, LocalMatrix, RowFunction, Statistics
from nonneg.data.observed import EntryWeights
from nonneg.data.sparse import SparseMatrix
from nonneg.data.spectral import DENSE_COLUMNS
from nonneg.io.memory import temporary_array, written_bytes
from nonneg.io.stored import StoredMatrix
from nonneg.iteration.progress import PassReporter

# A solver holds about six arrays of the size of W; beyond this part of the budget each they go to disk.
_SAMPLE_PART = 12
_PART = 1 << 20  # entries that are cast at a time


class StreamedMatrix(BlockedMatrix):
    """A matrix on disk, as one block of rows after another."""

    container = "streamed"

    def __init__(
        self, stored: StoredMatrix, *, weights: Any = None, mask: Any = None, missing: str = "error",
        verbose: int = 0,
    ) -> None:  # fmt: skip
        self.stored = stored
        self.shape = (int(stored.shape[0]), int(stored.shape[1]))
        self.dtype = stored.working_dtype
        self.xp: Any = array_api_numpy
        self.weights = None if weights is None else np.asarray(weights, dtype=self.dtype)
        self.has_mask = mask is not None or missing == "mask"
        self._mask, self._nan_is_missing = mask, missing == "mask"
        self.is_weighted = isinstance(mask, EntryWeights)
        self._edges = [int(edge) for edge in stored.cuts()]
        self._digest = ""
        self.n_passes = 0  # reads of the file so far
        self.progress = PassReporter(stored.source, stored.n_bytes, verbose)

    @property
    def n_missing(self) -> int:
        """The number of entries that were not observed."""
        return self.statistics.n_missing

    @property
    def block_bytes(self) -> float:
        """The size of the largest block in memory."""
        return float(np.diff(self._edges).max()) * self.stored.row_bytes()

    def _ranges(self) -> list[tuple[int, int]]:
        return list(zip(self._edges[:-1], self._edges[1:], strict=True))

    def _wrapped(self, entries: Any, start: int, stop: int) -> LocalMatrix:
        weights = None if self.weights is None else self.weights[start:stop]
        mask = None if self._mask is None else self._mask[start:stop]
        if self._nan_is_missing and self.has_mask:
            mask = observed_mask(entries, mask)
        block = local_matrix(entries, weights=weights, mask=mask)
        if isinstance(block, SparseMatrix):
            block.single_use = True
        return block

    def _blocks(self) -> Iterator[tuple[int, int, LocalMatrix]]:
        """Yield the blocks; while one is worked on, the next one is read."""
        ranges = self._ranges()
        self.n_passes += 1
        self.progress.begin(self.n_passes)
        with ThreadPoolExecutor(1, thread_name_prefix="nonneg-read") as reader:
            ahead = [reader.submit(self.stored.read_rows, *ranges[0])]
            for (start, stop), following in zip(ranges, [*ranges[1:], None], strict=True):
                # Taken out of the list: what was asked of the reader would hold the block as well.
                block = self._wrapped(ahead.pop().result(), start, stop)
                if following is not None:
                    ahead.append(reader.submit(self.stored.read_rows, *following))
                yield start, stop, block
                del block
                self.progress.update(stop / self.shape[0])

    def _rows_alone(self) -> Iterator[tuple[int, int, Any]]:
        """Yield blocks that know their rows but not their entries."""
        for start, stop in self._ranges():
            weights = None if self.weights is None else self.weights[start:stop]
            yield start, stop, DenseMatrix(np.empty((stop - start, 0), self.dtype), self.xp, weights=weights)

    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function on every block, in one pass over the file."""
        new: list[Any] = []
        sums: tuple[Any, ...] | None = None
        blocks = self._rows_alone() if getattr(function, "rows_only", False) else self._blocks()
        for start, stop, block in blocks:
            rows, small = function(block, *(array[start:stop] for array in sample_arrays), **shared)
            if not new:
                new = [self._sample_array(part.shape[1:], part.dtype) for part in rows]
            for whole, part in zip(new, rows, strict=True):
                whole[start:stop] = part
            sums = small if sums is None else tuple(a + b for a, b in zip(sums, small, strict=True))
            del block, rows, small  # or three blocks would be in memory while the next one is read
        assert sums is not None
        return tuple(new), sums

    def _sample_array(self, columns: tuple[int, ...], dtype: Any) -> Any:
        shape = (self.shape[0], *columns)
        large = np.prod(shape) * np.dtype(dtype).itemsize > self.stored.memory / _SAMPLE_PART
        return temporary_array(shape, dtype) if large else np.empty(shape, dtype=dtype)

    def examine(self, check: Callable[[LocalMatrix, int], None] | None = None) -> None:
        """Compute all statistics in one pass, calling `check` with each block and its first row."""
        known: Statistics | None = None
        digest = self._new_digest()
        for start, _, block in self._blocks():
            if check is not None:
                check(block, start)
            digest.add(block)
            found = Statistics.of(block)
            known = found if known is None else known + found
            del block
        assert known is not None
        self._known, self._digest = known, digest.hexdigest()
        if self._mask is None and not known.n_missing:
            self.has_mask = False  # complete data keep the solvers for complete data

    def _new_digest(self) -> Any:
        return _Digest()

    @property
    def statistics(self) -> Statistics:
        """All statistics, from the first pass."""
        if self._known is None:
            self.examine()
        assert self._known is not None
        return self._known

    def planned_passes(self, init: str, n_iter: float, n_init: int, end: int) -> str:
        """Say how often a fit will read the file."""
        # Singular vectors of many columns take about 10 products (`spectral`), of few one Gram matrix.
        first = n_init * (10 if init.startswith("nndsvd") and self.shape[1] > DENSE_COLUMNS else 2)
        most, size = self.n_passes + first + n_iter + end, self.stored.n_bytes
        return (
            f"{self.progress.name}: {written_bytes(size)} in {len(self._edges) - 1} blocks. It will be read "
            f"at most {most:g} times ({written_bytes(most * size)}): {self.n_passes} to check it, about "
            f"{first} for the initialization, 1 per iteration, {end} at the end, and 1 more for every "
            f"step that is repeated. The last read took {self.progress.seconds:.1f} s."
        )

    def digest(self) -> str:
        """Return what identifies the entries, from the first pass; it does not depend on the blocks."""
        known = self.statistics
        weights = b"" if self.weights is None else np.ascontiguousarray(self.weights).tobytes()
        facts = f"{self.shape} {self.dtype} {self._digest} {known.n_missing} {known.observed_weight}"
        return hashlib.sha256(facts.encode() + weights).hexdigest()

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample, in memory or in a temporary file."""
        array = to_numpy(array)
        new = self._sample_array(array.shape[1:], self.dtype)
        new[...] = array
        return new

    def sample_matrix(self, W: SampleArray) -> LocalMatrix:
        """Return an array with one row per sample as data, with the same row weights."""
        weights = None if self.weights is None else self.xp.astype(self.weights, W.dtype)
        return DenseMatrix(W, self.xp, weights=weights)

    def to_device(self, array: Any) -> Array:
        """Return a NumPy array of the dtype of the blocks."""
        return np.ascontiguousarray(to_numpy(array), dtype=self.dtype)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the blocks one by one."""
        for _, _, block in self._blocks():
            yield block
            del block

    def select(self, rows: Any) -> LocalMatrix:
        """Return some rows in memory, in ascending order, with their weights and mask."""
        index = np.asarray(rows, dtype=np.int64)
        mask = None if self._mask is None else self._mask[index]
        entries = self.stored.take_rows(index)
        if self._nan_is_missing and self.has_mask:
            mask = observed_mask(entries, mask)
        weights = None if self.weights is None else self.weights[index]
        return local_matrix(entries, weights=weights, mask=mask)

    def with_columns(self, columns: Any) -> StreamedMatrix:
        """Return some columns in another order; they are checked already."""
        stored = copy.copy(self.stored)
        stored.select(np.asarray(columns, dtype=np.int64))
        nan = "mask" if self._nan_is_missing else "error"
        mask = None if self._mask is None else self._mask[:, columns]
        return StreamedMatrix(
            stored, weights=self.weights, mask=mask, missing=nan, verbose=self.progress.verbose
        )

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows; entries that were not observed are zeros."""
        index, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        return self.select(index).take_rows(places)


class _Digest:
    """Checksums of rows as they come, whatever blocks they come in."""

    # Of 32 bits each: they tell other data from the same, not a forgery.

    def __init__(self) -> None:
        self._sums = [0, 0, 0]

    def add(self, block: LocalMatrix) -> None:
        """Continue with a block."""
        parts: tuple[Any, ...]
        if isinstance(block, SparseMatrix):
            csr = block.csr
            parts = (csr.data, csr.indices, np.diff(csr.indptr))
        else:
            parts = (np.ascontiguousarray(block.dense_rows(0, block.shape[0])),)
        for at, part in enumerate(parts):
            # Indices may be of any size; a part at a time, so that no copy of a block is made.
            wide = np.int64 if part.dtype.kind == "i" else part.dtype
            for start in range(0, len(part), _PART if part.ndim == 1 else max(1, len(part))):
                some = part[start : start + _PART] if part.ndim == 1 else part
                self._sums[at] = zlib.crc32(some.astype(wide, copy=False).data, self._sums[at])

    def hexdigest(self) -> str:
        """Return the checksums as text."""
        return "-".join(f"{one:08x}" for one in self._sums)
