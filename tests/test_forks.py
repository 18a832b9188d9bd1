"""Forks wait for locks, in any order, and not forever."""

from __future__ import annotations

import os
import threading
import time
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from nonneg import _forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def exit_code_of_child(work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_locks_taken_in_another_order_do_not_stop_a_fork(monkeypatch):
    first, second = threading.RLock(), threading.RLock()
    holder = SimpleNamespace(first=first, second=second)
    monkeypatch.setattr(_forks, "_guarded", [(holder, "first"), (holder, "second")])
    begun = threading.Event()

    def hold():
        with second:
            begun.set()
            time.sleep(0.2)  # the fork has the first one now
            with first:
                pass

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    assert exit_code_of_child(lambda: first.acquire(timeout=5) and second.acquire(timeout=5)) == 0
    thread.join(10)
    assert not thread.is_alive()
    assert first.acquire(timeout=0)


@contextmanager
def held_by_another_thread(lock):
    free, begun = threading.Event(), threading.Event()

    def hold():
        with lock:
            begun.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        free.set()
        thread.join()


def test_a_fork_does_not_wait_forever_and_the_child_gets_a_new_lock(monkeypatch):
    holder = SimpleNamespace(lock=threading.RLock())
    monkeypatch.setattr(_forks, "_guarded", [])
    monkeypatch.setattr(_forks, "PATIENCE", 0.1)
    _forks.guard(holder, "lock")
    old = holder.lock
    with held_by_another_thread(holder.lock):
        assert exit_code_of_child(lambda: holder.lock is not old and holder.lock.acquire(timeout=5)) == 0
        assert holder.lock is old


def test_the_last_guarded_lock_comes_first(monkeypatch):
    monkeypatch.setattr(_forks, "_guarded", [])
    holders = [SimpleNamespace(_lock=threading.RLock()) for _ in range(3)]
    for holder in holders:
        _forks.guard(holder)
    assert _forks._guarded == [(holder, "_lock") for holder in reversed(holders)]
    with pytest.raises(AttributeError):
        _forks.guard(SimpleNamespace(), "lock")


def test_after_the_patience_the_child_renews_all_locks_from_the_first_that_was_held(monkeypatch):
    holder = SimpleNamespace(first=threading.RLock(), second=threading.RLock())
    monkeypatch.setattr(_forks, "_guarded", [(holder, "first"), (holder, "second")])
    monkeypatch.setattr(_forks, "PATIENCE", 0.05)

    def takes_both():
        return holder.first.acquire(timeout=1) and holder.second.acquire(timeout=1)

    with held_by_another_thread(holder.first):
        assert exit_code_of_child(takes_both) == 0
    assert holder.first.acquire(timeout=1)
    assert holder.second.acquire(timeout=0)
