"""One pool of threads for kernels and products, never nested.

Kernels release the GIL and work on a range of rows; so do products, each thread calling a BLAS that is
held to one thread. A BLAS that waits for threads of its own by spinning takes the cores from the kernels,
and on a machine with other work to do it was seen to be thirty times slower.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import numbers
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from nonneg._blas import single_threaded_blas
from nonneg.exceptions import InvalidParameterError

Result = TypeVar("Result")

# NumPy takes as long for an entry of a large array as a kernel for this many operations.
ENTRY = 4.0
# BLAS does several operations in the time of one in our kernels.
BLAS = 0.2
# Products of fewer operations are left to NumPy, on one thread: about 50 microseconds.
SMALL_PRODUCT = 2e5
# Operations of a kernel per second: what turns the count of a caller into time. A factor of two does not
# matter.
RATE = 2e9
# Seconds that one more thread costs: a Python function waits for the interpreter, a task of the compiled core
# does not. Fewer operations than SMALLEST_TASK are left to the calling thread.
PYTHON_THREAD, CORE_THREAD, SMALLEST_TASK = 3e-5, 5e-7, 1e5

_n_threads: ContextVar[int | None] = ContextVar("nonneg_n_threads", default=None)
_in_worker = threading.local()


def available_threads() -> int:
    """Return the number of cores this process may use, within the quota of its container or worker."""
    from joblib import cpu_count  # takes longer to load than all else here

    if type(multiprocessing.current_process()).__name__ == "LokyProcess":
        # joblib sets the variable for each of its workers.
        return max(1, min(cpu_count(), int(os.environ.get("OMP_NUM_THREADS") or cpu_count())))
    return int(cpu_count())


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
    # Asked once: a small iteration would spend a tenth of its time on asking the system again.
    token = _n_threads.set(n_jobs or _n_threads.get() or available_threads())
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


@functools.cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_threads(), thread_name_prefix="nonneg")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool without its threads.
    os.register_at_fork(after_in_child=_executor.cache_clear)


def team_size(operations: float, cost: float = CORE_THREAD) -> int:
    """Return the number of threads that pay off for some operations, given what one more costs."""
    most = current_threads()
    if most == 1 or operations < SMALLEST_TASK:
        return 1
    # With n threads the work takes w / n and the waking n c: the sum is smallest for n = sqrt(w / c).
    return max(1, int(min(most, math.sqrt(operations / (RATE * cost)))))


def parallel_for(
    function: Callable[[int, int], Result], n_rows: int, *, chunk_size: int, operations: float = float("inf")
) -> list[Result]:
    """Call `function(start, stop)` on ranges that cover the rows, on the pool's threads."""
    blocks = -(-n_rows // chunk_size)
    n_ranges = min(team_size(operations, PYTHON_THREAD), blocks) if blocks > 1 else 1
    if n_ranges <= 1:
        return [function(0, n_rows)]
    edges = [min(n_rows, chunk_size * (blocks * i // n_ranges)) for i in range(n_ranges + 1)]

    def work(start: int, stop: int) -> Result:
        with serial():
            return function(start, stop)

    parts = [_executor().submit(work, *ends) for ends in itertools.pairwise(edges)]
    try:
        wait(parts)
    finally:  # an interruption waits for what has begun
        wait([part for part in parts if not part.cancel()])
    return [part.result() for part in parts]
