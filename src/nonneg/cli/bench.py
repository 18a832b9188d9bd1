"""`nonneg bench`: race against other libraries, from a clone of the repository."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from nonneg.cli import terminal
from nonneg.exceptions import UnsupportedError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--dry-run", action="store_true", help="show the command without running it")


def run(options: argparse.Namespace) -> int:
    """Run `make bench` in a clone; elsewhere say how to get one."""
    make = shutil.which("make")
    if make is None or not (Path("benchmarks").is_dir() and Path("Makefile").is_file()):
        raise UnsupportedError(
            "The benchmarks are in the repository, not in the installed package. "
            "Clone the repository, change into its folder and run: nonneg bench"
        )
    terminal.note("running: make bench")
    if options.dry_run:
        return 0
    return subprocess.run([make, "bench"], check=False).returncode
