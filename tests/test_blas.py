"""BLAS is held to one thread while the pool's threads call it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from nonneg import NMF
from nonneg._threads import single_threaded_blas, threads


def counts():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def before():
    importlib.import_module("scipy.linalg.cython_blas")  # all libraries are loaded
    with threadpool_limits(limits=2, user_api="blas"):
        yield counts()


@pytest.mark.parametrize("held", [single_threaded_blas, lambda: threads(None)])
def test_every_blas_is_held_and_set_free_again(held, before):
    with held():
        assert set(counts().values()) == {1}
        with held():
            assert set(counts().values()) == {1}
        assert set(counts().values()) == {1}
    assert counts() == before


def test_it_is_set_free_after_an_error(before):
    with pytest.raises(RuntimeError), single_threaded_blas():
        raise RuntimeError
    assert counts() == before


def test_it_is_set_free_by_the_last_of_several_fits(before):
    first, second = single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(counts().values()) == {1}
    second.__exit__(None, None, None)
    assert counts() == before


def hold_in_a_thread(entered, leave, seen):
    with single_threaded_blas():
        seen.append(set(counts().values()))
        entered.set()
        leave.wait(60)
        seen.append(set(counts().values()))


@pytest.mark.parametrize("last", ["thread", "main"])
def test_fits_in_several_threads_hold_it_and_set_it_free_in_any_order(last, before):
    entered, leave, seen = threading.Event(), threading.Event(), []
    thread = threading.Thread(target=hold_in_a_thread, args=(entered, leave, seen))
    main = single_threaded_blas()
    if last == "main":
        thread.start()
        assert entered.wait(60)
        main.__enter__()
        leave.set()
        thread.join(60)
        assert set(counts().values()) == {1}
        main.__exit__(None, None, None)
    else:
        main.__enter__()
        thread.start()
        assert entered.wait(60)
        main.__exit__(None, None, None)
        leave.set()
        thread.join(60)
    assert seen == [{1}, {1}]
    assert counts() == before


def test_a_fit_in_a_thread_gives_the_bytes_of_the_main_thread(before, rng):
    X, found = rng.random((60, 40)), []

    def fit():
        found.append(NMF(5, random_state=0, max_iter=30, tol=0, n_jobs=1).fit_transform(X))

    fit()
    for _ in range(2):
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
    assert counts() == before
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_a_library_that_is_loaded_late_is_held_too():
    # In a process of its own: in this one all are loaded.
    code = """
import sys
import numpy
from threadpoolctl import threadpool_info
from nonneg._threads import single_threaded_blas

def counts():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

with single_threaded_blas():
    assert "scipy.linalg.cython_blas" not in sys.modules
    import scipy.linalg.cython_blas
    with single_threaded_blas():
        assert set(counts().values()) == {1}, counts()
before = counts()
with single_threaded_blas():
    assert set(counts().values()) == {1}, counts()
assert counts() == before
"""
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
