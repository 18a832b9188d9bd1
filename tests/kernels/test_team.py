"""Compiled tasks on several threads: what they cover, who may use them, and that numbers stay the same."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
import types

import numba
import numpy as np
import pytest

from nonneg import _threads
from nonneg._threads import parallel_for, serial, team_size, threads
from nonneg.data import dense
from nonneg.data.dense import DenseMatrix
from nonneg.kernels import entries, products, rows, team
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.leastsquares import nonnegative_least_squares


@pytest.fixture
def any_size(monkeypatch):
    """Let small tasks run on all threads, and small products in parts."""
    monkeypatch.setattr(_threads, "SMALLEST_TASK", 0.0)
    monkeypatch.setattr(_threads, "AWAKE", 1e-12)
    for module in (rows, dense, products):
        monkeypatch.setattr(module, "SMALL_PRODUCT", 0.0)
    monkeypatch.setattr(products, "PART", 2e3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_products_do_not_depend_on_the_layout(dtype, n_jobs, any_size):
    rng = np.random.default_rng(0)
    X = rng.random((90, 70)).astype(dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    layouts = [X, np.asfortranarray(X), X[3:], X[:, :31], X[:, ::2], X[::2], X[:1], X.T[5:]]
    for array in layouts:
        data = DenseMatrix(array, np)
        W, Ht = (rng.random((side, 7)).astype(dtype) for side in array.shape)
        with threads(n_jobs):
            found = data.times(Ht), data.transposed_times(W), data.times(np.asfortranarray(Ht))
        assert all(part.dtype == dtype for part in found)
        for part, exact in zip(found, (array @ Ht, array.T @ W, array @ Ht), strict=True):
            np.testing.assert_allclose(part, exact, rtol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_digit_of_a_product_depends_on_the_number_of_threads(dtype, any_size):
    rng = np.random.default_rng(0)
    X = rng.random((230, 170)).astype(dtype)
    W, Ht = (rng.random((side, 7)).astype(dtype) for side in X.shape)
    for array in (X, np.asfortranarray(X)):
        data = DenseMatrix(array, np)
        found = []
        for n_jobs in (1, 2, 5):
            with threads(n_jobs):
                found.append((data.times(Ht), data.transposed_times(W), rows.gram_of(W), data.squared_norm()))
        for other in found[1:]:
            for part, expected in zip(other, found[0], strict=True):
                np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_and_sums_agree_with_numpy(dtype, any_size):
    rng = np.random.default_rng(1)
    a, b = ((rng.random((3000, 7)) - 0.5).astype(dtype) for _ in range(2))
    a[::3] = 0
    other = np.float32 if dtype == np.float64 else np.float64
    with threads(3):
        assert rows.nonzero_count(a) == np.count_nonzero(a)
        np.testing.assert_allclose(rows.absolute_sum(a), np.abs(a).sum(dtype=np.float64), rtol=1e-12)
        np.testing.assert_allclose(
            rows.product_sum(a, b), np.vdot(a.astype(np.float64), b.astype(np.float64)), rtol=1e-10
        )
        np.testing.assert_allclose(rows.gram_of(a, b), a.T @ b, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(rows.converted(a, 0.25, other), (a * dtype(0.25)).astype(other))
        exact = np.maximum(a + dtype(0.7) * (a - b), 0)
        np.testing.assert_allclose(rows.extrapolated(a, b, 0.7), exact, rtol=1e-6, atol=1e-7)
        # Transposed views are left to NumPy.
        np.testing.assert_allclose(rows.absolute_sum(a.T), np.abs(a).sum(dtype=np.float64), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_do_not_depend_on_the_number_of_threads(dtype, any_size):
    rng = np.random.default_rng(2)
    factor, cross = (rng.random((301, 6)).astype(dtype) for _ in range(2))
    base = rng.random((9, 6)).astype(dtype)
    gram = SharedGram(base.T @ base)
    found = []
    for n_jobs in (1, 2, 4):
        with threads(n_jobs):
            updated, violation = hals_passes(factor, gram, cross, max_passes=4, shrink=0.1)
            found.append((updated, nonnegative_least_squares(gram, cross, start=updated), violation))
    for updated, exact, violation in found[1:]:
        np.testing.assert_array_equal(updated, found[0][0])
        np.testing.assert_allclose(exact, found[0][1], rtol=1e-4 if dtype == np.float32 else 1e-9, atol=1e-6)
        np.testing.assert_allclose(violation, found[0][2], rtol=1e-6)


def test_the_work_decides_how_many_take_part():
    with threads(16):
        assert team_size(_threads.SMALLEST_TASK / 2) == 1
        assert 1 < team_size(_threads.SMALLEST_TASK) <= 16
        assert team_size(1e12) == 16
        with serial():
            assert team_size(1e12) == 1
        assert parallel_for(lambda start, stop: team_size(1e12), 100, chunk_size=1)[-1] == 1
    with threads(1):
        assert team_size(1e12) == 1


def test_callers_side_by_side_get_the_numbers_of_one_alone(any_size):
    rng = np.random.default_rng(3)
    A, B = rng.random((400, 60)), rng.random((60, 9))
    with threads(2):
        alone = DenseMatrix(A, np).times(B)
    wrong = []

    def caller():
        with threads(2):
            for _ in range(200):
                if not np.array_equal(DenseMatrix(A, np).times(B), alone):
                    wrong.append(1)

    callers = [threading.Thread(target=caller) for _ in range(3)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert not wrong
    assert _threads._pool.n_callers == _threads._pool.in_team == 0


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
def test_helpers_sleep_and_are_woken(any_size, monkeypatch):
    monkeypatch.setattr(_threads, "waking_seconds", lambda: 1e-5)
    a = np.ones((5000, 4))
    with threads(2):
        rows.absolute_sum(a)
        assert team._team is not None
        helpers = list(team._team.helpers)
        deadline = time.monotonic() + 30
        while not all(helper.asleep for helper in helpers) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert all(helper.asleep for helper in helpers)
        if helpers:
            seen = []
            monkeypatch.setattr(team._Helper, "wake", lambda self: seen.append(self.number))
            team._team.missed = 0.0
            monkeypatch.setattr(_threads, "RATE", rows.ENTRY * a.size / 1.5e-5)
            rows.absolute_sum(a)
            assert seen == []
            rows.absolute_sum(a)
            assert seen == [0]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
def test_an_interruption_waits_for_the_helpers(monkeypatch):
    waits = []

    def is_done(board, patience, others):
        waits.append(1)
        return len(waits) > 1

    def sleep(seconds):
        if not waits:
            waits.append(0)
            raise KeyboardInterrupt

    if team._team is None:
        monkeypatch.setattr(team, "_team", team.Team())
    monkeypatch.setattr(team, "_lead", lambda *arguments: False)
    monkeypatch.setattr(team, "_is_done", is_done)
    monkeypatch.setattr(team.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        team._team.run(0, 0, 10, 5, n_threads=1, seconds=0.0)
    assert len(waits) == 2


FORKED = """
import os, signal
import numpy as np
from nonneg._threads import threads
from nonneg.data.dense import DenseMatrix
A, B = np.ones((2000, 300)), np.ones((300, 8))
with threads(2):
    first = DenseMatrix(A, np).times(B)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if np.array_equal(DenseMatrix(A, np).times(B), first) else 1)
        DenseMatrix(A, np).times(B)
        assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_helpers_of_its_own():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=120)


