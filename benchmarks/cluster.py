"""Claim: on a Dask cluster an iteration costs little more than in memory, for any number of them.

Workers are processes of this machine with one thread each, the scheduler has a process of its own, and X is
made on the workers. Every measurement is a process of its own: ``python -m benchmarks.cluster PART WORD...``
prints one record.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.contender import quiet
from benchmarks.processes import measured_apart
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "cluster"
TITLE = "Fits on a Dask cluster"
COLUMNS, COMPONENTS = 500, 20
ROWS, CHUNKS = 400_000, 16
MEMORY = "2500MB"  # per worker: X takes 1.6 GB in all, and is kept where it takes half of the memory at most
ITERATIONS = 12


def chunk_of(index: int, rows: int, columns: int) -> Any:
    """Return one chunk of the data: of rank 20, with noise; the same wherever it is made."""
    shared = np.random.default_rng(0).gamma(0.5, size=(COMPONENTS, columns))
    rng = np.random.default_rng(index + 1)
    X = rng.gamma(0.5, size=(rows, COMPONENTS)) @ shared
    X += 0.1 * rng.random((rows, columns))
    return X


def dask_data(rows: int, chunks: int, columns: int = COLUMNS) -> Any:
    """Return the data as a Dask array that the workers make."""
    import dask.array as da

    size = rows // chunks
    return da.map_blocks(
        lambda block_info: chunk_of(block_info[None]["chunk-location"][0], size, columns),
        chunks=((size,) * chunks, (columns,)),
        dtype=float,
        meta=np.empty((0, 0)),
    )


@contextlib.contextmanager
def cluster(workers: int, memory: str = MEMORY, **options: Any) -> Iterator[Any]:
    """Start a scheduler and workers as processes, and yield a client."""
    from distributed import Client

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        quiet_log = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}

        def start(command: str, *words: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "distributed.cli.dask_" + command,
                    "--scheduler-file",
                    str(file),
                    *words,
                ],
                env=os.environ | one | quiet_log,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).resolve().parent.parent,
            )

        processes = [start("scheduler", "--port", "0", "--dashboard-address", ":0")]
        words = ("--nthreads", "1", "--memory-limit", memory, "--local-directory", folder, "--no-dashboard")
        processes += [start("worker", *words) for _ in range(workers)]
        try:
            while not file.exists():
                time.sleep(0.05)
            with Client(scheduler_file=str(file), **options) as client:
                client.wait_for_workers(workers)
                yield client
                with contextlib.suppress(Exception):
                    client.shutdown()
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()
                process.wait()


class Watch:
    """A callback that notes the time after every iteration, and what the scheduler knows."""

    def __init__(self, client: Any = None, every: int = 0, at: dict[int, Any] | None = None) -> None:
        self.client, self.every, self.at = client, every, at or {}
        self.times: list[float] = []
        self.tasks: dict[int, int] = {}
        self.memory: dict[int, int] = {}

    def __call__(self, progress: Any) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())
        if self.every and progress.n_iter % self.every in (0, 1):
            self.tasks[progress.n_iter], self.memory[progress.n_iter] = self.client.run_on_scheduler(_state)
        if progress.n_iter in self.at:
            self.at[progress.n_iter]()

    @property
    def seconds(self) -> list[float]:
        """How long every iteration but the first took."""
        return np.diff(self.times).tolist()


def _state(dask_scheduler: Any) -> tuple[int, int]:
    import gc

    import psutil

    gc.collect()
    return len(dask_scheduler.tasks), psutil.Process().memory_info().rss


def _moved(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _resident(dask_worker: Any) -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def fit(X: Any, watch: Watch, iterations: int, loss: str = "frobenius", **options: Any) -> Any:
    """Factorize from a random initialization."""
    from nonneg import factorize

    with quiet():
        return factorize(
            X, COMPONENTS, beta_loss=loss, init="random", rng=0, tol=0, max_iter=iterations, callback=watch,
            accelerate=False, **options,  # every iteration is a pass over X
        )  # fmt: skip


def in_memory(rows: int, chunks: int, threads: int, loss: str = "frobenius") -> dict[str, Any]:
    """Measure an iteration on a NumPy array."""
    X = np.concatenate([chunk_of(index, rows // chunks, COLUMNS) for index in range(chunks)])
    watch = Watch()
    with machine.limited(threads):
        result = fit(X, watch, ITERATIONS, loss, n_jobs=threads)
    return {"seconds": statistics.median(watch.seconds), "loss": result.loss, "all": watch.seconds}


def on_cluster(rows: int, chunks: int, workers: int, loss: str = "frobenius") -> dict[str, Any]:
    """Measure an iteration on a cluster: time, bytes between workers, tasks, memory."""
    with cluster(workers) as client:
        X = dask_data(rows, chunks)
        moved: list[int] = []
        watch = Watch(client, at={n: lambda: moved.append(sum(client.run(_moved).values())) for n in (2, 10)})
        result = fit(X, watch, ITERATIONS, loss)
        resident = max(client.run(_resident).values())
    return {
        "seconds": statistics.median(watch.seconds),
        "loss": result.loss,
        "moved_per_iteration": (moved[1] - moved[0]) / 8,
        "resident": resident,
    }


def flat(iterations: int) -> dict[str, Any]:
    """Watch what the scheduler remembers over many iterations of a small fit."""
    with cluster(2, "1500MB") as client:
        watch = Watch(client, every=10)
        fit(dask_data(16_000, 16, 50), watch, iterations)
    # Dask keeps logs of bounded length (100 computations, 1,000 events), which 200 iterations fill.
    at_all = [(n, n + 1) for n in (10, iterations * 2 // 5, iterations - 10)]
    peak = {name: [max(found[n] for n in at) for at in at_all]
            for name, found in (("tasks", watch.tasks), ("memory", watch.memory))}  # fmt: skip
    return {
        "tasks": peak["tasks"],
        "memory": peak["memory"],
        "ratio_tasks": peak["tasks"][-1] / peak["tasks"][0],
        "ratio_memory": peak["memory"][-1] / peak["memory"][0],
    }


def recovery(rows: int, chunks: int, workers: int) -> dict[str, Any]:
    """Kill a worker in the middle of a fit, and see how long the next iteration takes."""
    with cluster(workers) as client:
        undisturbed = Watch()
        X = dask_data(rows, chunks)
        expected = fit(X, undisturbed, ITERATIONS)
        usual = statistics.median(undisturbed.seconds)
        killed: dict[str, float] = {}

        def kill() -> None:
            victim = min(client.run(os.getpid).values())
            killed["at"] = time.perf_counter()
            os.kill(victim, signal.SIGKILL)

        watch = Watch(client, at={ITERATIONS // 2: kill})
        found = fit(X, watch, ITERATIONS)
        client.wait_for_workers(workers)
    at = ITERATIONS // 2
    pause = watch.times[at] - killed["at"]
    return {
        "usual": usual,
        "iteration_of_the_kill": pause,
        "iterations_lost": pause / usual - 1,
        "same": bool(found.loss == expected.loss),
        "loss": [found.loss, expected.loss],
    }


def overhead(chunks: int, workers: int) -> dict[str, Any]:
    """Measure what Dask takes for a pass without work, in one process: an upper bound."""
    from distributed import Client, LocalCluster

    from nonneg.data import as_data_matrix

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
        ) as local,
        Client(local),
    ):
        data = as_data_matrix(dask_data(chunks, chunks, 1))
        data.squared_norm()
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            data.transposed_times(data.to_sample_array(np.ones((chunks, 1))))
            taken.append(time.perf_counter() - started)
    return {"seconds": statistics.median(taken), "per_task": statistics.median(taken) / (chunks * 9 / 8)}


PARTS = {
    "in_memory": in_memory,
    "on_cluster": on_cluster,
    "flat": flat,
    "recovery": recovery,
    "overhead": overhead,
}


def plan(quick: bool) -> list[tuple[str, str, tuple[Any, ...]]]:
    """Return the measurements: title, part and words."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = [n for n in (1, 2, 4, 8, 16) if n <= cores]
    rows, chunks = (20_000, CHUNKS) if quick else (ROWS, CHUNKS)
    per_worker = rows // 4
    found: list[tuple[str, str, tuple[Any, ...]]] = [
        ("in memory", "in_memory", (rows, chunks, 2)),
        ("cluster", "on_cluster", (rows, chunks, 2)),
        ("in memory, KL", "in_memory", (rows // 8, chunks, 2, "kullback-leibler")),
        ("cluster, KL", "on_cluster", (rows // 8, chunks, 2, "kullback-leibler")),
    ]
    found += [("strong scaling", "on_cluster", (rows // 2, 16, n)) for n in counts]
    found += [("weak scaling", "on_cluster", (per_worker * n, 4 * n, n)) for n in counts]
    found += [("flat", "flat", (30 if quick else 500,)), ("recovery", "recovery", (rows // 2, chunks, 2))]
    found += [("overhead", "overhead", (n, 4)) for n in ((100, 200) if quick else (500, 1000, 2000, 4000))]
    return found


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure everything, each part in its own process."""
    if settings.threads != 1:  # it has its own numbers of threads
        return
    planned = plan(settings.quick)
    wanted = settings.named(dict.fromkeys(title for title, _, _ in planned))
    for title, part, words in planned:
        if title not in wanted:
            continue
        head = {"claim": NAME, "case": f"{title} {' '.join(map(str, words))}", "threads": settings.threads}
        head |= {"title": title, "part": part, "words": list(words)}
        yield head | measured_apart(NAME, part, *words)


def _by_title(records: list[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    return [record for record in records if record["title"] == title]


def _ratio_row(records: list[dict[str, Any]], ending: str, bar: float) -> list[list[str]]:
    local, spread = (_by_title(records, name + ending) for name in ("in memory", "cluster"))
    if not local or not spread:
        return []
    one, other = local[-1], spread[-1]
    if "failure" in one or "failure" in other:
        return [[f"iteration{ending}", "-", "-", "-", "failed: " + (one | other)["failure"], "-"]]
    ratio, apart = other["seconds"] / one["seconds"], abs(other["loss"] - one["loss"]) / one["loss"]
    size = f"{one['words'][0]}x{COLUMNS}, k={COMPONENTS}, {one['words'][1]} chunks"
    seconds = f"{number(one['seconds'])} s, {number(other['seconds'])} s"
    return [[f"iteration{ending}: {size}", seconds, number(ratio), "2", number(apart, 2), f"{bar:g}"]]


def table(records: list[dict[str, Any]]) -> str:
    """Return the tables of the records."""
    records = latest(records, "case")
    head = ("2 processes against 2 threads", "times", "ratio", "at most", "loss apart", "at most")
    rows = _ratio_row(records, "", 1e-6) + _ratio_row(records, ", KL", 1e-3)
    parts = [markdown(head, rows)] if rows else []
    rows = []
    for title in ("strong scaling", "weak scaling"):
        found = [record for record in _by_title(records, title) if "failure" not in record]
        for record in found:
            n_rows, chunks, workers = record["words"]
            first = found[0]["seconds"]
            efficiency = first / record["seconds"] / (workers if title == "strong scaling" else 1)
            rows.append(
                [f"{title}: {n_rows}x{COLUMNS}, {chunks} chunks", str(workers), number(record["seconds"]),
                 number(efficiency), number(record["moved_per_iteration"] / 1e6),
                 number(record["resident"] / 1e6)]
            )  # fmt: skip
    if rows:
        head = ("scaling", "workers", "s/iteration", "efficiency", "MB moved/iteration", "MB of a worker")
        parts.append(markdown(head, rows))
    rows = []
    for record in records:
        if "failure" in record:
            rows.append([f"{record['title']} {record['words']}", "failed", record["failure"], "-"])
        elif record["part"] == "flat":
            late = record["words"][0]
            for name, unit in (("tasks", 1), ("memory", 1e6)):
                found = " / ".join(number(value / unit, 4) for value in reversed(record[name]))
                at = f"iterations {late - 10} / {late * 2 // 5} / 10"
                what = f"scheduler's {name}{' (MB)' if unit > 1 else ''}, {at}"
                rows.append([what, found, number(record[f"ratio_{name}"]), "1.1"])
        elif record["part"] == "recovery":
            same = "the same loss to the last digit" if record["same"] else "another loss"
            what = f"killed worker: iterations lost ({same})"
            pause = f"{number(record['iteration_of_the_kill'])} s / {number(record['usual'])} s"
            rows.append([what, pause, number(record["iterations_lost"]), "3"])
    if rows:
        parts.append(markdown(("what", "found", "ratio", "at most"), rows))
    costs = [record for record in _by_title(records, "overhead") if "failure" not in record]
    if costs:
        shown = [
            [str(record["words"][0]), number(record["seconds"]), number(1e3 * record["per_task"])]
            for record in costs
        ]
        parts.append(markdown(("chunks without work", "s/pass", "ms/task"), shown))
        parts.append(model(costs[-1]["per_task"]))
    return "\n\n".join(parts)


def model(per_task: float) -> str:
    """Return what the design would cost on 1,000 workers with 10 TB, from the measured cost of a task."""
    # Assumptions: a core takes 1 s for 1 GB at k = 20, a link moves 1 GB/s, and X has 5,000 float64 columns.
    rate, network, columns, k = 1e9, 1e9, 5000, 20
    rows = []
    for workers, terabytes in ((10, 0.1), (100, 1.0), (1000, 10.0)):
        for chunk in (100e6, 1e9):
            n_chunks = int(terabytes * 1e12 / chunk)
            compute = terabytes * 1e12 / workers / rate
            schedule = per_task * n_chunks * (9 / 8 + 2 / 10)
            small = columns * k * 8
            broadcast = workers * small / network  # at worst, all ask the one worker that has H first
            tree = np.ceil(np.log(max(n_chunks / workers, 1) * workers) / np.log(8)) * (8 * small / network)
            copies = 2 * terabytes * 1e12 / columns * k / workers / network / 10
            total = max(compute, schedule) + broadcast + tree + copies
            rows.append(
                [f"{workers} workers, {terabytes:g} TB, chunks of {chunk / 1e6:.0f} MB", str(n_chunks)]
                + [number(value) for value in (compute, schedule, broadcast + tree, copies, compute / total)]
            )
    head = (
        "model", "chunks", "compute (s)", "scheduler (s)", "H and sums (s)", "copies of W (s)", "efficiency"
    )  # fmt: skip
    return markdown(head, rows)


def main() -> None:
    """Measure one part and write its record as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    words = [int(word) if word.isdigit() else word for word in given.words]
    sys.stdout.write(json.dumps(PARTS[given.part](*words)))


if __name__ == "__main__":
    main()
