"""Kernels as plain Python: every line runs, on small arrays, without compilation."""

from __future__ import annotations

import functools
import importlib
import sys

import numba

# They have no kernels of numbers, and numba lets the machine code's cache be made only once.
SHARED = {"nonneg.kernels", *(f"nonneg.kernels.{name}" for name in ("jit", "clock", "machine_code", "team"))}
for shared in SHARED:
    importlib.import_module(shared)


@functools.cache
def plain(name):
    """Return another copy of a module whose kernels are not compiled, nor those that it imports."""
    kept = {key: sys.modules.pop(key) for key in _kernels()}
    names = {key: vars(sys.modules[key]).copy() for key in SHARED if key in sys.modules}
    before = numba.config.DISABLE_JIT
    try:
        numba.config.DISABLE_JIT = True
        return importlib.import_module(name)
    finally:
        numba.config.DISABLE_JIT = before
        for key in _kernels():
            del sys.modules[key]
        sys.modules.update(kept)
        for key, attributes in names.items():  # a package has its modules as attributes
            vars(sys.modules[key]).update(attributes)


def _kernels():
    return [key for key in sys.modules if key.startswith("nonneg.kernels.") and key not in SHARED]
