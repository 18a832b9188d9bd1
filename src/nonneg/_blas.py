"""BLAS held to one thread, because the pool's threads call it; libraries that are loaded later too."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class _Hold:
    """A library that is held."""

    library: Any
    before: int  # its number of threads before
    n_users: int = 0  # by how many blocks


_lock = threading.RLock()
_libraries: dict[str, Any] = {}
_n_modules = 0
_holds: dict[tuple[str, int], _Hold] = {}


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


def _set(library: Any, count: int) -> None:
    # threadpoolctl lets one thread at a time set the number of OpenBLAS, and ignores others in silence. Here
    # the lock keeps them apart.
    free = getattr(library, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)
    library.set_num_threads(count)
    if free is not None:
        free(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread."""
    # Most settings belong to the whole process: the first of several fits that run side by side makes them
    # and the last one takes them back, whatever their threads. OpenMP counts threads for each calling thread.
    # What is loaded meanwhile is held from the next block on.
    keys = []
    with _lock:
        _find_libraries()
        for path, library in _libraries.items():
            own = getattr(library, "threading_layer", None) == "openmp"
            keys.append((path, threading.get_ident() if own else 0))
            if keys[-1] not in _holds:
                _holds[keys[-1]] = _Hold(library, library.get_num_threads())
                _set(library, 1)
            _holds[keys[-1]].n_users += 1
    try:
        yield
    finally:
        with _lock:
            for key in keys:
                # A child of a fork inside this block has counted anew.
                hold = _holds.get(key)
                if hold is not None:
                    hold.n_users -= 1
                    if hold.n_users <= 0:
                        _set(hold.library, hold.before)
                        del _holds[key]


def is_held() -> bool:
    """Tell whether all libraries that are loaded are held to one thread."""
    return len(sys.modules) == _n_modules and any(hold.n_users for hold in list(_holds.values()))


def _after_fork_in_child() -> None:
    # The other threads that ran a fit are gone; the next user takes their settings back.
    for hold in _holds.values():
        hold.n_users = 0
    _lock.release()


if hasattr(os, "register_at_fork"):
    # No thread may be setting a number while the process forks: OpenBLAS does so under a lock of its own that
    # the child would inherit locked.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )
