"""One pool of threads for kernels and products, never nested.

Kernels release the GIL and work on a range of rows; so do products, each thread calling a BLAS that is
held to one thread. A BLAS that waits for threads of its own by spinning takes the cores from the kernels,
and on a machine with other work to do it was seen to be thirty times slower.
"""

from __future__ import annotations

import numbers
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from nonneg._blas import single_threaded_blas
from nonneg.exceptions import InvalidParameterError

Result = TypeVar("Result")

# Operations that a thread does in about the time that handing work to another one and back pays for.
SMALL_WORK = 2e6

_n_threads: ContextVar[int | None] = ContextVar("nonneg_n_threads", default=None)
_in_worker = threading.local()
_pool_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def available_threads() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def current_threads() -> int:
    """Return how many threads a kernel may use here and now."""
    if getattr(_in_worker, "busy", False):
        return 1
    return _n_threads.get() or available_threads()


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Let kernels use `n_jobs` threads inside the block."""
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise InvalidParameterError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}.")
    if n_jobs is not None and n_jobs < 0:
        n_jobs = max(1, available_threads() + 1 + n_jobs)
    token = _n_threads.set(_n_threads.get() if n_jobs is None else n_jobs)
    try:
        with single_threaded_blas():
            yield
    finally:
        _n_threads.reset(token)


@contextmanager
def serial() -> Iterator[None]:
    """Keep everything inside the block on the calling thread."""
    before = getattr(_in_worker, "busy", False)
    _in_worker.busy = True
    try:
        yield
    finally:
        _in_worker.busy = before


def _the_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(available_threads(), thread_name_prefix="nonneg")
        return _pool


def _forget_pool() -> None:
    # A forked child inherits the pool object without its threads, and a lock that nobody may release.
    global _pool, _pool_lock
    _pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def parallel_for(
    function: Callable[[int, int], Result], n_rows: int, *, chunk_size: int, operations: float = float("inf")
) -> list[Result]:
    """Call `function(start, stop)` on ranges that cover the rows, on the pool's threads."""
    n_threads = current_threads() if operations > SMALL_WORK else 1
    blocks = -(-n_rows // chunk_size)
    n_ranges = min(n_threads, blocks)
    if n_ranges <= 1:
        return [function(0, n_rows)]
    edges = [min(n_rows, chunk_size * (blocks * i // n_ranges)) for i in range(n_ranges + 1)]
    pool = _the_pool()

    def work(start: int, stop: int) -> Result:
        with serial():
            return function(start, stop)

    # The calling thread takes a share itself: one hand-over less.
    futures = [pool.submit(work, edges[i], edges[i + 1]) for i in range(1, n_ranges)]
    first = work(edges[0], edges[1])
    return [first, *(future.result() for future in futures)]
