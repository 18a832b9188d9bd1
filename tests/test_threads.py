"""The pool of threads: who may use it, what it covers, and that it never nests."""

from __future__ import annotations

import _thread
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from nonneg import _threads
from nonneg._lazy import cached_property
from nonneg._threads import available_threads, current_threads, parallel_for, serial, threads


def test_the_number_of_threads_is_that_of_the_context():
    everything = available_threads()
    assert current_threads() == everything
    with threads(1):
        assert current_threads() == 1
        with threads(3):
            assert current_threads() == 3
        assert current_threads() == 1
    assert current_threads() == everything


@pytest.mark.parametrize(("n_jobs", "free"), [(None, 0), (-1, 0), (-2, 1), (-1000, None)])
def test_negative_numbers_leave_cores_free_as_joblib_counts(n_jobs, free):
    with threads(n_jobs):
        expected = 1 if free is None else max(1, available_threads() - free)
        assert current_threads() == expected


def test_the_number_is_forgotten_after_an_error():
    with pytest.raises(ZeroDivisionError), threads(1):
        raise ZeroDivisionError
    assert current_threads() == available_threads()


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8, 100])
@pytest.mark.parametrize("chunk_size", [1, 3, 128])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_ranges_cover_all_rows_once_and_do_not_depend_on_the_threads(n_rows, chunk_size, n_jobs):
    def ranges_on(n_threads):
        with threads(n_threads):
            return parallel_for(lambda start, stop: (start, stop), n_rows, chunk_size=chunk_size)

    ranges = ranges_on(n_jobs)
    assert ranges == ranges_on(3)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_rows
    for (start, stop), (following, _) in itertools.pairwise(ranges):
        assert start < stop == following
        assert following % chunk_size == 0


def test_no_rows_are_one_empty_range():
    with threads(2):
        assert parallel_for(lambda start, stop: (start, stop), 0, chunk_size=1) == [(0, 0)]


def test_small_work_stays_on_the_calling_thread():
    with threads(4):
        found = parallel_for(lambda start, stop: threading.get_ident(), 100, chunk_size=1, operations=10.0)
    assert set(found) == {threading.get_ident()}


def test_callers_side_by_side_get_all_their_results():
    def caller():
        with threads(4):
            found.append(parallel_for(lambda start, stop: (time.sleep(0.01), start)[1], 40, chunk_size=10))

    found = []
    callers = [threading.Thread(target=caller) for _ in range(3)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert found == [[0, 10, 20, 30]] * 3


def test_an_interruption_waits_for_the_others():
    finished = []

    def work(start, stop):
        if start == 0:
            _thread.interrupt_main()
        time.sleep(0.05)
        finished.append(start)

    # Jobs in the background of a shell begin with a SIGINT that is ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with threads(2), pytest.raises(KeyboardInterrupt):
            parallel_for(work, 10, chunk_size=5)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert 0 in finished


def test_workers_of_joblib_share_the_cores():
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(available_threads)() for _ in range(2))
    # A number that the user has set for all processes comes first.
    share = int(os.environ.get("OMP_NUM_THREADS", max(1, joblib.cpu_count() // 2)))
    assert found == [min(share, available_threads())] * 2


def test_a_pool_inside_the_pool_stays_on_its_thread():
    def inner(start, stop):
        return threading.get_ident()

    def outer(start, stop):
        return current_threads(), parallel_for(inner, 50, chunk_size=1), threading.get_ident()

    with threads(2):
        for n_threads, inside, outside in parallel_for(outer, 10, chunk_size=1):
            assert n_threads == 1
            assert set(inside) == {outside}


def test_serial_holds_and_nests():
    with threads(3), serial():
        with serial():
            assert current_threads() == 1
        assert current_threads() == 1
        caller = threading.get_ident()
        assert set(parallel_for(lambda start, stop: threading.get_ident(), 50, chunk_size=1)) == {caller}


def test_an_error_in_any_range_is_raised():
    def fail(start, stop):
        if start:
            raise RuntimeError("in a thread")

    with threads(2), pytest.raises(RuntimeError, match="in a thread"):
        parallel_for(fail, 10, chunk_size=1)


def test_a_forked_child_makes_a_pool_of_its_own():
    # In a process of its own: this one may have threads of other libraries.
    code = """
import os, sys, threading, time
from nonneg._threads import parallel_for, threads
def workers():
    return set(parallel_for(lambda a, b: (time.sleep(0.1), threading.get_ident())[1], 2, chunk_size=1))
with threads(2):
    assert len(workers()) == 2
    child = os.fork()
    if child == 0:
        os._exit(0 if len(workers()) == 2 else 1)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 0


def test_an_instance_does_not_wait_for_the_cached_property_of_another():
    begun, free = threading.Event(), threading.Event()

    class Slow:
        waits = False

        @cached_property
        def value(self):
            if self.waits:
                begun.set()
                free.wait(60)
            return [self.waits]

    first, second = Slow(), Slow()
    first.waits = True
    thread = threading.Thread(target=lambda: first.value)
    thread.start()
    assert begun.wait(60)
    # With a lock for all instances this waits until `free` is set, which is too late for the assertion.
    assert second.value == [False]
    assert "value" not in vars(first)
    free.set()
    thread.join()
    assert first.value is first.value
    assert first.value == [True]


def test_no_thread_sets_the_number_of_blas_threads_while_the_process_forks():
    order = []

    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0 if _threads._lock.acquire(timeout=10) else 1)
        order.append("forked")
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    codes = []
    thread = threading.Thread(target=fork)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
        with _threads._lock:
            thread.start()
            thread.join(0.2)
            order.append("set")
        thread.join()
    assert order == ["set", "forked"]
    assert codes == [0]


def test_children_forked_while_other_threads_fit_do_their_own_fits():
    code = """
import os, sys, threading, time
import numpy as np
from nonneg import factorize

X = np.random.default_rng(0).random((400, 30))
running = True

def fit():
    return factorize(X, 3, max_iter=20, tol=0, rng=0).loss

def fit_on():
    while running:
        fit()

workers = [threading.Thread(target=fit_on) for _ in range(3)]
for worker in workers:
    worker.start()
expected, failed = fit(), 0
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(0 if abs(fit() / expected - 1) < 1e-9 else 1)
    end = time.monotonic() + 30
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            failed += status != 0
            break
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            failed += 1
            break
        time.sleep(0.002)
running = False
for worker in workers:
    worker.join()
sys.exit(failed)
"""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=420, check=False)
    assert done.returncode == 0
