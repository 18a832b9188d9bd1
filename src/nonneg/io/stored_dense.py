"""Dense matrices on disk: plain rows of bytes, and chunked arrays of Zarr and HDF5."""

from __future__ import annotations

import io
import mmap
import os
import threading
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.exceptions import FileFormatError
from nonneg.io.memory import memory_limit
from nonneg.io.stored import StoredMatrix, in_parts

# Direct reads begin and end at multiples of it: the page, which no disk's block exceeds.
_ALIGNMENT = 4096
_SEGMENT = 16 << 20  # bytes per call; smaller ones were slower, larger ones no faster


class FileRows(StoredMatrix):
    """Rows (or columns, in Fortran order) that lie one after another in a file."""

    def __init__(
        self, path: str | os.PathLike[str], shape: Any, dtype: Any, offset: int, *, fortran: bool = False,
        memory: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(str(path), shape, memory)
        self.dtype = np.dtype(dtype)
        self.offset, self.fortran = int(offset), fortran
        self.n_bytes = self.shape[0] * self.shape[1] * self.dtype.itemsize
        self._lock = threading.Lock()  # position and read belong together
        held = Path(path).stat().st_size
        if held < self.offset + self.n_bytes:
            raise FileFormatError(
                f"{path} is truncated: it has {held} bytes, but an array of shape {self.shape} and type "
                f"{self.dtype} needs {self.offset + self.n_bytes}. Write it again from its source."
            )
        # A file that the system can keep in its cache is read from the disk once. Of a larger one a scan
        # finds nothing there, and copying through it costs a third of the disk's speed.
        self._direct = held > 0.8 * memory_limit()
        try:
            flags = os.O_RDONLY | os.O_DIRECT
            self._file = io.FileIO(os.open(path, flags) if self._direct else path)
        except (OSError, AttributeError):  # a system or a disk without direct reads
            self._direct, self._file = False, io.FileIO(path)
        if not self._direct and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def _bytes(self, start: int, n_bytes: int) -> Any:
        """Read a range of the file into a new array of bytes."""
        # Direct reads need aligned places in the file and in memory.
        before = start % _ALIGNMENT if self._direct else 0
        length = -(-(before + n_bytes) // _ALIGNMENT) * _ALIGNMENT if self._direct else n_bytes
        room = np.empty(length + _ALIGNMENT, dtype=np.uint8)
        first = -room.ctypes.data % _ALIGNMENT
        room = room[first : first + length]
        view, done = memoryview(room.data), 0
        with self._lock:
            self._file.seek(start - before)
            while done < before + n_bytes:
                got = self._file.readinto(view[done : done + _SEGMENT])
                if not got:
                    raise FileFormatError(f"{self.source} has become shorter while it was read.")
                done += got
        return room[before : before + n_bytes]

    def _read(self, start: int, stop: int) -> Any:
        (n_rows, n_columns), size = self._stored_shape, self.dtype.itemsize
        if not self.fortran:
            begin = self.offset + start * n_columns * size
            found = self._bytes(begin, (stop - start) * n_columns * size)
            return found.view(self.dtype).reshape(stop - start, n_columns)
        rows = np.empty((stop - start, n_columns), dtype=self.dtype)
        for column in range(n_columns):
            begin = self.offset + (column * n_rows + start) * size
            rows[:, column] = self._bytes(begin, (stop - start) * size).view(self.dtype)
        return rows

    def read_into(self, out: Any, start: int, stop: int, writers: Executor) -> None:
        """Read a range of rows into memory that is there already, on several threads."""
        as_stored = self.dtype == out.dtype and self.columns is None and out.flags.c_contiguous
        if self.fortran or self._direct or not as_stored:
            super().read_into(out, start, stop, writers)
            return
        size = self._stored_shape[1] * self.dtype.itemsize
        target = memoryview(out.reshape(-1).view(np.uint8).data)

        def work(at: int, end: int) -> None:
            done, last = at * size, end * size
            while done < last:
                place = self.offset + start * size + done
                got = os.preadv(self._file.fileno(), [target[done : min(done + _SEGMENT, last)]], place)
                if not got:
                    raise FileFormatError(f"{self.source} has become shorter while it was read.")
                done += got

        in_parts(work, stop - start, writers)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __del__(self) -> None:
        """Close the file with its matrix: a memory-mapped array that a user passes is never closed."""
        # Not with `suppress`: names of modules may be gone when the interpreter ends.
        try:  # noqa: SIM105
            self._file.close()
        except (AttributeError, OSError):  # it never was open; a forked process may close all files
            pass


class ArrayRows(StoredMatrix):
    """An array that is read by slices: a Zarr array, an HDF5 dataset, or a memory-mapped one."""

    def __init__(self, array: Any, source: str, memory: Any = None, *, file: Any = None) -> None:
        if len(array.shape) != 2:
            raise FileFormatError(
                f"{source} contains an array of shape {tuple(array.shape)}; expected a table with two "
                "dimensions: one sample per row and one feature per column."
            )
        super().__init__(source, array.shape, memory)
        self.array, self._file = array, file
        self.dtype = np.dtype(array.dtype)
        self.n_bytes = self.shape[0] * self.shape[1] * self.dtype.itemsize
        chunks = getattr(array, "shards", None) or getattr(array, "chunks", None)
        self.chunk_rows = min(int(chunks[0]), self.shape[0]) if chunks else 1

    def _read(self, start: int, stop: int) -> Any:
        return np.asarray(self.array[start:stop])

    def read_into(self, out: Any, start: int, stop: int, writers: Executor) -> None:
        """Read a range of rows into memory that is there already, on several threads."""
        if self.columns is not None or not isinstance(self.array, np.ndarray):
            super().read_into(out, start, stop, writers)
            return
        rows = self.array[start:stop]
        in_parts(
            lambda at, end: np.copyto(out[at:end], rows[at:end], casting="unsafe"), stop - start, writers
        )

    def close(self) -> None:
        """Close the file, if it was opened for this matrix."""
        if self._file is not None:
            self._file.close()


def npy_rows(path: str | os.PathLike[str], memory: Any = None) -> FileRows:
    """Open a .npy file."""
    from nonneg.io.npy import read_layout

    shape, fortran, dtype, offset = read_layout(Path(path))
    return FileRows(path, shape, dtype, offset, fortran=fortran, memory=memory)


def memmap_rows(array: Any, memory: Any = None) -> StoredMatrix:
    """Open what a memory-mapped array shows: its file where that holds the same bytes, else its slices."""
    # Reading the file is faster than page faults, and its pages do not count as memory of the process.
    place = _file_position(array)
    if place is None or array.ndim != 2:
        return ArrayRows(array, str(getattr(array, "filename", None) or "a memory-mapped array"), memory)
    fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    return FileRows(array.filename, array.shape, array.dtype, place, fortran=fortran, memory=memory)


def _file_position(array: Any) -> int | None:
    """Return where in its file a contiguous memory-mapped array begins."""
    held = getattr(array, "_mmap", None)
    contiguous = array.flags.c_contiguous or array.flags.f_contiguous
    if held is None or array.mode not in ("r", "r+", "w+") or not array.filename or not contiguous:
        return None  # "c": changes are in memory alone
    if array.mode != "r":
        array.flush()
    # NumPy passes `offset` on from an array to its slices, which begin elsewhere.
    first = np.frombuffer(held, dtype=np.uint8).ctypes.data
    mapped_from = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    return int(mapped_from + array.ctypes.data - first)
