"""Blocks of rows of host data on a GPU, one after another, copied while the GPU works on the last one.

A block goes through page-locked memory, in which several threads write it, and is copied on a stream of its
own. An array that is in memory as it shall be on the device is locked in place and copied from there. Blocks
of a file that fits in memory stay there, locked, after the first pass: the copy from the system's cache to
locked memory is slower than the one to the device.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._devices import free_memory
from nonneg._threads import available_threads
from nonneg.io.memory import memory_limit
from nonneg.io.stored import StoredMatrix

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
