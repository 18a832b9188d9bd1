"""Data of the host for a GPU: whether they fit there, copies, and blocks of rows on their way there.

A block is copied on a stream of its own while the GPU works on the last one: from where it is, if the array
can be locked in memory, or else from page-locked memory to which several threads write it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._devices import PART_FOR_DATA, free_memory
from nonneg._threads import available_threads
from nonneg.data.csr_arrays import csr_tensor
from nonneg.exceptions import DeviceMemoryError
from nonneg.io.memory import memory_limit, written_bytes
from nonneg.io.stored import ArrayRows, StoredMatrix

# Blocks are so large that launching their work takes no time beside copying them, and take at most this part
# of the free memory.
BLOCK_BYTES, BLOCK_PART = 256 << 20, 12
# Threads that write a block: more than saturate the memory of most machines.
WRITERS = 12
# An array is locked in memory if it takes at most this part of it.
LOCKED_PART = 0.6


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
    if sp.issparse(X):
        csr = X.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        indptr, indices, data = (
            torch.from_numpy(np.ascontiguousarray(part)).to(device)
            for part in (csr.indptr, csr.indices, csr.data)
        )
        return csr_tensor(indptr, indices, data, csr.shape)
    out = torch.empty(X.shape, dtype=tensor_dtype(X.dtype), device=device)
    for start, stop, block in DeviceBlocks(ArrayRows(X, "X", 1 << 62), device, lock=False):
        out[start:stop] = block
    return out


def tensor_dtype(dtype: Any) -> Any:
    """Return the type of a tensor: float32 or float64."""
    import torch

    return torch.float32 if np.dtype(dtype) == np.float32 else torch.float64


def read_ahead(read: Callable[[int, int], Any], ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
    """Yield what is read of each range; while one is worked on, a thread reads the next one."""
    with ThreadPoolExecutor(1, thread_name_prefix="nonneg-read") as reader:
        ahead = [reader.submit(read, *ranges[0])]
        for following in [*ranges[1:], None]:
            # Taken out of the list: what was asked of the reader would hold the block as well.
            block = ahead.pop().result()
            if following is not None:
                ahead.append(reader.submit(read, *following))
            yield block
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
        wanted = max(1, int(min(BLOCK_BYTES, free_memory(device) / BLOCK_PART) / row))
        # Whole chunks: one that is cut in two would be read twice.
        step = min(max(1, wanted // stored.chunk_rows) * stored.chunk_rows, stored.shape[0])
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

        if self._slots:
            return
        gpu = self.device.type == "cuda"
        shape, dtype = (self.edges[1], self.stored.shape[1]), tensor_dtype(self.stored.working_dtype)
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

        self._prepare()
        ranges = list(zip(self.edges[:-1], self.edges[1:], strict=True))
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
            for (start, stop), slot in zip(ranges, read_ahead(load, ranges), strict=True):
                if current is not None:
                    current.wait_event(slot.copied)
                yield start, stop, slot.device[: stop - start]
                if current is not None:
                    slot.used.record(current)
