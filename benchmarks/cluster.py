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
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.cluster_tables import COLUMNS, COMPONENTS
from benchmarks.cluster_tables import table as table  # for `run.py`
from benchmarks.contender import quiet
from benchmarks.processes import measured_apart
from benchmarks.race import Settings

NAME = "cluster"
TITLE = "Fits on a Dask cluster"
ROWS, CHUNKS = 400_000, 16
MEMORY = "2500MB"  # per worker: X takes 1.6 GB in all, and is kept where it takes half of the memory at most
ITERATIONS = 12
WINDOW = 5  # iterations of which the one with the most tasks counts: Dask forgets them with some delay


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
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
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
        processes.append(start("worker", "--nworkers", str(workers), *words))
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
        if self.every and progress.n_iter % self.every < WINDOW:
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
        "all": watch.seconds,
    }


def scaling(kind: str, rows: int, chunks: int, most: int) -> dict[str, Any]:
    """Measure an iteration on fewer and fewer workers of one cluster.

    Weak scaling has as many rows for each worker; strong scaling has as many in all.
    """
    found: dict[str, list[Any]] = {name: [] for name in ("workers", "seconds", "moved", "resident")}
    moved: list[int] = []
    with cluster(most) as client:
        fit(dask_data(2000 * most, 4 * most), Watch(), 3)  # compile
        while True:
            size = most if kind == "weak" else 1
            watch = Watch(at={n: lambda: moved.append(sum(client.run(_moved).values())) for n in (2, 8)})
            fit(dask_data(rows * size, chunks * size), watch, 9)
            found["workers"].append(most)
            # Not the median, as W is not copied in every iteration. The slowest repeats a step.
            found["seconds"].append(statistics.mean(sorted(watch.seconds)[:-1]))
            found["moved"].append((moved[-1] - moved[-2]) / 6)
            found["resident"].append(max(client.run(_resident).values()))
            if most == 1:
                return found
            most //= 2
            client.retire_workers(sorted(client.nthreads())[most:])


def flat(iterations: int) -> dict[str, Any]:
    """Watch what the scheduler remembers over many iterations of a small fit."""
    with cluster(2, "1500MB") as client:
        watch = Watch(client, every=10)
        fit(dask_data(16_000, 16), watch, iterations)
    # Dask keeps logs of bounded length (1,000 messages to each worker), which about 200 iterations fill.
    starts = (10, iterations * 2 // 50 * 10, iterations - 10)
    peak = {name: [max(found[n] for n in range(start, start + WINDOW)) for start in starts]
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
            threading.Thread(target=see).start()

        def see() -> None:  # when Dask has started another
            before = set(client.nthreads())
            while set(client.nthreads()) <= before:
                time.sleep(0.05)
            killed["back"] = time.perf_counter()

        watch = Watch(client, at={ITERATIONS // 2: kill})
        found = fit(X, watch, ITERATIONS)
        client.wait_for_workers(workers)
        while "back" not in killed:
            time.sleep(0.05)
    at = ITERATIONS // 2
    pause = watch.times[at] - killed["at"]
    return {
        "usual": usual,
        "iteration_of_the_kill": pause,
        "iterations_lost": pause / usual - 1,
        "back": killed["back"] - killed["at"],
        "same": bool(found.loss == expected.loss),
        "loss": [found.loss, expected.loss],
    }


def side_by_side(rows: int, processes: int) -> dict[str, Any]:
    """Measure an iteration in processes that know nothing of each other: what the machine itself allows."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cluster", "in_memory", str(rows), "4", "1"],
            stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parent.parent,
        )
        for _ in range(processes)
    ]  # fmt: skip
    found = [json.loads(process.communicate()[0])["seconds"] for process in started]
    return {"seconds": statistics.median(found), "slowest": max(found)}


def _nothing(block: Any) -> tuple[tuple[()], tuple[int]]:
    return (), (1,)


def _seconds(dask_scheduler: Any) -> float:
    return time.process_time()


def overhead(chunks: int, workers: int) -> dict[str, Any]:
    """Measure a pass without work: about two tasks for each thread, as it is, and one for each chunk.

    The latter gives the scheduler's time for a task.
    """
    from nonneg.data import as_data_matrix
    from nonneg.data import cluster as passes

    found: dict[str, Any] = {}
    with cluster(workers, "1500MB") as client:
        for name, per_thread in (("by_threads", passes.SHARDS_PER_THREAD), ("by_chunks", chunks)):
            passes.SHARDS_PER_THREAD = per_thread
            data = as_data_matrix(dask_data(chunks, chunks, 1))
            data.map_reduce_rows(_nothing, n_out=0)
            before, taken = client.run_on_scheduler(_seconds), []
            for _ in range(5):
                started = time.perf_counter()
                data.map_reduce_rows(_nothing, n_out=0)
                taken.append(time.perf_counter() - started)
            spent = client.run_on_scheduler(_seconds) - before
            found[name] = statistics.median(taken)
    return found | {"per_task": spent / 5 / (2 * chunks)}  # the pass, and a sum for each


PARTS = {
    "in_memory": in_memory,
    "on_cluster": on_cluster,
    "scaling": scaling,
    "flat": flat,
    "recovery": recovery,
    "side_by_side": side_by_side,
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
    found += [
        ("weak scaling", "scaling", ("weak", per_worker, 4, counts[-1])),
        ("strong scaling", "scaling", ("strong", rows // 2, 16, counts[-1])),
    ]
    found += [("flat", "flat", (30 if quick else 500,)), ("recovery", "recovery", (rows // 2, chunks, 2))]
    found += [("side by side", "side_by_side", (per_worker, n)) for n in counts]
    found += [("overhead", "overhead", (n, 2)) for n in ((64,) if quick else (256, 1024))]
    return found


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure everything, each part in its own process."""
    if settings.threads != 1:  # it has its own numbers of threads
        return
    planned = {f"{title} {' '.join(map(str, words))}": (title, part, words)
               for title, part, words in plan(settings.quick)}  # fmt: skip
    for case in settings.named(planned):
        title, part, words = planned[case]
        head = {"claim": NAME, "case": case, "threads": settings.threads}
        head |= {"title": title, "part": part, "words": list(words)}
        yield head | measured_apart(NAME, part, *words)


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
