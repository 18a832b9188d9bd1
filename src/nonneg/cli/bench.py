"""`nonneg bench`: race against other libraries, from a checkout of the repository."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from nonneg.cli import terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--dry-run", action="store_true", help="say what would be run")


def run(options: argparse.Namespace) -> int:
    """Run `make bench` where there is one, and say how to get there otherwise."""
    make = shutil.which("make")
    if make is None or not (Path("benchmarks").is_dir() and Path("Makefile").is_file()):
        terminal.say(
            "The benchmarks are in the repository, not in the installed package. "
            "In a checkout of it, run: make bench"
        )
        return 0
    terminal.note("running: make bench")
    if options.dry_run:
        return 0
    return subprocess.run([make, "bench"], check=False).returncode
