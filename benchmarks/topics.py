"""Claim: the topics of a draw of documents by MERIT take 20 seconds and 500 MB in all on two threads.

The draw is the first of ten classes of TDT2, about 19000 words, in a process of its own: it starts Python,
reads the documents, reduces the words to 20 dimensions, searches for anchors, and gives topics and
memberships. Seconds and memory are those of the whole process. Where the documents are not at hand
(`NONNEG_DATA`), the record says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.processes import measured_apart

# Peers and tables are not needed in the process that is measured.
if TYPE_CHECKING:
    from benchmarks.race import Settings

NAME = "topics"
TITLE = "Topics of TDT2, ten classes, by MERIT: seconds and memory of the whole process"
DRAWS = {"tdt2 K=5": ("tdt2", 5), "tdt2 K=10": ("tdt2", 10)}
"""Names of cases -> corpus and number of classes; always the first draw."""
ASKED = "tdt2 K=10"
SECONDS, MEMORY, THREADS = 20.0, 500e6, 2
STAGES = ("imports", "documents", "weights", "reduction", "anchors", "topics", "memberships")


class Stages:
    """Seconds by the clock and of processors in each stage."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count what runs inside as a stage."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall[name] = time.perf_counter() - wall
        self.cpu[name] = time.process_time() - cpu

    def around(self, name: str, function: Any) -> Any:
        """Return a function whose calls count as a stage."""

        def call(*given: Any, **options: Any) -> Any:
            with self.timed(name):
                return function(*given, **options)

        return call


def peak_memory() -> float:
    """Return the largest resident memory of this process so far."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return 1024.0 * int(line.split()[1])
    return float("nan")


def measure(corpus: str, k: int, n_threads: int) -> dict[str, Any]:
    """Return the record of one draw; to be called first thing in a fresh process."""
    stages = Stages()
    with stages.timed("imports"):
        from reproduction.merit import topic_draws

        from nonneg._threads import threads
    parts = {
        "find_anchor_words": "anchors",
        "topics_of_anchors": "topics",
        "least_squares_weights": "memberships",
    }
    with threads(n_threads), ExitStack() as patched:
        with stages.timed("documents"):
            draw = topic_draws.make_draw(corpus, k, 0)
        with stages.timed("weights"):
            draw.weights  # noqa: B018 (made at the first look)
        with stages.timed("reduction"):
            draw.points  # noqa: B018
        for name, stage in parts.items():
            timed = stages.around(stage, getattr(topic_draws, name))
            patched.enter_context(mock.patch.object(topic_draws, name, timed))
        _, memberships, facts = topic_draws.find_topics(draw, "merit", 0)
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - _started()
    peak = peak_memory()
    return {
        "seconds": seconds,
        "cpu": time.process_time(),
        "stages": {name: round(stages.wall[name], 3) for name in STAGES},
        "stages_cpu": {name: round(stages.cpu[name], 3) for name in STAGES},
        "peak": peak,
        "n_words": draw.counts.shape[1],
        "n_iter": facts["n_iter"],
        "digest": hashlib.sha256(memberships.tobytes()).hexdigest()[:16],
    }


def _started() -> float:
    # When the process began, in seconds since the machine did: the interpreter's own start counts as well.
    after_name = Path("/proc/self/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return int(after_name[19]) / os.sysconf("SC_CLK_TCK")


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure every draw in a process of its own."""
    cases = ("tdt2 K=5",) if settings.quick else tuple(DRAWS)
    for name in settings.named(cases):
        head = {"claim": NAME, "case": name, "threads": settings.threads, "contender": "merit"}
        found = measured_apart("topics", *DRAWS[name], settings.threads)
        if name == ASKED and settings.threads == THREADS and "failure" not in found:
            found["met"] = found["seconds"] <= SECONDS and found["peak"] <= MEMORY
        yield head | found


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    from benchmarks.records import latest
    from benchmarks.tables import markdown, number

    rows = []
    for record in latest(records, "case", "threads"):
        cells = [record["case"], str(record["threads"])]
        if "failure" in record:
            rows.append([*cells, f"failed: {record['failure']}", *[""] * (len(STAGES) + 3)])
            continue
        met = {True: "met", False: "missed"}.get(record.get("met"), "")
        rows.append(
            [
                *cells,
                number(record["seconds"]),
                number(record["cpu"]),
                number(record["peak"] / 1e6),
                *(number(record["stages"][name]) for name in STAGES),
                met,
            ]
        )
    bar = f"Target: {SECONDS:g} s and {MEMORY / 1e6:g} MB for {ASKED} on {THREADS} threads."
    head = ("draw", "threads", "seconds", "processor seconds", "MB", *STAGES, "")
    return markdown(head, rows) + f"\n\n{bar}"


def main() -> None:
    """Measure one draw and write its record as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("k", type=int)
    parser.add_argument("threads", type=int)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(measure(given.corpus, given.k, given.threads)))


if __name__ == "__main__":
    main()
