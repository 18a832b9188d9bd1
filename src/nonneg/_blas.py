"""BLAS held to one thread, because the pool's threads call it; libraries that are loaded later too."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_libraries: dict[str, Any] = {}
_n_modules = 0
_before: list[tuple[Any, int]] = []
_n_users = 0


def _loaded_since() -> list[Any]:
    """Return the libraries that were loaded since this was last asked."""
    global _n_modules
    # A library comes with a module. Looking through all that is loaded takes milliseconds.
    if len(sys.modules) == _n_modules:
        return []
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    fresh = [library for library in found if library.filepath not in _libraries]
    _libraries.update((library.filepath, library) for library in fresh)
    _n_modules = len(sys.modules)
    return fresh


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread."""
    # The setting belongs to the whole process. The first of several fits that run side by side makes it and
    # the last one takes it back. What is loaded meanwhile is held from the next block on.
    global _n_users
    with _lock:
        fresh = _loaded_since()
        for library in fresh if _n_users else list(_libraries.values()):
            _before.append((library, library.get_num_threads()))
            library.set_num_threads(1)
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            while _n_users == 0 and _before:
                library, count = _before.pop()
                library.set_num_threads(count)


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """Hold BLAS to one thread, that of products inside compiled kernels too."""
    # It is SciPy's, which need not be NumPy's, and would be loaded by the first such product.
    import scipy.linalg.cython_blas  # noqa: F401

    with single_threaded_blas():
        yield
