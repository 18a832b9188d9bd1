"""A measurement in a process of its own, so that nothing that ran before it counts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def measured_apart(module: str, *words: object, show: bool = False) -> dict[str, Any]:
    """Run a benchmark's module, which prints one record."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        with subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)],
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parent.parent,
        ) as process:
            last = "no message"
            for line in process.stderr or ():
                last = line.strip() or last
                if show:
                    sys.stderr.write(line)
        if process.returncode:
            return {"failure": last}
        printed.seek(0)
        found: dict[str, Any] = json.load(printed)
    return found
