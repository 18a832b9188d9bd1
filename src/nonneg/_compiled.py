"""Compiled core, if it was built for this processor, and the versions of all that a fit rests on."""

from __future__ import annotations

import functools
import importlib
import os
import platform
import sys
import warnings
from importlib import metadata
from typing import Any

from nonneg._threads import available_threads
from nonneg._version import __version__
from nonneg.exceptions import InvalidParameterError, NonnegWarning

LEVELS = ("none", "baseline", "avx2", "avx512")
"""Levels to which the environment variable NONNEG_CORE may lower the choice."""
LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "array-api-compat", "torch", "triton", "cupy-cuda12x", "dask",
    "anndata", "pandas", "networkx", "matplotlib",
)  # fmt: skip
"""Libraries whose versions are part of a report of a problem."""


def instruction_set() -> str:
    """Return for which instructions the core that is used was compiled; "none" without one."""
    return _load()[0]


def core() -> Any:
    """Return the extension module, None without one; see ``src/core/module.cpp`` for its functions."""
    return _load()[1]


@functools.cache
def _load() -> tuple[str, Any]:
    limit = os.environ.get("NONNEG_CORE", LEVELS[-1])
    if limit not in LEVELS:
        raise InvalidParameterError(
            f"The environment variable NONNEG_CORE must be one of {', '.join(LEVELS)}. Got {limit!r}."
        )
    if limit == "none":
        return "none", None
    try:
        module = importlib.import_module("nonneg._core")
        available = ["baseline", *module.instruction_sets()]
        level = [known for known in available if LEVELS.index(known) <= LEVELS.index(limit)][-1]
        # The table of operations has another name in each build: a ValueError where its files are mixed.
        module.use(importlib.import_module(f"nonneg._kernels_{level}").table)
    except (ImportError, ValueError) as error:
        warnings.warn(
            "nonneg runs without its compiled core: its installation found no C++ compiler, or its files are "
            f"from different builds ({error}). Results are the same; fits take longer. Install a compiler "
            "(g++ or clang), then nonneg again.",
            NonnegWarning,
            stacklevel=2,
        )
        return "none", None
    return level, module


def show_versions() -> None:
    """Write versions of the libraries, and which compiled core is used, to the terminal.

    See Also
    --------
    nonneg.NMF : The estimator.

    Examples
    --------
    >>> import nonneg
    >>> nonneg.show_versions()  # doctest: +ELLIPSIS
    nonneg ...
    """
    lines = {
        "nonneg": __version__,
        "compiled core": instruction_set(),
        "cores": str(available_threads()),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for name in LIBRARIES:
        try:
            lines[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            lines[name] = "-"
    width = max(map(len, lines))
    sys.stdout.write("".join(f"{name:<{width}}  {value}\n" for name, value in lines.items()))
