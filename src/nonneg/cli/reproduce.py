"""`nonneg reproduce`: repeat experiments of the papers."""

from __future__ import annotations

import argparse

from nonneg.cli import terminal
from nonneg.exceptions import UnknownNameError

EXPERIMENTS: dict[str, str] = {}
"""Identifier -> what it repeats."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of this command.
    """
    parser.add_argument("experiment", nargs="?", metavar="ID", help="which one (default: list them)")


def run(options: argparse.Namespace) -> int:
    """List the experiments.

    Parameters
    ----------
    options : Namespace
        As `add_arguments` declares them.

    Returns
    -------
    int
        0.
    """
    if options.experiment is not None:
        if not EXPERIMENTS:
            raise UnknownNameError(
                f"There is no experiment {options.experiment!r}: this version has none yet. "
                "`nonneg reproduce` lists those there are."
            )
        raise UnknownNameError.of("experiment", options.experiment, EXPERIMENTS)
    if not EXPERIMENTS:
        terminal.say("There are no experiments yet.")
    for name, title in EXPERIMENTS.items():
        terminal.say(f"{name}  {title}")
    return 0
