"""Peak memory of anchor selection, measured in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.exceptions import NonnegError
from nonneg.separable.select import select_anchors

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# A warm-up with this many points loads every library and kernel.
N_WARM_UP = 64


def can_measure() -> bool:
    """Tell whether this system records the peak memory of a process."""
    return STATUS.is_file()


def resident_peak() -> float | None:
    """Return the peak resident memory of this process."""
    return round(_resident("VmHWM"), 1) if can_measure() else None


def measured_peak(X: FloatArray, n_anchors: int, options: Mapping[str, Any]) -> dict[str, float]:
    """Search for anchors in a fresh process on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, X)
        command = [sys.executable, "-m", __name__, str(path), str(n_anchors), json.dumps(dict(options))]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it was killed"
        raise NonnegError(f"The process that measures memory ended with {done.returncode}: {why}")
    return dict(json.loads(done.stdout))


def main(words: Sequence[str]) -> None:
    """Measure in this process and write the result as JSON to standard output."""
    X, n_anchors, options = np.load(words[0]), int(words[1]), json.loads(words[2])
    with threads(1):
        # A few points may be within the tolerance of the whole before the first step.
        small = {**options, "tol": 0.0} if "tol" in options else options
        select_anchors(X[:N_WARM_UP], min(4, n_anchors), **small)
        started = _resident("VmHWM")
        before = _resident("VmRSS")
        RESET.write_text("5")  # resets the recorded peak
        select_anchors(X, n_anchors, **options)
        after = _resident("VmHWM")
    sys.stdout.write(json.dumps({"process": max(started, after), "search": after - before}))


def _resident(entry: str) -> float:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(entry))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main(sys.argv[1:])
