"""`nonneg completion SHELL`: print a completion script."""

from __future__ import annotations

import argparse

from nonneg.cli import terminal

OPTIONS = """
shell bash|zsh|tcsh: the shell
"""


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    from nonneg._optional import import_optional
    from nonneg.cli import build_parser

    shtab = import_optional("shtab", extra="completion", purpose="Shell completion")
    parser, _ = build_parser([], every=True)
    terminal.say(shtab.complete(parser, options.shell).rstrip())
