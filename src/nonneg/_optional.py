"""Libraries that are used if they are installed; if they are not, one sentence says how to install them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from nonneg.exceptions import MissingDependencyError


def import_optional(name: str, *, extra: str, purpose: str) -> Any:
    """Import a library that only some users need."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        # pip reads the extras of the nonneg that is installed, wherever it came from.
        raise MissingDependencyError(
            f"{purpose} needs {package}, which is missing. Install it with: pip install 'nonneg[{extra}]'"
        ) from error


def is_installed(name: str) -> bool:
    """Say whether a library can be found, without importing it."""
    return importlib.util.find_spec(name) is not None
