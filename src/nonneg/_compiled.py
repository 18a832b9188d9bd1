"""Compiled core: the extension module for this processor, or None where it was not built."""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from typing import Any

from nonneg.exceptions import InvalidParameterError, NonnegWarning

VARIABLE = "NONNEG_CORE"
"""The environment variable that lowers the choice."""
LEVELS = ("none", "baseline", "avx2", "avx512")


@functools.cache
def instruction_set() -> str:
    """Return for which instructions the core that is used was compiled; "none" without one."""
    wanted = os.environ.get(VARIABLE, LEVELS[-1])
    if wanted not in LEVELS:
        raise InvalidParameterError(
            f"The environment variable {VARIABLE} must be one of {', '.join(LEVELS)}. Got {wanted!r}."
        )
    try:
        baseline = importlib.import_module("nonneg._core")
    except ImportError:
        if wanted != "none":
            warnings.warn(
                "nonneg runs without its compiled core, as its installation found no C++ compiler. Results "
                "are the same; fits take longer. Install a compiler (g++ or clang), then nonneg again.",
                NonnegWarning,
                stacklevel=2,
            )
        return "none"
    available = ["none", "baseline", *baseline.instruction_sets()]
    return [level for level in available if LEVELS.index(level) <= LEVELS.index(wanted)][-1]


@functools.cache
def core() -> Any:
    """Return the extension module, None without one; see ``src/core/module.cpp`` for its functions."""
    level = instruction_set()
    if level == "none":
        return None
    module = importlib.import_module("nonneg._core")
    module.use(importlib.import_module(f"nonneg._kernels_{level}").table)
    return module
