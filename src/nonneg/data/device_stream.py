"""Data in host memory or in a file that a GPU works on: copied there once, or streamed in blocks of rows.

Arrays with one row per sample stay on the device. A block goes through page-locked memory, in which several
threads write it, and is copied on a stream of its own while the GPU works on the last one. An array that is
in memory as it shall be on the device is locked in place and copied from there. Blocks of a file that fits in
memory stay there, locked, after the first pass: the copy from the system's cache to locked memory is slower
than the one to the device.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_device, to_float64
from nonneg._devices import PART_FOR_DATA, free_memory
from nonneg._threads import available_threads
from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.local import local_matrix, observed_mask
from nonneg.data.matrix import LocalMatrix
from nonneg.data.streamed import StreamedMatrix
from nonneg.exceptions import DeviceMemoryError
from nonneg.io.memory import memory_limit, written_bytes
from nonneg.io.stored import ArrayRows, StoredMatrix


def fits(n_bytes: float, device: Any) -> bool:
    """Tell whether data of this size fit on the device, with room for what a fit adds to them."""
    return n_bytes <= PART_FOR_DATA * free_memory(device)


def host_bytes(X: Any) -> float:
    """Return the bytes that an array or sparse matrix takes on the device."""
    single = X.dtype == np.float32
    if sp.issparse(X):
        # Products with X' keep the transpose.
        return 2.0 * X.nnz * (8 if single else 12)
    return float(X.shape[0] * X.shape[1] * (4 if single else 8))


def host_rows(X: Any) -> StoredMatrix:
    """Return an array in host memory as blocks of rows."""
    if sp.issparse(X):
        raise DeviceMemoryError(
            f"The sparse X and its transpose take {written_bytes(host_bytes(X))}, more than the GPU has "
            "free. Sparse data are not streamed through a GPU; use float32, or leave device out."
        )
    return ArrayRows(X, "X", memory_limit())


def copied(X: Any, device: Any) -> Any:
    """Return a NumPy array or SciPy sparse matrix as a tensor on the device."""
    import torch

    if sp.issparse(X):
        csr = X.tocsr()
        if csr.dtype not in (np.float32, np.float64):
            csr = csr.astype(np.float64)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        parts = (torch.from_numpy(np.ascontiguousarray(part)) for part in (csr.indptr, csr.indices, csr.data))
        indptr, indices, data = (part.to(device) for part in parts)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
            return torch.sparse_csr_tensor(indptr, indices, data, size=csr.shape, check_invariants=False)
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    out = torch.empty(X.shape, dtype=tensor_dtype(X.dtype), device=device)
    stream = DeviceStream(ArrayRows(X, "X", 1 << 62), device, lock=False)
    for start, stop, block in stream.blocks():
        out[start:stop] = block
    return out


class DeviceStreamedMatrix(StreamedMatrix):
    """A matrix in host memory or on disk, worked on in blocks of rows by a device."""

    numpy_out = True

    def __init__(self, stored: StoredMatrix, device: Any, *, weights: Any = None, **options: Any) -> None:
        super().__init__(stored, **options)
        if stored.is_sparse:
            raise DeviceMemoryError(
                f"{stored.source} is sparse and larger than memory. Sparse data are not streamed through a "
                "GPU; leave device out."
            )
        import torch

        self.device, self.stream = device, DeviceStream(stored, device)
        self.xp = array_namespace(torch.empty(0))
        self.dtype = tensor_dtype(stored.working_dtype)
        self._edges = self.stream.edges
        if weights is not None:
            self.weights = torch.asarray(np.asarray(weights), dtype=self.dtype, device=device)

    def _wrapped(self, entries: Any, start: int, stop: int) -> LocalMatrix:
        weights = None if self.weights is None else self.weights[start:stop]
        return local_matrix(entries, weights=weights, mask=self._seen(entries, slice(start, stop)))

    def _seen(self, entries: Any, rows: Any) -> Any:
        """Return which entries of some rows were observed: not NaN, and not hidden by the mask."""
        mask = None if self._mask is None else self._mask[rows]
        if not (self._nan_is_missing and self.has_mask):
            return mask
        return observed_mask(entries, mask)

    def _blocks(self) -> Iterator[tuple[int, int, LocalMatrix]]:
        """Yield the blocks; while one is worked on, the next ones are copied."""
        self.n_passes += 1
        self.progress.begin(self.n_passes)
        for start, stop, entries in self.stream.blocks():
            yield start, stop, self._wrapped(entries, start, stop)
            self.progress.update(stop / self.shape[0])

    def _rows_alone(self) -> Iterator[tuple[int, int, Any]]:
        import torch

        for start, stop in self._ranges():
            weights = None if self.weights is None else self.weights[start:stop]
            nothing = torch.empty((stop - start, 0), dtype=self.dtype, device=self.device)
            yield start, stop, DenseMatrix(nothing, self.xp, weights=weights)

    def _sample_array(self, columns: tuple[int, ...], dtype: Any) -> Any:
        import torch

        return torch.empty((self.shape[0], *columns), dtype=dtype, device=self.device)

    def _new_digest(self) -> Any:
        return _Digest()

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample on the device."""
        return self.to_device(array)

    def to_device(self, array: Any) -> Array:
        """Return an array on the device."""
        import torch

        return to_device(array, torch.empty(0, device=self.device), self.dtype)

    def select(self, rows: Any) -> LocalMatrix:
        """Return some rows on the device, in ascending order, with their weights and mask."""
        index = np.asarray(rows, dtype=np.int64)
        entries = copied(self.stored.take_rows(index), self.device)
        weights = None if self.weights is None else self.weights[self.xp.asarray(index, device=self.device)]
        return local_matrix(entries, weights=weights, mask=self._seen(entries, index))


