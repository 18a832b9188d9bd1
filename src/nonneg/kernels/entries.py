"""Sums and elementwise operations over all entries of large NumPy arrays, as compiled tasks.

`kernels.rows` has the same in NumPy; it asks here where several threads are worth it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import carray

from nonneg._threads import ENTRY
from nonneg.kernels.jit import jit
from nonneg.kernels.team import FLOATS, Task, pointer, run

# Entries of a chunk at least: a microsecond of work.
CHUNK = 1 << 12
# Entries that are added up at once: sums of sums round less than one long sum.
STRETCH = 1 << 10
# What is summed.
ABSOLUTE, PRODUCT, NONZERO = 0, 1, 2


@jit(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def _sum(what, x, y, start, stop):
    total = 0.0
    if what == ABSOLUTE:
        for i in range(start, stop):
            total += abs(np.float64(x[i]))
    elif what == PRODUCT:
        for i in range(start, stop):
            total += np.float64(x[i]) * np.float64(y[i])
    else:
        for i in range(start, stop):
            total += 1.0 if x[i] != 0 else 0.0
    return total


@functools.cache
def _sums(dtype: Any) -> Task:
    kind = np.dtype(dtype).type

    def sum_task(address, start, stop):
        given = carray(pointer(address), (6,), np.int64)
        x = carray(pointer(given[3]), (given[1],), kind)
        y = carray(pointer(given[4]), (given[1],), kind)
        slot = start // given[2]
        parts = carray(pointer(given[5]), (slot + 1,), np.float64)
        total = 0.0
        for begin in range(start, stop, STRETCH):
            total += _sum(given[0], x, y, begin, min(begin + STRETCH, stop))
        parts[slot] = total

    return Task(sum_task)


@functools.cache
def _extrapolations(dtype: Any) -> Task:
    kind = np.dtype(dtype).type

    def extrapolation_task(address, start, stop):
        given = carray(pointer(address), (6,), np.int64)
        x = carray(pointer(given[2]), (given[0],), kind)
        y = carray(pointer(given[3]), (given[0],), kind)
        out = carray(pointer(given[4]), (given[0],), kind)
        momentum = carray(pointer(given[5]), (1,), kind)[0]
        for i in range(start, stop):
            out[i] = max(x[i] + momentum * (x[i] - y[i]), kind(0))

    return Task(extrapolation_task)


@functools.cache
def _conversions(dtype: Any, target: Any) -> Task:
    kind, wanted = np.dtype(dtype).type, np.dtype(target).type

    def conversion_task(address, start, stop):
        given = carray(pointer(address), (5,), np.int64)
        x = carray(pointer(given[2]), (given[0],), kind)
        out = carray(pointer(given[3]), (given[0],), wanted)
        factor = carray(pointer(given[4]), (1,), kind)[0]
        for i in range(start, stop):
            out[i] = wanted(x[i] * factor)

    return Task(conversion_task)


def _plain(*arrays: Any) -> bool:
    first = arrays[0]
    return first.dtype in FLOATS and all(
        a.flags.c_contiguous and a.flags.aligned and a.dtype == first.dtype and a.shape == first.shape
        for a in arrays
    )


def total(what: int, x: Any, y: Any = None) -> float | None:
    """Return a sum in float64; None where one thread is to do it."""
    y = x if y is None else y
    if not _plain(x, y):
        return None
    parts = np.zeros(-(-x.size // CHUNK))
    done = run(
        _sums(x.dtype), [what, x.size], (x, y, parts), x.size, chunk_size=CHUNK, operations=ENTRY * x.size
    )
    return float(parts.sum()) if done else None


def extrapolated(new: Any, old: Any, momentum: float) -> Any:
    """Return max(new + momentum (new - old), 0); None where one thread is to do it."""
    if not _plain(new, old):
        return None
    out, scalar = np.empty_like(new), np.array([momentum], dtype=new.dtype)
    arrays = (new, old, out, scalar)
    done = run(
        _extrapolations(new.dtype),
        [new.size],
        arrays,
        new.size,
        chunk_size=CHUNK,
        operations=ENTRY * new.size,
    )
    return out if done else None


def converted(x: Any, factor: float, dtype: Any) -> Any:
    """Return x times a number in another dtype; None where one thread is to do it."""
    if not _plain(x):
        return None
    out, scalar = np.empty(x.shape, dtype=dtype), np.array([factor], dtype=x.dtype)
    task = _conversions(x.dtype, np.dtype(dtype))
    done = run(task, [x.size], (x, out, scalar), x.size, chunk_size=CHUNK, operations=ENTRY * x.size)
    return out if done else None
