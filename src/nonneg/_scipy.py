"""SciPy's file readers, called in one way over its versions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any


def read_matrices(reader: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call `scipy.io.mmread` or `loadmat` and get sparse matrices, the default before SciPy 1.20."""
    # SciPy 1.18 warns where `spmatrix` is left out; SciPy 1.13 does not know it.
    if "spmatrix" in signature(reader).parameters:
        options["spmatrix"] = True
    return reader(*args, **options)