class _Digest:
    """Sums over the entries that tell other data from the same, and other orders of rows and columns too."""

    def __init__(self) -> None:
        self._sums, self._n_rows = np.zeros(2), 0

    def add(self, block: LocalMatrix) -> None:
        """Continue with a block."""
        n_rows, n_columns = block.shape
        rows = to_float64(block.times(block.to_device(np.cos(np.arange(n_columns))[:, None])))[:, 0]
        self._sums += np.cos(np.arange(self._n_rows, self._n_rows + n_rows)) @ rows, rows.sum()
        self._n_rows += n_rows

    def hexdigest(self) -> str:
        """Return the sums as text, with the digits that do not depend on the blocks."""
        return "{:.5g} {:.5g}".format(*self._sums)


# Blocks are so large that launching their work takes no time beside copying them, and take at most this part
# of the free memory, several of them together a quarter.
BLOCK_BYTES, BLOCK_PART = 256 << 20, 12
# One is worked on, one is copied, and one is written by the threads of the host.
SLOTS = 3
# Threads that write a block: more than saturate the memory of most machines.
WRITERS = 12
# An array is locked in memory in place if it takes at most this part of the machine's, and blocks are kept
# there that take at most this one: the system's cache may hold the file beside them.
LOCKED_PART, KEPT_PART = 0.6, 0.3
PORTABLE = 1  # CUDA's word for memory that is locked for all GPUs
# How many streams use an array that is locked, by its place in memory: it can be locked only once.
_locked: dict[int, int] = {}
_LOCK = threading.Lock()


def tensor_dtype(dtype: Any) -> Any:
    """Return the type of a tensor: float32 or float64."""
    import torch

    return torch.float32 if np.dtype(dtype) == np.float32 else torch.float64


@dataclass
class _Slot:
    """Memory for a block on both sides, and events that say when it may be used again."""

    host: Any  # page-locked; None where blocks are copied from where they are locked
    device: Any
    copied: Any = None  # the copy to the device has ended
    used: Any = None  # the work on the device has ended


