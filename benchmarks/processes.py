"""A measurement in a process of its own, so that nothing that ran before it counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def measured_apart(module: str, *words: object) -> dict[str, Any]:
    """Run a benchmark's module, which prints one record.

    Parameters
    ----------
    module : str
        Its name inside this package.
    *words : object
        Its arguments.

    Returns
    -------
    dict
        The record; where the process failed, the last line of what it said as ``failure``.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parent.parent,
    )
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found
