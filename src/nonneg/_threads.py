"""One pool of threads for kernels and products, never nested.

Kernels release the GIL and work on a range of rows; so do products, each thread calling a BLAS that is
held to one thread. A BLAS that waits for threads of its own by spinning takes the cores from the kernels,
and on a machine with other work to do it was seen to be thirty times slower.
"""

from __future__ import annotations

import functools
import itertools
import math
import numbers
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import nonneg._cores as _cores
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
# A thread must save this many times what waking it takes: others wait for the interpreter meanwhile.
WORTH = 4.0
# Seconds that waking a thread takes on a quick machine, and the least that is measured. Ranges rest on it: on
# what is measured rests only how many threads share them, so that no digit depends on the load of a machine.
QUICK_WAKING = 2.0**-17
# A task of the compiled core does not wait for the interpreter: seconds that one more thread costs, and
# operations below which the task is left to the calling thread.
AWAKE, SMALLEST_TASK = 5e-7, 1e5

_n_threads: ContextVar[int | None] = ContextVar("nonneg_n_threads", default=None)
_in_worker = threading.local()


def available_threads() -> int:
    """Return the number of cores this process may use."""
    return _cores.available_cores()


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


class _Task:
    """The ranges of a thread, and where their results go."""

    __slots__ = ("done", "error", "function", "ranges", "values")

    def __init__(self, function: Callable[[int, int], Any], ranges: list[tuple[int, int]]) -> None:
        self.function, self.ranges = function, ranges
        self.values: list[Any] = []
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            for start, stop in self.ranges:
                self.values.append(self.function(start, stop))
        except BaseException as error:  # raised again by the thread that waits
            self.error = error


class _Helper:
    """A thread that waits for a task. A lock wakes it in half the time of an executor's queue and futures."""

    def __init__(self, pool: _Pool) -> None:
        self.pool = pool
        self.task: _Task | None = None
        self.ready = threading.Lock()
        self.ready.acquire()
        threading.Thread(target=self._work, name="nonneg", daemon=True).start()

    def give(self, task: _Task | None) -> None:
        """Wake the thread with something to do; with None it ends."""
        self.task = task
        self.ready.release()

    def _work(self) -> None:
        _in_worker.busy = True
        while True:
            self.ready.acquire()
            task, self.task = self.task, None
            if task is None:
                return
            task.run()
            # Before the caller goes on, so that it finds this thread again.
            self.pool.idle.append(self)
            task.done.release()
            del task  # it holds the arrays of the caller


class _Pool:
    """Helpers for all callers together, never more than there are cores for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[_Helper] = []
        self.n_helpers = 0
        self.n_callers = 0

    def enter(self, wanted: int) -> list[_Helper]:
        """Count a caller and return the helpers it gets."""
        with self.lock:
            self.n_callers += 1
            busy = self.n_helpers - len(self.idle)
            free = available_threads() - self.n_callers - busy
            count = max(0, min(wanted, free))
            helpers = [self.idle.pop() for _ in range(min(count, len(self.idle)))]
            while len(helpers) < count:
                helpers.append(_Helper(self))
                self.n_helpers += 1
            return helpers

    def leave(self) -> None:
        """Remove a caller from the count."""
        with self.lock:
            self.n_callers -= 1


_pool = _Pool()


def _forget_pool() -> None:
    # A forked child inherits the pool without its threads, and a lock that nobody may release.
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


@functools.cache
def waking_seconds() -> float:
    """Return what handing work to another thread and waiting for it takes; measured once per machine."""
    return _cores.remembered("waking", _measure_waking)


def _measure_waking() -> float:
    helper = _Helper(_Pool())

    def once() -> float:
        task = _Task(lambda start, stop: None, [(0, 0)])
        begun = time.perf_counter()
        helper.give(task)
        task.done.acquire()
        return time.perf_counter() - begun

    taken = sorted([once() for _ in range(41)][10:])[15]
    helper.give(None)
    return min(max(taken, QUICK_WAKING), 2.5e-4)


def threads_for(operations: float, waking: float) -> int:
    """Return the number of threads that pay off for some operations, up to `current_threads`."""
    most = current_threads()
    if most == 1 or operations == math.inf:
        return most
    # With n threads the work takes w / n and the waking n h: the sum is smallest for n = sqrt(w / h).
    return max(1, min(most, int(math.sqrt(operations / (RATE * WORTH * waking)))))


def team_size(operations: float) -> int:
    """Return the number of threads that pay off for a compiled task with this number of operations."""
    most = current_threads()
    if most == 1 or operations < SMALLEST_TASK:
        return 1
    return min(most, int(math.sqrt(operations / (RATE * AWAKE))))  # at least 10 for the smallest task


def parallel_for(
    function: Callable[[int, int], Result], n_rows: int, *, chunk_size: int, operations: float = float("inf")
) -> list[Result]:
    """Call `function(start, stop)` on ranges that cover the rows, on the pool's threads."""
    blocks = -(-n_rows // chunk_size)
    n_ranges = min(threads_for(operations, QUICK_WAKING), blocks) if blocks > 1 else 1
    if n_ranges <= 1:
        return [function(0, n_rows)]
    edges = [min(n_rows, chunk_size * (blocks * i // n_ranges)) for i in range(n_ranges + 1)]
    ranges = list(itertools.pairwise(edges))
    # The ranges, and with them the results, depend on the number of threads asked for; who works on them, on
    # the machine and on what others are doing.
    n_threads = min(n_ranges, threads_for(operations, max(waking_seconds(), QUICK_WAKING)))
    if n_threads == 1:
        _in_worker.busy = True  # as `serial` does, in a fraction of its time
        try:
            return [function(start, stop) for start, stop in ranges]
        finally:
            _in_worker.busy = False
    pool = _pool
    # The calling thread takes a share itself: one hand-over less.
    helpers = pool.enter(n_threads - 1)
    try:
        n_threads = 1 + len(helpers)
        shares = [n_ranges * i // n_threads for i in range(n_threads + 1)]
        tasks = [_Task(function, ranges[start:stop]) for start, stop in itertools.pairwise(shares)]
        for helper, task in zip(helpers, tasks[1:], strict=True):
            helper.give(task)
        with serial():
            tasks[0].run()
        for task in tasks[1:]:
            task.done.acquire()
    finally:
        pool.leave()
    for task in tasks:
        if task.error is not None:
            raise task.error
    return [value for task in tasks for value in task.values]


def parallel_sum(
    function: Callable[[int, int], Any], n_rows: int, *, chunk_size: int, operations: float = float("inf")
) -> Any:
    """Return the sum of `function(start, stop)` over ranges that cover the rows, in their order."""
    parts = parallel_for(function, n_rows, chunk_size=chunk_size, operations=operations)
    return functools.reduce(lambda a, b: a + b, parts)
