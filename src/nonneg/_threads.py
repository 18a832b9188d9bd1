"""One pool of threads for kernels and products, never nested, and BLAS held to one thread.

Kernels release the GIL and work on a range of rows; so do products, each thread calling a BLAS that is
held to one thread. A BLAS that waits for threads of its own by spinning takes the cores from the kernels,
and on a machine with other work to do it was seen to be thirty times slower.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from nonneg._arguments import is_count
from nonneg._interruption import interrupting_others
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
# Ranges of rows for work in Python, of which each may hold a sum; more threads hardly help it.
MOST_RANGES = 16

_n_threads: ContextVar[int | None] = ContextVar("nonneg_n_threads", default=None)
_in_worker = threading.local()

# BLAS libraries that are loaded, and what holds them to one thread.
_lock = threading.RLock()
_libraries: dict[str, Any] = {}
_n_modules = 0
_n_users = 0
_before: dict[str, int] = {}  # number of threads of each library that is held


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
    if n_jobs is not None and (not is_count(n_jobs, -sys.maxsize) or n_jobs == 0):
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
    """Call `function(start, stop)` on ranges of the rows, which do not depend on the number of threads."""
    blocks = -(-n_rows // chunk_size)
    n_ranges = max(1, min(MOST_RANGES, blocks))
    edges = [min(n_rows, chunk_size * (blocks * i // n_ranges)) for i in range(n_ranges + 1)]
    ranges = list(itertools.pairwise(edges))
    n_threads = min(team_size(operations, PYTHON_THREAD), n_ranges)
    if n_threads <= 1:
        return [function(*ends) for ends in ranges]

    def work(first: int, last: int) -> list[Result]:
        with serial():
            return [function(*ends) for ends in ranges[first:last]]

    shares = [n_ranges * i // n_threads for i in range(n_threads + 1)]
    parts = [_executor().submit(work, *ends) for ends in itertools.pairwise(shares)]
    try:
        wait(parts)
    except KeyboardInterrupt:
        with interrupting_others():
            wait([part for part in parts if not part.cancel()])
        raise
    return [result for part in parts for result in part.result()]


def _set(counts: dict[str, int]) -> None:
    for path, count in counts.items():
        # threadpoolctl lets one thread at a time set the number of OpenBLAS, and ignores others in silence.
        # Here the lock keeps them apart.
        free = getattr(_libraries[path], "clear_controlling_thread", lambda force: None)
        free(force=True)
        _libraries[path].set_num_threads(count)
        free(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread."""
    global _n_modules, _n_users
    # Most settings belong to the whole process: the first of several fits that run side by side makes them
    # and the last one takes them back, whatever their threads. OpenMP counts threads for each calling thread,
    # whose blocks end in the order of a stack. What is loaded meanwhile is held from the next block on.
    with _lock:
        # A library comes with a module. Looking through all that is loaded takes milliseconds.
        if len(sys.modules) != _n_modules:
            from threadpoolctl import ThreadpoolController

            for library in ThreadpoolController().select(user_api="blas").lib_controllers:
                _libraries.setdefault(library.filepath, library)
            _n_modules = len(sys.modules)
        counts = {path: blas.get_num_threads() for path, blas in _libraries.items() if path not in _before}
        of_thread = {
            path: count
            for path, count in counts.items()
            if getattr(_libraries[path], "threading_layer", None) == "openmp"
        }
        _before.update((path, count) for path, count in counts.items() if path not in of_thread)
        _set(dict.fromkeys(counts, 1))
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _set(of_thread)
            _n_users = max(0, _n_users - 1)  # a child of a fork inside this block has counted anew
            if _n_users == 0:
                _set(_before)
                _before.clear()


def is_held() -> bool:
    """Tell whether all libraries that are loaded are held to one thread."""
    return len(sys.modules) == _n_modules and _n_users > 0


def _after_fork_in_child() -> None:
    # The child inherits the pool without its threads. The other threads that ran a fit are gone; the next
    # user takes their settings back.
    global _n_users
    _executor.cache_clear()
    _n_users = 0
    _lock.release()


if hasattr(os, "register_at_fork"):
    # No thread may be setting a number while the process forks: OpenBLAS does so under a lock of its own that
    # the child would inherit locked.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )
