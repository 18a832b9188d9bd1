"""A clock that stands still while kernels are compiled or loaded: the time of an iteration is its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_open = 0  # preparations in progress, in all threads
_since = 0.0
_total = 0.0


def seconds() -> float:
    """Return a time that differences can be taken of; preparations by any thread are left out."""
    with _lock:
        now = time.perf_counter()
        return now - _total - (now - _since if _open else 0.0)


@contextmanager
def preparing() -> Iterator[None]:
    """Stop the clock. Overlapping and nested preparations count once."""
    global _open, _since, _total
    with _lock:
        if not _open:
            _since = time.perf_counter()
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                _total += time.perf_counter() - _since


def _start_afresh() -> None:
    """Forget the preparations of other threads, which a forked process does not have."""
    global _lock, _open
    _lock, _open = threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
