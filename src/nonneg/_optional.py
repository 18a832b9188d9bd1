"""Libraries that are used when they are installed; one sentence says how to get them when they are not."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from nonneg.exceptions import MissingDependencyError


def import_optional(name: str, *, extra: str, purpose: str) -> Any:
    """Import a library that only some users need.

    Parameters
    ----------
    name : str
        The module to import, such as ``"torch"`` or ``"dask.array"``.
    extra : str
        The extra of this package that installs it.
    purpose : str
        What needs it, as the subject of a sentence, such as ``"Reading .parquet files"``.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingDependencyError
        If the library is not installed. A library that is installed and fails inside keeps its own error.
    """
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
    """Say whether a library can be found, without importing it.

    Parameters
    ----------
    name : str
        A top-level module, such as ``"torch"``.

    Returns
    -------
    bool
        True if it is installed.
    """
    return importlib.util.find_spec(name) is not None
