"""The pool of threads as a count of cores: callers, helpers and teams."""

from __future__ import annotations

import math
import threading

import pytest

from nonneg import _threads
from nonneg._threads import current_threads, parallel_for, parallel_sum, threads
from nonneg.exceptions import InvalidParameterError


@pytest.fixture
def pool(monkeypatch):
    """A pool of its own on a machine with four cores."""
    found = _threads._Pool()
    monkeypatch.setattr(_threads, "_pool", found)
    monkeypatch.setattr(_threads, "available_threads", lambda: 4)
    yield found
    for helper in found.idle:
        helper.give(None)


def test_a_caller_gets_the_cores_that_are_left(pool):
    assert [len(pool.enter(wanted)) for wanted in (2, 5, 1)] == [2, 0, 0]
    # Two helpers are at work for the first of three callers.
    assert (pool.n_callers, pool.n_helpers, pool.idle) == (3, 2, [])
    pool.leave()
    pool.leave()
    assert len(pool.enter(9)) == 0
    pool.leave()
    pool.leave()
    assert len(pool.enter(9)) == 1


def test_idle_helpers_are_taken_first(pool):
    first = pool.enter(3)
    pool.idle += first
    pool.leave()
    again = pool.enter(2)
    assert set(again) <= set(first)
    assert (pool.n_helpers, len(pool.idle)) == (3, 1)
    pool.idle += again


def test_no_core_is_given_twice_and_none_below_zero(pool):
    assert pool.enter(0) == []
    pool.enter(9)
    assert pool.enter(3) == []


@pytest.mark.parametrize("n_jobs", [0, 1.0, "2", True, False, math.nan])
def test_numbers_of_jobs_that_are_none(n_jobs):
    with (
        pytest.raises(InvalidParameterError, match="n_jobs must be None or an integer other than 0"),
        threads(n_jobs),
    ):
        pass


def test_the_outer_number_holds_where_none_is_given(pool):
    assert current_threads() == 4
    with threads(3), threads(None):
        assert current_threads() == 3
    for n_jobs, expected in ((-1, 4), (-4, 1), (-5, 1), (7, 7)):
        with threads(n_jobs):
            assert current_threads() == expected


def test_threads_pay_off_by_the_root_of_the_work():
    unit = _threads.RATE * _threads.WORTH * 1e-5
    with threads(8):
        assert [_threads.threads_for(n * n * 1.001 * unit, 1e-5) for n in (1, 2, 5, 8, 9)] == [1, 2, 5, 8, 8]
        assert [_threads.threads_for(work, 1e-5) for work in (0.0, math.inf)] == [1, 8]
        assert _threads.threads_for(4.004 * unit, 2e-5) == 1
        assert _threads.team_size(_threads.RATE * _threads.AWAKE * 36.01 * 1e3) == 8


def test_sums_are_in_the_order_of_the_ranges(pool):
    for n_jobs in (1, 3):
        with threads(n_jobs):
            found = parallel_sum(lambda start, stop: [(start, stop)], 10, chunk_size=2)
        assert found[0][0] == 0
        assert found[-1][1] == 10
        assert len(found) == n_jobs
        assert found == sorted(found)


def test_ranges_are_even_and_begin_at_chunks(pool):
    with threads(4):
        found = parallel_for(lambda start, stop: (start, stop), 22, chunk_size=2)
        assert found == [(0, 4), (4, 10), (10, 16), (16, 22)]
        assert parallel_for(lambda start, stop: (start, stop), 5, chunk_size=4) == [(0, 4), (4, 5)]
        assert parallel_for(lambda start, stop: (start, stop), 4, chunk_size=4) == [(0, 4)]
        names = parallel_for(lambda start, stop: threading.current_thread().name, 8, chunk_size=1)
    assert names[0] == threading.current_thread().name
    assert set(names[1:]) == {"nonneg"}
    assert pool.n_callers == 0
    assert pool.n_helpers == len(pool.idle) == 3


def test_inside_of_a_range_kernels_use_one_thread_and_outside_all(pool, monkeypatch):
    with threads(4):
        assert set(parallel_for(lambda start, stop: current_threads(), 8, chunk_size=1)) == {1}
        assert current_threads() == 4
        monkeypatch.setattr(_threads, "waking_seconds", lambda: 1e3)
        few = parallel_for(lambda start, stop: current_threads(), 80, chunk_size=1, operations=1e7)
        assert len(few) > 1
        assert set(few) == {1}
        assert current_threads() == 4
        with pytest.raises(ZeroDivisionError):
            parallel_for(lambda start, stop: 1 / 0, 80, chunk_size=1, operations=1e7)
        assert current_threads() == 4
