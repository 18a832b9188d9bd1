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
    return _load()[0]


@functools.cache
def core() -> Any:
    """Return the extension module, None without one; see ``src/core/module.cpp`` for its functions."""
    return _load()[1]


@functools.cache
def _load() -> tuple[str, Any]:
    wanted = os.environ.get(VARIABLE, LEVELS[-1])
    if wanted not in LEVELS:
        raise InvalidParameterError(
            f"The environment variable {VARIABLE} must be one of {', '.join(LEVELS)}. Got {wanted!r}."
        )
    if wanted == "none":
        return "none", None
    try:
        module = importlib.import_module("nonneg._core")
        available = ["baseline", *module.instruction_sets()]
        level = [each for each in available if LEVELS.index(each) <= LEVELS.index(wanted)][-1]
        module.use(importlib.import_module(f"nonneg._kernels_{level}").table)
    except ImportError:
        reason, cure = (
            "its installation found no C++ compiler",
            "Install a compiler (g++ or clang), then nonneg",
        )
    except ValueError:  # the table of operations has another name in each build
        reason, cure = "its files come from different builds", "Install nonneg"
    else:
        return level, module
    warnings.warn(
        f"nonneg runs without its compiled core, as {reason}. Results are the same; fits take longer. "
        f"{cure} again.",
        NonnegWarning,
        stacklevel=2,
    )
    return "none", None
