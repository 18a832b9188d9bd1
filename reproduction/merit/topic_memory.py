"""Memory and time of a whole topic model, measured in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from nonneg.exceptions import NonnegError
from reproduction.merit.peak_memory import resident_peak


def measured_topics(counts: Any, n_topics: int, *, method: str = "merit", n_jobs: int = 1) -> dict[str, Any]:
    """Fit a topic model in a fresh process and tell its memory and time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts.npz"
        sp.save_npz(path, counts, compressed=False)
        command = [sys.executable, "-m", __name__, str(path), str(n_topics), method, str(n_jobs)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it was killed"
        raise NonnegError(f"The process that measures memory ended with {done.returncode}: {why}")
    return dict(json.loads(done.stdout))


def main(words: Sequence[str]) -> None:
    """Measure in this process and write the result as JSON to standard output."""
    from nonneg.applications import TopicModel

    counts = sp.csr_array(sp.load_npz(words[0]))
    options = {"recovery": False} if words[2].startswith("merit") else None
    model = TopicModel(
        int(words[1]),
        method=words[2].replace("(0)", "-0"),
        n_jobs=int(words[3]),
        method_params=options,
    )
    started = time.perf_counter()
    model.fit_transform(counts)
    seconds = time.perf_counter() - started
    sys.stdout.write(json.dumps({"process": resident_peak(), "seconds": seconds, "n_iter": model.n_iter_}))


if __name__ == "__main__":
    main(sys.argv[1:])
