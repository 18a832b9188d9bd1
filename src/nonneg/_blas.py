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
_before: list[tuple[Any, int]] = []
_n_users = 0


class _Own(threading.local):
    # The same for the libraries that count threads for each calling thread.
    def __init__(self) -> None:
        self.before: list[tuple[Any, int]] = []
        self.n_users = 0


_own = _Own()


def _find_libraries() -> None:
    """Find the libraries that were loaded since the last call."""
    global _n_modules
    # A library comes with a module. Looking through all that is loaded takes milliseconds.
    if len(sys.modules) == _n_modules:
        return
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    for library in found:
        _libraries.setdefault(library.filepath, library)
    _n_modules = len(sys.modules)


def _belongs_to_threads(library: Any) -> bool:
    # OpenMP counts threads for each calling thread; the other libraries have one number for the process.
    return getattr(library, "threading_layer", None) == "openmp"


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
    # Most settings belong to the whole process. The first of several fits that run side by side makes them
    # and the last one takes them back, whatever their threads. What is loaded meanwhile is held from the next
    # block on. A child of a fork may inherit a setting that nobody takes back: `_before` says what it was.
    global _n_users
    with _lock:
        _find_libraries()
        held = {id(library) for library, _ in (*_before, *_own.before)}
        for library in _libraries.values():
            if id(library) not in held:
                (_own.before if _belongs_to_threads(library) else _before).append(
                    (library, library.get_num_threads())
                )
                _set(library, 1)
        _n_users += 1
        _own.n_users += 1
    try:
        yield
    finally:
        _own.n_users -= 1
        with _lock:
            while _own.n_users == 0 and _own.before:
                _set(*_own.before.pop())
            # A child of a fork inside this block has counted anew.
            _n_users = max(0, _n_users - 1)
            while _n_users == 0 and _before:
                _set(*_before.pop())


def is_held() -> bool:
    """Tell whether all libraries that are loaded are held to one thread."""
    return _n_users > 0 and len(sys.modules) == _n_modules


def _after_fork_in_child() -> None:
    # The other threads that ran a fit are gone.
    global _n_users
    _n_users = 0
    _lock.release()


if hasattr(os, "register_at_fork"):
    # No thread may be setting a number while the process forks: OpenBLAS does so under a lock of its own that
    # the child would inherit locked.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork_in_child
    )


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """Hold BLAS to one thread, that of products inside compiled kernels too."""
    # It is SciPy's, which need not be NumPy's, and would be loaded by the first such product.
    import scipy.linalg.cython_blas  # noqa: F401

    with single_threaded_blas():
        yield
