"""BLAS held to one thread, because the pool's threads call it; libraries that are loaded later too."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.RLock()
_libraries: dict[str, Any] = {}
_n_modules = 0
_n_users = 0
_before: dict[str, int] = {}  # number of threads of each library that is held


def _find_libraries() -> None:
    """Find the libraries that were loaded since the last call."""
    global _n_modules
    # A library comes with a module. Looking through all that is loaded takes milliseconds.
    if len(sys.modules) == _n_modules:
        return
    from threadpoolctl import ThreadpoolController

    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        _libraries.setdefault(library.filepath, library)
    _n_modules = len(sys.modules)


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
    global _n_users
    # Most settings belong to the whole process: the first of several fits that run side by side makes them
    # and the last one takes them back, whatever their threads. OpenMP counts threads for each calling thread,
    # whose blocks end in the order of a stack. What is loaded meanwhile is held from the next block on.
    with _lock:
        _find_libraries()
        counts = {path: each.get_num_threads() for path, each in _libraries.items() if path not in _before}
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
    # The other threads that ran a fit are gone; the next user takes their settings back.
    global _n_users
    _n_users = 0
    _lock.release()


if hasattr(os, "register_at_fork"):
    # No thread may be setting a number while the process forks: OpenBLAS does so under a lock of its own that
    # the child would inherit locked.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )
