"""`nonneg reproduce`: repeat experiments of the papers, from a clone of the repository."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import nonneg
from nonneg.exceptions import UnsupportedError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the experiments if there is a clone."""
    command = _command()
    if command is not None:
        command.add_arguments(parser)
    else:
        parser.add_argument(
            "arguments", nargs=argparse.REMAINDER, help="available in a clone of the repository"
        )


def run(options: argparse.Namespace) -> int:
    """Run the experiments of the clone, or say how to get one."""
    command = _command()
    if command is not None:
        return int(command.run(options))
    raise UnsupportedError(
        "The experiments of the papers are in the repository, not in the installed package. "
        "Clone the repository, change into its folder and run: nonneg reproduce"
    )


def _command() -> Any:
    """Return the module behind the command, from the clone around the working directory or nonneg's own."""
    for root in (Path.cwd(), *Path.cwd().parents, Path(nonneg.__file__).parents[2]):
        if (root / "reproduction" / "command.py").is_file() and (root / "pyproject.toml").is_file():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module("reproduction.command")
    return None