def test_arrays_of_other_kinds_are_left_to_numpy(any_size):
    A, B = np.ones((40, 30)), np.ones((30, 5), dtype=np.float32)
    with threads(2):
        assert not products.multiply(A, B, np.empty((40, 5)))
        assert not products.multiply(A[:0], np.ones((30, 5)), np.empty((0, 5)))
        assert entries.total(entries.PRODUCT, A, A.T) is None
        assert rows.absolute_sum(A.astype(">f8")) == A.size
        assert rows.nonzero_count(np.arange(12).reshape(3, 4)) == 11
        repeated = np.broadcast_to(np.arange(30.0), (40, 30))
        np.testing.assert_array_equal(DenseMatrix(repeated, np).times(np.ones((30, 5))), 435.0)
        whole = np.full((40, 30), 2)
        np.testing.assert_array_equal(DenseMatrix(whole, np).times(np.ones((30, 5), dtype=int)), 60)


def test_entries_of_equal_arrays_only_are_taken_together(any_size):
    A, single = np.ones((300, 20)), np.ones((300, 20), dtype=np.float32)
    with threads(2):
        assert entries.total(entries.PRODUCT, A, A) == A.size
        assert entries.extrapolated(A, A, 0.5) is not None
        assert entries.converted(A, 2.0, np.float32) is not None
        for other in (A[:200], single, np.asfortranarray(A)):
            assert entries.total(entries.PRODUCT, A, other) is None
            assert entries.extrapolated(A, other, 0.5) is None
        for other in (A.astype(int), np.asfortranarray(A)):
            assert entries.converted(other, 2.0, np.float32) is None


def test_parts_of_a_product_are_whole_multiples():
    part = products.PART
    assert products.part_size(100, 0.0, 16) == 112
    assert products.part_size(96, 0.0, 16) == 96
    assert products.part_size(100, 2.5 * part, 16) == 64
    assert products.part_size(97, 3.0 * part, 16) == 48
    assert products.part_size(16 * products.MOST_PARTS, 1e9 * part, 16) == 16
    assert products.part_size(16 * products.MOST_PARTS + 1, 1e9 * part, 16) == 32


def test_every_thread_gets_a_few_chunks(monkeypatch):
    seen = []

    def run_at(task, address, n_rows, size, *, operations, n_threads):
        given = ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))[:4]
        seen.append((size, given, n_rows, n_threads))

    monkeypatch.setattr(team, "run_at", run_at)
    array = np.zeros(3)

    def sizes(n_rows, parts=1, n_threads=2):
        done = team.run(
            None, [5, 6], (array,), n_rows, chunk_size=10, operations=1.0, parts=parts, n_threads=n_threads
        )
        return seen[-1][0] if done else None

    assert [sizes(100), sizes(100, 3), sizes(91, 1, 4), sizes(100, 1, 16)] == [50, 20, 30, 10]
    assert seen[0] == (50, [5, 6, 50, array.ctypes.data], 100, 2)
    assert [sizes(10), sizes(11), sizes(100, n_threads=1)] == [None, 10, None]


def test_one_thread_works_on_ranges_of_rows():
    task = types.SimpleNamespace(dispatcher=lambda address, start, stop: ranges.append((start, stop)))
    ranges = []
    team.run_at(task, 0, 25, 10, operations=1e12, n_threads=1)
    assert ranges == [(0, 10), (10, 20), (20, 25)]
    ranges.clear()
    team.run_at(task, 0, 10, 10, operations=1e12, n_threads=4)
    team.run_at(task, 0, 0, 10, operations=1e12, n_threads=4)
    assert ranges == [(0, 10)]


def test_a_helper_that_is_woken_is_awake():
    helper = team._Helper.__new__(team._Helper)
    helper.asleep, helper.ready = True, threading.Lock()
    helper.ready.acquire()
    helper.wake()
    assert not helper.asleep
    assert not helper.ready.locked()
