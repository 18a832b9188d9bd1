"""Products inside compiled kernels, made by a BLAS that is held to one thread.

It is SciPy's, which need not be NumPy's, and which may be loaded long after the pool of threads first looked
for what it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from nonneg._threads import held_blas, single_threaded_blas

_lock = threading.Lock()
_holders = 0
_before: list[tuple[Any, int]] = []


@cache
def _overlooked() -> list[Any]:
    # Asking every library at every scan would take a hundredth of a small one.
    import scipy.linalg.cython_blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    loaded = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in loaded if library.filepath not in held_blas()]


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """Hold BLAS to one thread, that of compiled products too.

    Yields
    ------
    None
        Nothing.

    Notes
    -----
    As with `single_threaded_blas`, the setting belongs to the whole process: the first of several kernels
    that run side by side makes it and the last one takes it back.
    """
    global _holders
    with single_threaded_blas():
        with _lock:
            if _holders == 0:
                for library in _overlooked():
                    _before.append((library, library.get_num_threads()))
                    library.set_num_threads(1)
            _holders += 1
        try:
            yield
        finally:
            with _lock:
                _holders -= 1
                while _holders == 0 and _before:
                    library, count = _before.pop()
                    library.set_num_threads(count)
