"""Libraries that are used when they are installed; one sentence says how to get them when they are not."""

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
        wanted = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != wanted:
            raise
        raise MissingDependencyError(
            f"{purpose} needs {wanted}, which is not installed. "
            f"Install it with: pip install 'nonneg[{extra}]'"
        ) from error


def is_installed(name: str) -> bool:
    """Say whether a library can be found, without importing it."""
    return importlib.util.find_spec(name) is not None
