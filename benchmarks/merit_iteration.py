"""Claims: an iteration of MERIT costs little more than its products, uses two cores, and needs linear memory.

The yardstick is the blocked float32 product X' R alone, in the same process, with the same blocks, on one
thread. Both take turns and the medians count. Memory is the high-water mark of a fresh process beyond X and
the imports, over the whole search of 100 iterations. At 100 000 points the first 98 scans are left out, and
points are drawn in their place, more of them a column than a real run uses (`--full` runs all of it).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import machine
from benchmarks.contender import stopwatch
from benchmarks.memory import peak_beyond
from benchmarks.processes import measured_apart
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "merit_iteration"
TITLE = "One iteration of MERIT compared with its float32 products alone (M=50, K=40, 10 dB), and its memory"
N_FEATURES, N_ANCHORS, SNR, SEED = 50, 40, 10.0, 20240601
SIZES = (1_000, 10_000, 100_000)
TURNS = {1_000: 41, 10_000: 7, 100_000: 2}
LAND, GOAL, SPEED_UP = 2.0, 1.6, 1.6
MEMORY = {1_000: 60e6, 10_000: 60e6, 100_000: 250e6}
ROWS, COLUMNS = 256, 256
"""Points and columns of a block of the bare products."""
ENTRIES = 40
"""Points from which every column draws where scans are left out; 100 iterations at 10 dB leave 31 entries."""


def points(n_points: int) -> Any:
    """Return the points of the claim."""
    from nonneg.datasets import separable_dirichlet

    return separable_dirichlet(n_points, N_FEATURES, N_ANCHORS, snr=SNR, rng=SEED).X


def bare_products(X: Any) -> Callable[[], None]:
    """Return a function that makes all blocks of X' R in float32, one after another, and keeps none."""
    left = np.ascontiguousarray(X, dtype=np.float32)
    right = left.copy()
    room = np.empty(ROWS * COLUMNS, dtype=np.float32)

    def products() -> None:
        for first in range(0, len(right), COLUMNS):
            columns = right[first : first + COLUMNS].T
            for start in range(0, len(left), ROWS):
                rows = left[start : start + ROWS]
                out = room[: len(rows) * columns.shape[1]].reshape(len(rows), -1)
                np.matmul(rows, columns, out=out)

    return products


def iterations(X: Any) -> Callable[[int], None]:
    """Return a function that does the next iteration of one search on this number of threads."""
    from nonneg._threads import threads
    from nonneg.data import as_data_matrix
    from nonneg.separable.merit import Problem, dictionary_of, published_weight

    data = as_data_matrix(X)
    problem = Problem(dictionary_of(data), published_weight(data, N_ANCHORS, "paper", 1e-5), 1e-5)
    state = [problem.initial_iterate(None, data, "auto")]

    def iterate(n_threads: int) -> None:
        with threads(n_threads):
            state[0] = problem.advance(problem.call_oracle(state[0])[0])

    for _ in range(4 if len(X) <= 10_000 else 1):
        iterate(2 if len(X) > 10_000 else 1)
    return iterate


def measure_speed(n_points: int, threads: int) -> dict[str, Any]:
    """Return the record of one size."""
    X = points(n_points)
    iterate, products = iterations(X), bare_products(X)
    ours: list[float] = []
    yardstick: list[float] = []
    with machine.limited(1):
        if threads == 1:
            products()
        for _ in range(TURNS[n_points]):
            with stopwatch() as taken:
                products() if threads == 1 else iterate(1)
                yardstick.append(taken())
            with stopwatch() as taken:
                iterate(threads)
                ours.append(taken())
    seconds, other = statistics.median(ours), statistics.median(yardstick)
    if threads == 1:
        ratio = seconds / other
        return {"seconds": seconds, "products": other, "ratio": ratio, "met": ratio <= LAND}
    return {
        "seconds": seconds,
        "one_thread": other,
        "ratio": other / seconds,
        "met": other / seconds >= SPEED_UP,
    }


def measure_memory(n_points: int, *, whole: bool) -> dict[str, Any]:
    """Return the record of the memory of one search; to be called in a fresh process."""
    from nonneg import select_anchors
    from nonneg.separable import merit as problem

    X = points(n_points)
    # Kernels are compiled and loaded before the count begins.
    select_anchors(X[: min(1000, n_points)], N_ANCHORS, method="merit", max_iter=2)
    scan, left_out = problem.minimizing_vertices, [0 if whole else 98]
    rng = np.random.default_rng(SEED)
    choice = rng.integers(0, n_points, (1 if whole else n_points, ENTRIES), dtype=np.int32)

    def drawn(dictionary: Any, residual: Any, slope: Any) -> Any:
        if not left_out[0]:
            return scan(dictionary, residual, slope)
        left_out[0] -= 1
        return choice[np.arange(n_points), rng.integers(0, ENTRIES, n_points)].astype(np.int64)

    found: list[Any] = []
    with mock.patch.object(problem, "minimizing_vertices", drawn):
        peak, how = peak_beyond(lambda: found.append(select_anchors(X, N_ANCHORS, method="merit")))
    return {
        "peak": peak,
        "allowed": MEMORY[n_points],
        "met": peak <= MEMORY[n_points],
        "how": how,
        "entries": int(found[0].details["entries"]),
        "scans": "all" if whole else "the last ones",
    }


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure every size in a process of its own."""
    sizes = {f"N={n_points}": n_points for n_points in (SIZES[:2] if settings.quick else SIZES)}
    for name in settings.named(sizes):
        n_points = sizes[name]
        head = {"claim": NAME, "case": name, "n_points": n_points, "threads": settings.threads}
        yield (
            head
            | {"contender": "speed"}
            | measured_apart("merit_iteration", "speed", n_points, settings.threads)
        )
        if settings.threads == 1:
            how = "whole" if n_points <= 10_000 or settings.repeats >= 5 else "end"
            yield head | {"contender": "memory"} | measured_apart("merit_iteration", "memory", n_points, how)


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads", "contender"):
        cells = [record["case"], str(record["threads"])]
        if "failure" in record:
            rows.append([*cells, record["contender"], "-", "-", f"failed: {record['failure']}"])
            continue
        if record["contender"] == "memory":
            told = (
                f"{number(record['peak'] / 1e6)} MB beyond X",
                f"at most {number(record['allowed'] / 1e6)} MB",
            )
        elif record["threads"] == 1:
            told = (
                f"{number(record['seconds'])} s, products {number(record['products'])} s: "
                f"{record['ratio']:.2f} times",
                f"at most {LAND} times (goal {GOAL})",
            )
        else:
            told = (
                f"{number(record['seconds'])} s: {record['ratio']:.2f} times faster than one thread",
                (f"at least {SPEED_UP} times"),
            )
        rows.append([*cells, record["contender"], *told, "met" if record["met"] else "missed"])
    return markdown(("points", "threads", "what", "measured", "target", ""), rows)


def main() -> None:
    """Measure one size and write its record as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("speed", "memory"))
    parser.add_argument("n_points", type=int)
    parser.add_argument("how")
    given = parser.parse_args()
    if given.what == "speed":
        record = measure_speed(given.n_points, int(given.how))
    else:
        record = measure_memory(given.n_points, whole=given.how == "whole")
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    main()
