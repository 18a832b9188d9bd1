"""Entries on disk, read in blocks of rows: the next block is read by a thread while the last is worked on.

A pass over the data is one read of the file. Two blocks are in memory; arrays with one row per sample are
NumPy arrays, in a temporary file where they would take too much of the budget. The first pass checks the
entries and computes all statistics, so that these cost no further one. With a device, blocks are copied
there, and arrays with one row per sample stay there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_numpy
from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.device_stream import DeviceBlocks, copied, read_ahead, tensor_dtype
from nonneg.data.local import local_matrix, observed_mask
from nonneg.data.matrix import BlockedMatrix, LocalMatrix, RowFunction, Statistics, block_statistics
from nonneg.data.observed import EntryWeights
from nonneg.data.sparse import SparseMatrix
from nonneg.io.memory import temporary_array
from nonneg.io.stored import StoredMatrix
from nonneg.iteration.progress import PassReporter

# A solver holds about six arrays of the size of W; beyond this part of the budget each they go to disk.
_SAMPLE_PART = 12


class StreamedMatrix(BlockedMatrix):
    """A matrix on disk or, for a device, in host memory, as one block of rows after another."""

    container = "streamed"

    def __init__(
        self, stored: StoredMatrix, *, weights: Any = None, mask: Any = None, missing: str = "error",
        verbose: int = 0, device: Any = None,
    ) -> None:  # fmt: skip
        self.stored, self.device, self.numpy_out = stored, device, device is not None
        self.shape = (int(stored.shape[0]), int(stored.shape[1]))
        self._like: Any = np.empty(0, dtype=stored.working_dtype)
        self._device_blocks: DeviceBlocks | None = None
        self._edges = [int(edge) for edge in stored.cuts()]
        if device is not None:
            import torch

            self._like = torch.empty(0, dtype=tensor_dtype(stored.working_dtype), device=device)
            self._device_blocks = DeviceBlocks(stored, device)
            self._edges = self._device_blocks.edges
        self.dtype, self.xp = self._like.dtype, array_namespace(self._like)
        self.weights = None if weights is None else self.to_device(weights)
        self.has_mask = mask is not None or missing == "mask"
        self._mask, self._nan_is_missing = mask, missing == "mask"
        self.is_weighted = isinstance(mask, EntryWeights)
        self.n_passes = 0  # reads of the file so far
        self.progress = PassReporter(stored.source, stored.n_bytes, verbose)

    @property
    def n_missing(self) -> int:
        """The number of entries that were not observed."""
        return int(self.statistics.n_missing)

    @property
    def block_bytes(self) -> float:
        """The size of the largest block in memory."""
        return float(np.diff(self._edges).max()) * self.stored.row_bytes()

    def _ranges(self) -> list[tuple[int, int]]:
        return list(zip(self._edges[:-1], self._edges[1:], strict=True))

    def _local(self, entries: Any, rows: Any) -> LocalMatrix:
        """Return some rows with their weights and mask."""
        mask = None if self._mask is None else self._mask[rows]
        if self._nan_is_missing and self.has_mask:
            mask = observed_mask(entries, mask)
        weights = self.weights
        if weights is not None:
            weights = weights[rows if isinstance(rows, slice) else to_device(rows, weights)]
        return local_matrix(entries, weights=weights, mask=mask)

    def _blocks(self) -> Iterator[tuple[int, int, LocalMatrix]]:
        """Yield the blocks; while one is worked on, the next one is read."""
        self.n_passes += 1
        self.progress.begin(self.n_passes)
        for start, stop, entries in self._device_blocks or self._host_blocks():
            block = self._local(entries, slice(start, stop))
            if isinstance(block, SparseMatrix):
                block.single_use = True
            del entries
            yield start, stop, block
            del block
            self.progress.update(stop / self.shape[0])

    def _host_blocks(self) -> Iterator[tuple[int, int, Any]]:
        ranges = self._ranges()
        blocks = read_ahead(self.stored.read_rows, ranges)
        for start, stop in ranges:
            yield start, stop, next(blocks)

    def _rows_alone(self) -> Iterator[tuple[int, int, Any]]:
        """Yield blocks that know their rows but not their entries."""
        for start, stop in self._ranges():
            weights = None if self.weights is None else self.weights[start:stop]
            nothing = self.xp.empty((stop - start, 0), dtype=self.dtype, device=self._like.device)
            yield start, stop, DenseMatrix(nothing, self.xp, weights=weights)

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
        if self.device is not None:
            return self.xp.empty(shape, dtype=dtype, device=self.device)
        large = np.prod(shape) * np.dtype(dtype).itemsize > self.stored.memory / _SAMPLE_PART
        return temporary_array(shape, dtype) if large else np.empty(shape, dtype=dtype)

    def examine(self, check: Callable[[LocalMatrix, int], None] | None = None) -> None:
        """Compute all statistics in one pass, calling `check` with each block and its first row."""
        first_row = 0

        def look(block: LocalMatrix) -> tuple[tuple[()], tuple[Any, ...]]:
            nonlocal first_row
            if check is not None:
                check(block, first_row)
            first_row += block.shape[0]
            return block_statistics(block)

        self._known = Statistics.of(*self.map_reduce_rows(look, n_out=0)[1])
        if self._mask is None and not self._known.n_missing:
            self.has_mask = False  # complete data keep the solvers for complete data

    @property
    def statistics(self) -> Statistics:
        """All statistics, from the first pass."""
        if self._known is None:
            self.examine()
        assert self._known is not None
        return self._known

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample: on the device, in memory or in a temporary file."""
        if self.device is not None:
            return self.to_device(array)
        array = to_numpy(array)
        new = self._sample_array(array.shape[1:], self.dtype)
        new[...] = array
        return new

    def sample_matrix(self, W: SampleArray) -> LocalMatrix:
        """Return an array with one row per sample as data, with the same row weights."""
        weights = None if self.weights is None else self.xp.astype(self.weights, W.dtype)
        return DenseMatrix(W, self.xp, weights=weights)

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype and on the device of the blocks."""
        return to_device(array, self._like, self.dtype)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the blocks one by one."""
        for _, _, block in self._blocks():
            yield block
            del block

    def select(self, rows: Any) -> LocalMatrix:
        """Return some rows in memory, in ascending order, with their weights and mask."""
        index = np.asarray(rows, dtype=np.int64)
        entries = self.stored.take_rows(index)
        return self._local(entries if self.device is None else copied(entries, self.device), index)

    def with_columns(self, columns: Any) -> StreamedMatrix:
        """Return some columns in another order; they are checked already."""
        stored = copy.copy(self.stored)
        stored.select(np.asarray(columns, dtype=np.int64))
        nan = "mask" if self._nan_is_missing else "error"
        mask = None if self._mask is None else self._mask[:, columns]
        options = {"verbose": self.progress.verbose, "device": self.device}
        return StreamedMatrix(stored, weights=self.weights, mask=mask, missing=nan, **options)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows; entries that were not observed are zeros."""
        index, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        return self.select(index).take_rows(places)