class DeviceStream:
    """Blocks of rows of a dense matrix on a device, one after another."""

    def __init__(self, stored: StoredMatrix, device: Any, *, lock: bool = True) -> None:
        self.stored, self.device = stored, device
        self.on_gpu = device.type == "cuda"
        row = max(1.0, stored.shape[1] * stored.working_dtype.itemsize)
        wanted = max(1, int(min(BLOCK_BYTES, free_memory(device) / BLOCK_PART) / row))
        step = max(1, wanted // stored.chunk_rows) * stored.chunk_rows
        self.step = min(step, stored.shape[0])
        self.edges = [*range(0, stored.shape[0], self.step), stored.shape[0]]
        self.locked = self._lock() if lock and self.on_gpu else None
        self._kept: dict[int, Any] = {}
        n_bytes = stored.shape[0] * row
        small = n_bytes <= KEPT_PART * memory_limit() and stored.fits()
        self._keeps = lock and self.on_gpu and self.locked is None and small
        self._slots: list[_Slot] = []
        self._stream: Any = None

    def _lock(self) -> Any:
        """Lock an array in memory where it is, so that blocks can be copied from there; None if it cannot."""
        import torch

        array: Any = getattr(self.stored, "array", None)
        plain = isinstance(array, np.ndarray) and not isinstance(array, np.memmap) and array.base is None
        if not plain or self.stored.columns is not None or array.dtype != self.stored.working_dtype:
            return None
        if not array.flags.c_contiguous or array.nbytes > LOCKED_PART * memory_limit():
            return None
        place, runtime = array.ctypes.data, torch.cuda.cudart()
        with _LOCK:
            if place not in _locked and int(runtime.cudaHostRegister(place, array.nbytes, PORTABLE)) != 0:
                self._forget_error()
                return None
            _locked[place] = _locked.get(place, 0) + 1
        weakref.finalize(self, _unlock, runtime, array)
        return array

    def _prepare(self) -> None:
        import torch

        if self._slots:
            return
        shape, dtype = (self.step, self.stored.shape[1]), tensor_dtype(self.stored.working_dtype)
        n_slots = min(SLOTS, len(self.edges) - 1)
        for _ in range(n_slots):
            slot = _Slot(None, torch.empty(shape, dtype=dtype, device=self.device))
            if self.on_gpu:
                slot.copied, slot.used = torch.cuda.Event(), torch.cuda.Event()
            self._slots.append(slot)
        if self.on_gpu:
            self._stream = torch.cuda.Stream(self.device)

    def _load(self, slot: _Slot, start: int, stop: int, writers: ThreadPoolExecutor) -> None:
        """Write a block to page-locked memory and start its copy; in a thread of its own."""
        import torch

        if self.locked is not None:
            source = torch.from_numpy(self.locked[start:stop])
        elif self._keeps and (kept := self._keep(start, stop, writers)) is not None:
            source = kept
        else:
            if slot.host is None:
                slot.host = torch.empty_like(slot.device, device="cpu", pin_memory=self.on_gpu)
            if self.on_gpu:
                slot.copied.synchronize()  # the last copy from here
            source = slot.host[: stop - start]
            self.stored.read_into(source.numpy(), start, stop, writers)
        if not self.on_gpu:
            slot.device[: stop - start].copy_(source)
            return
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(slot.used)
            slot.device[: stop - start].copy_(source, non_blocking=True)
            slot.copied.record(self._stream)

    def _keep(self, start: int, stop: int, writers: ThreadPoolExecutor) -> Any:
        """Return a block in page-locked memory that stays; None if the system does not lock it."""
        import torch

        if start in self._kept:
            return self._kept[start]
        shape, dtype = (stop - start, self.stored.shape[1]), self.stored.working_dtype
        # Pages of its own, which are locked once; large ones, if the system has them, are locked sooner.
        pages = mmap.mmap(-1, max(1, shape[0] * shape[1] * dtype.itemsize))
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):
                pages.madvise(mmap.MADV_HUGEPAGE)
        block = np.frombuffer(pages, dtype=dtype, count=shape[0] * shape[1]).reshape(shape)
        self.stored.read_into(block, start, stop, writers)
        runtime = torch.cuda.cudart()
        if int(runtime.cudaHostRegister(block.ctypes.data, len(pages), PORTABLE)) != 0:
            self._keeps = False
            self._forget_error()
            return None
        weakref.finalize(self, _unlock_block, runtime, block)
        self._kept[start] = torch.from_numpy(block)
        return self._kept[start]

    def _forget_error(self) -> None:
        import torch

        # The next call reports the failure once more, whatever it is.
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device=self.device)

    def blocks(self) -> Iterator[tuple[int, int, Any]]:
        """Yield first row, end and entries of each block; they are valid until the next one is asked for."""
        import torch

        self._prepare()
        ranges = list(zip(self.edges[:-1], self.edges[1:], strict=True))
        current = torch.cuda.current_stream(self.device) if self.on_gpu else None
        if current is not None:
            for slot in self._slots:
                slot.used.record(current)
        n_writers = max(1, min(WRITERS, available_threads()))
        with (
            ThreadPoolExecutor(1, thread_name_prefix="nonneg-load") as loader,
            ThreadPoolExecutor(n_writers, thread_name_prefix="nonneg-write") as writers,
        ):
            ahead: deque[Future[None]] = deque()

            def load(number: int) -> None:
                slot = self._slots[number % len(self._slots)]
                ahead.append(loader.submit(self._load, slot, *ranges[number], writers))

            for number in range(min(len(self._slots), len(ranges))):
                load(number)
            for number, (start, stop) in enumerate(ranges):
                ahead.popleft().result()
                slot = self._slots[number % len(self._slots)]
                if current is not None:
                    current.wait_event(slot.copied)
                yield start, stop, slot.device[: stop - start]
                if current is not None:
                    slot.used.record(current)
                if number + len(self._slots) < len(ranges):
                    load(number + len(self._slots))


def _unlock_block(runtime: Any, block: Any) -> None:
    runtime.cudaHostUnregister(block.ctypes.data)


def _unlock(runtime: Any, array: Any) -> None:
    place = array.ctypes.data
    with _LOCK:
        _locked[place] -= 1
        if not _locked[place]:
            del _locked[place]
            runtime.cudaHostUnregister(place)
