"""Entries on disk or for a GPU, in blocks of rows: the next one is read while the last is worked on.

A pass over the data is one read of the file. Two blocks are in memory; arrays with one row per sample are
NumPy arrays, in a temporary file where they would take too much of the budget. The first pass checks the
entries and computes all statistics, so that these cost no further one.

With a device, a block is copied there on a stream of its own while it works on the last one: from where it
is, if the array can be locked in memory, or else from page-locked memory to which several threads write it.
Arrays with one row per sample stay there.
"""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_numpy
from nonneg._devices import PART_FOR_DATA, free_memory
from nonneg._threads import available_threads
from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.local import local_matrix, observed_mask
from nonneg.data.matrix import BlockedMatrix, LocalMatrix, RowFunction, Statistics, block_statistics
from nonneg.data.observed import EntryWeights
from nonneg.data.sparse import CsrArrays, SparseMatrix
from nonneg.exceptions import DeviceMemoryError
from nonneg.io.memory import memory_limit, temporary_array, written_bytes
from nonneg.io.stored import ArrayRows, StoredMatrix
from nonneg.iteration.progress import PassReporter

# A solver holds about six arrays of the size of W; beyond this part of the budget each they go to disk.
_SAMPLE_PART = 12
# Blocks are so large that launching their work takes no time beside copying them, and take at most this part
# of the free memory.
BLOCK_BYTES, BLOCK_PART = 256 << 20, 12
# Threads that write a block: more than saturate the memory of most machines.
WRITERS = 12
# An array is locked in memory if it takes at most this part of it.
LOCKED_PART = 0.6


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

            self._like = torch.empty(0, dtype=getattr(torch, stored.working_dtype.name), device=device)
            self._device_blocks = DeviceBlocks(stored, device)
            self._edges = self._device_blocks.edges
        self.dtype, self.xp = self._like.dtype, array_namespace(self._like)
        self.weights = None if weights is None else self.to_device(weights)
        self.has_mask = mask is not None or missing == "mask"
        self._mask, self._nan_is_missing = mask, missing == "mask"
        self.is_weighted = isinstance(mask, EntryWeights)
        self.n_passes = 0  # reads of the file so far
        self.progress = PassReporter(stored.source, stored.n_bytes, verbose)

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
        for start, stop, entries in self._device_blocks or read_ahead(
            self.stored.read_rows, [*pairwise(self._edges)]
        ):
            block = self._local(entries, slice(start, stop))
            if isinstance(block, SparseMatrix):
                block.single_use = True
            del entries
            yield start, stop, block
            del block
            self.progress.update(stop / self.shape[0])

    def _rows_alone(self) -> Iterator[tuple[int, int, Any]]:
        """Yield blocks that know their rows but not their entries."""
        for start, stop in pairwise(self._edges):
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

    def examine(self, check: Callable[[LocalMatrix, int], None]) -> None:
        """Compute all statistics in one pass, calling `check` with each block and its first row."""
        first_row = 0

        def look(block: LocalMatrix) -> tuple[Any, ...]:
            nonlocal first_row
            check(block, first_row)
            first_row += block.shape[0]
            return block_statistics(block)

        self.statistics = Statistics.of(*self.reduce_rows(look))
        if self._mask is None and not self.statistics.n_missing:
            self.has_mask = False  # complete data keep the solvers for complete data

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
        nan = "mask" if self._nan_is_missing and self.has_mask else "error"
        mask = None if self._mask is None else self._mask[:, columns]
        options = {"verbose": self.progress.verbose, "device": self.device}
        return StreamedMatrix(stored, weights=self.weights, mask=mask, missing=nan, **options)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows; entries that were not observed are zeros."""
        index, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        return self.select(index).take_rows(places)


def fits_on(X: Any, device: Any) -> bool:
    """Tell whether an array or sparse matrix fits on the device, with room for what a fit adds to it."""
    itemsize = 4 if X.dtype == np.float32 else 8
    # Sparse: indices besides, and products with X' keep the transpose.
    n_bytes = 2.0 * X.nnz * (itemsize + 4) if sp.issparse(X) else float(X.shape[0] * X.shape[1] * itemsize)
    enough = n_bytes <= PART_FOR_DATA * free_memory(device)
    if sp.issparse(X) and not enough:
        raise DeviceMemoryError(
            f"The sparse X and its transpose take {written_bytes(n_bytes)}, more than the GPU has free. "
            "Sparse data are not streamed through a GPU; use float32, or leave device out."
        )
    return enough


def copied(X: Any, device: Any) -> Any:
    """Return a NumPy array or SciPy sparse matrix as a tensor on the device."""
    import torch

    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    like = torch.empty(0, dtype=getattr(torch, X.dtype.name), device=device)
    if sp.issparse(X):
        return CsrArrays.from_scipy(X.tocsr(), like).tensor
    out = like.new_empty(X.shape)
    for start, stop, block in DeviceBlocks(ArrayRows(X, "X", 1 << 62), device, lock=False):
        out[start:stop] = block
    return out


def read_ahead(
    read: Callable[[int, int], Any], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, Any]]:
    """Yield each range with what is read of it; while one is worked on, a thread reads the next one."""
    with ThreadPoolExecutor(1, thread_name_prefix="nonneg-read") as reader:
        ahead = [reader.submit(read, *ranges[0])]
        for (start, stop), following in zip(ranges, [*ranges[1:], None], strict=True):
            # Taken out of the list: what was asked of the reader would hold the block as well.
            block = ahead.pop().result()
            if following is not None:
                ahead.append(reader.submit(read, *following))
            yield start, stop, block
            del block


@dataclass
class _Slot:
    """Memory for a block on both sides, and events that say when it may be used again."""

    host: Any  # page-locked, where the device is a GPU; None where the array is locked itself
    device: Any
    copied: Any = None  # the copy to the device has ended
    used: Any = None  # the work on the device has ended


class DeviceBlocks:
    """Blocks of rows of a dense matrix on a device, each valid until the next one is asked for."""

    def __init__(self, stored: StoredMatrix, device: Any, *, lock: bool = True) -> None:
        if stored.is_sparse:
            raise DeviceMemoryError(
                f"{stored.source} is sparse and larger than memory. Sparse data are not streamed through a "
                "GPU; leave device out."
            )
        self.stored, self.device = stored, device
        row = max(1.0, stored.shape[1] * stored.working_dtype.itemsize)
        n_rows = max(1, int(min(BLOCK_BYTES, free_memory(device) / BLOCK_PART) / row))
        # Whole chunks: one that is cut in two would be read twice.
        step = min(max(1, n_rows // stored.chunk_rows) * stored.chunk_rows, stored.shape[0])
        self.edges = [*range(0, stored.shape[0], step), stored.shape[0]]
        self._locked = self._lock() if lock else None  # which does not pay for a single pass
        self._slots: list[_Slot] = []
        self._stream: Any = None

    def _lock(self) -> Any:
        """Lock an array in memory, so that blocks can be copied from where they are; None if it cannot be."""
        import torch

        array: Any = getattr(self.stored, "array", None)
        plain = isinstance(array, np.ndarray) and not isinstance(array, np.memmap) and array.base is None
        if self.device.type != "cuda" or not plain or self.stored.columns is not None:
            return None
        if array.dtype != self.stored.working_dtype or not array.flags.c_contiguous:
            return None
        runtime = torch.cuda.cudart()
        small = array.nbytes <= LOCKED_PART * memory_limit()
        if not small or int(runtime.cudaHostRegister(array.ctypes.data, array.nbytes, 0)) != 0:
            # The next call reports a failure once more, whatever it is.
            with contextlib.suppress(RuntimeError):
                torch.zeros(1, device=self.device)
            return None
        weakref.finalize(self, lambda: runtime.cudaHostUnregister(array.ctypes.data))
        return array

    def _prepare(self) -> None:
        import torch

        gpu = self.device.type == "cuda"
        shape, dtype = (self.edges[1], self.stored.shape[1]), getattr(torch, self.stored.working_dtype.name)
        for _ in range(min(2, len(self.edges) - 1)):
            host = None if self._locked is not None else torch.empty(shape, dtype=dtype, pin_memory=gpu)
            slot = _Slot(host, torch.empty(shape, dtype=dtype, device=self.device))
            if gpu:
                slot.copied, slot.used = torch.cuda.Event(), torch.cuda.Event()
            self._slots.append(slot)
        self._stream = torch.cuda.Stream(self.device) if gpu else None

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        """Yield first row, end and entries of each block."""
        import torch

        if not self._slots:
            self._prepare()
        current = None if self._stream is None else torch.cuda.current_stream(self.device)
        with ThreadPoolExecutor(max(1, min(WRITERS, available_threads()))) as writers:

            def load(start: int, stop: int) -> _Slot:
                slot = self._slots[self.edges.index(start) % len(self._slots)]
                device = slot.device[: stop - start]
                if self._locked is not None:
                    host = torch.from_numpy(self._locked[start:stop])
                else:
                    host = slot.host[: stop - start]
                if current is None:
                    self.stored.read_into(host.numpy(), start, stop, writers)
                    device.copy_(host)
                    return slot
                if self._locked is None:
                    slot.copied.synchronize()  # the last copy from here
                    self.stored.read_into(host.numpy(), start, stop, writers)
                with torch.cuda.stream(self._stream):
                    self._stream.wait_event(slot.used)
                    device.copy_(host, non_blocking=True)
                    slot.copied.record(self._stream)
                return slot

            if current is not None:
                for slot in self._slots:
                    slot.used.record(current)  # what was asked of the device before
            for start, stop, slot in read_ahead(load, [*pairwise(self.edges)]):
                if current is not None:
                    current.wait_event(slot.copied)
                yield start, stop, slot.device[: stop - start]
                if current is not None:
                    slot.used.record(current)
