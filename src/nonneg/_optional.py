"""Libraries that are used if they are installed; if they are not, one sentence says how to install them."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
from typing import Any
from urllib.parse import unquote, urlparse

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
            f"{purpose} needs {wanted}, which is not installed. Install it with: {install_command(extra)}"
        ) from error


def install_command(extra: str) -> str:
    """Return the command that adds an extra to nonneg, from where it was installed."""
    try:
        origin = importlib.metadata.distribution("nonneg").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        origin = None
    if not origin:
        return f"pip install 'nonneg[{extra}]'"
    about = json.loads(origin)  # PEP 610
    url = about["url"]
    if about.get("dir_info", {}).get("editable"):
        return f"pip install --editable '{unquote(urlparse(url).path)}[{extra}]'"
    kind = about.get("vcs_info", {}).get("vcs")
    return f"pip install 'nonneg[{extra}] @ {kind + '+' if kind else ''}{url}'"


def is_installed(name: str) -> bool:
    """Say whether a library can be found, without importing it."""
    return importlib.util.find_spec(name) is not None
