"""Locks that a fork takes first: a child must not inherit them from a thread that it does not have."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

# Seconds a fork waits at most, longer than a compilation takes; after that the child makes new locks.
PATIENCE = 60.0
# Seconds it waits with some locks in hand before it gives them back: a thread may wait for one of those.
TURN = 0.05

_guarded: list[tuple[Any, str]] = []
_taken: list[Any] = []  # of the fork in progress
_forking = threading.Lock()  # `_taken` belongs to one fork at a time


def guard(holder: Any, name: str = "_lock") -> None:
    """Let forks take a reentrant lock, an attribute; where they cannot, it is a new one in the child.

    The last one comes first: locks that are held for long are to be taken with empty hands.
    """
    getattr(holder, name)
    _guarded.insert(0, (holder, name))


def _before() -> None:
    _forking.acquire()
    end = time.monotonic() + PATIENCE
    while True:
        _taken[:] = []
        for each in _guarded:
            lock = getattr(*each)
            if not lock.acquire(timeout=TURN):
                break
            _taken.append(lock)
        if len(_taken) == len(_guarded) or time.monotonic() > end:
            return
        _release()
        time.sleep(0.001)  # for the thread that waits for them


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _in_parent() -> None:
    _release()
    _forking.release()


def _in_child() -> None:
    n_taken = len(_taken)
    _release()
    for each in _guarded[n_taken:]:
        setattr(*each, threading.RLock())
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
