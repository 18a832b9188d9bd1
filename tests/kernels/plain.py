"""Kernels as plain Python: every line runs, on small arrays, without compilation."""

from __future__ import annotations

import functools
import importlib
import sys

import numba


@functools.cache
def plain(name):
    """Return another copy of a module whose kernels are not compiled, nor those that it imports."""
    kept = {key: sys.modules.pop(key) for key in list(sys.modules) if key.startswith("nonneg.kernels")}
    before = numba.config.DISABLE_JIT
    parents = {key: vars(module).copy() for key, module in kept.items()}
    try:
        numba.config.DISABLE_JIT = True
        return importlib.import_module(name)
    finally:
        numba.config.DISABLE_JIT = before
        for key in [key for key in sys.modules if key.startswith("nonneg.kernels")]:
            del sys.modules[key]
        sys.modules.update(kept)
        for key, names in parents.items():
            vars(kept[key]).update(names)
        if "nonneg.kernels" in kept:  # the package is an attribute of the one above
            sys.modules["nonneg"].kernels = kept["nonneg.kernels"]
