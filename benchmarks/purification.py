"""Claims: an iteration of purification costs little more than its products, and a stream needs little memory.

The yardstick is the pair of bare products X P' and W' X of the same sizes, without blocks, in the same
process on the same number of threads. Both take turns and the medians count. The linear programs are timed
from nothing and from the answer for other features. The stream of ten million samples is drawn while it is
read; the time of drawing is measured and left out. Memory is the high-water mark of a fresh process beyond
the imports.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.contender import stopwatch
from benchmarks.memory import peak_beyond
from benchmarks.processes import measured_apart
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "purification"
TITLE = "Purification: an iteration compared with its products, the linear programs, and a stream"
N_COMPONENTS, N_FEATURES, N_SAMPLES, SEED = 50, 500, 20_000, 20240601
TURNS = 21
RATIO, COLD, WARM = 1.5, 2.0, 0.3
STREAM = {"n_components": 20, "n_features": 200, "batch_size": 10_000, "per_iteration": 500_000}
STREAM_SAMPLES, STREAM_MEMORY, STREAM_RATIO = 10_000_000, 300e6, 2.0
WHAT = ("iteration", "programs", "stream")


def bare_products(X: Any, n: int, threads: int) -> Callable[[], None]:
    """Return a function that makes the two products of an iteration and nothing else."""
    rng = np.random.default_rng(SEED)
    inverse, W = rng.normal(size=(X.shape[1], n)), rng.random((len(X), n))
    values, cross = np.empty((len(X), n)), np.empty((n, X.shape[1]))

    def products() -> None:
        np.matmul(X, inverse, out=values)
        np.matmul(W.T, X, out=cross)

    return products


def measure_iteration(threads: int) -> dict[str, Any]:
    """Return the record of one iteration with Moore-Penrose."""
    from reproduction.purification.perturbation import perturbed_features

    from nonneg._threads import threads as limit
    from nonneg.data import as_data_matrix
    from nonneg.datasets import purification_data
    from nonneg.purification.iteration import Iteration, initial_state
    from nonneg.purification.options import completed_options
    from nonneg.purification.samples import StoredSamples

    data = purification_data(N_SAMPLES, N_FEATURES, N_COMPONENTS, sparsity=5, rng=SEED)
    start = perturbed_features(data.H, 0.1, rng=SEED)
    options = completed_options()
    samples = StoredSamples(as_data_matrix(data.X), None)
    step = Iteration(samples, options)
    state = initial_state(samples.subsample(), start, options)
    products = bare_products(data.X, N_COMPONENTS, threads)
    ours: list[float] = []
    yardstick: list[float] = []
    with machine.limited(threads):
        products()
        with limit(threads):
            state, _ = step(state)
        for _ in range(TURNS):
            with stopwatch() as taken:
                products()
                yardstick.append(taken())
            # The limit on BLAS is set once a run, outside its iterations; the threads that BLAS had for the
            # products wait busily for a moment, so that the first step after them does not count.
            with limit(threads):
                state, _ = step(state)
                with stopwatch() as taken:
                    state, _ = step(state)
                    ours.append(taken())
    seconds, other = statistics.median(ours), statistics.median(yardstick)
    return {"seconds": seconds, "products": other, "ratio": seconds / other, "met": seconds <= RATIO * other}


def measure_programs(threads: int) -> dict[str, Any]:
    """Return the record of the pseudo-inverse of least infinity norm."""
    from reproduction.purification.perturbation import perturbed_features

    from nonneg._threads import threads as limit
    from nonneg.datasets import purification_data
    from nonneg.purification.pseudo_inverse import pseudo_inverse

    cold: list[float] = []
    warm: list[float] = []
    with machine.limited(threads), limit(threads):
        for kind in ("sparse", "uniform", "signed"):
            true = purification_data(10, N_FEATURES, N_COMPONENTS, sparsity=5, features=kind, rng=SEED).H
            start = perturbed_features(true, 0.1, rng=SEED)
            pseudo_inverse(start[:5], "min-infinity")  # compiled and loaded
            with stopwatch() as taken:
                found = pseudo_inverse(start, "min-infinity")
                cold.append(taken())
            with stopwatch() as taken:
                pseudo_inverse(true, "min-infinity", found.bases)
                warm.append(taken())
    return {"cold": max(cold), "warm": max(warm), "met": max(cold) <= COLD and max(warm) <= WARM}


def measure_stream(threads: int, n_samples: int) -> dict[str, Any]:
    """Return the record of one pass over a stream; to be called in a fresh process."""
    from reproduction.data import purification_model
    from reproduction.purification.perturbation import perturbed_features

    from nonneg import purify
    from nonneg.metrics import mixing

    model = purification_model(STREAM["n_features"], STREAM["n_components"], rng=SEED)
    start = perturbed_features(model.H, 0.1, rng=SEED)
    drawing = [0.0]

    def stream(n: int) -> Iterator[Any]:
        batches = model.batches(n, STREAM["batch_size"], rng=SEED)
        while True:
            began = time.perf_counter()
            batch = next(batches, None)
            drawing[0] += time.perf_counter() - began
            if batch is None:
                return
            yield batch

    options = {"batch_size": STREAM["per_iteration"], "max_iter": 10**6, "tol": 0, "n_jobs": threads}
    with machine.limited(threads):
        purify(stream(20_000), start, **options | {"batch_size": 10_000})
        drawing[0] = 0.0
        found: list[Any] = []
        with stopwatch() as taken:
            peak, how = peak_beyond(lambda: found.append(purify(stream(n_samples), start, **options)))
            seconds = taken() - drawing[0]
        X = model.draw(STREAM["batch_size"], rng=SEED).X
        products = bare_products(X, STREAM["n_components"], threads)
        products()
        with stopwatch() as taken:
            for _ in range(20):
                products()
            bare = taken() / 20 * n_samples / STREAM["batch_size"]
    return {
        "seconds": seconds,
        "products": bare,
        "ratio": seconds / bare,
        "n_samples": n_samples,
        "peak": peak,
        "allowed": STREAM_MEMORY,
        "how": how,
        "error": mixing(model.H, found[0].H).e_norm,
        "met": peak <= STREAM_MEMORY and seconds <= STREAM_RATIO * bare,
    }


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Measure everything, each in a process of its own."""
    n_samples = STREAM_SAMPLES // 20 if settings.quick else STREAM_SAMPLES
    for what in WHAT:
        head = {"claim": NAME, "case": what, "threads": settings.threads}
        yield head | measured_apart("purification", what, settings.threads, n_samples)


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads"):
        cells = [record["case"], str(record["threads"])]
        if "failure" in record:
            rows.append([*cells, f"failed: {record['failure']}", "-", "-"])
            continue
        if record["case"] == "programs":
            told = (
                f"{number(record['cold'])} s cold, {number(record['warm'])} s warm",
                f"at most {COLD:g} s and {WARM:g} s",
            )
        else:
            told = (
                f"{number(record['seconds'])} s, products {number(record['products'])} s: "
                f"{record['ratio']:.2f} times",
                f"at most {RATIO if record['case'] == 'iteration' else STREAM_RATIO:g} times",
            )
        if record["case"] == "stream":
            told = (
                f"{record['n_samples']:,} samples: {told[0]}; {number(record['peak'] / 1e6)} MB",
                f"{told[1]}, {STREAM_MEMORY / 1e6:g} MB",
            )
        rows.append([*cells, *told, "met" if record["met"] else "missed"])
    return markdown(("what", "threads", "measured", "target", ""), rows)


def main() -> None:
    """Measure one thing and write its record as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("threads", type=int)
    parser.add_argument("n_samples", type=int)
    given = parser.parse_args()
    if given.what == "iteration":
        record = measure_iteration(given.threads)
    elif given.what == "programs":
        record = measure_programs(given.threads)
    else:
        record = measure_stream(given.threads, given.n_samples)
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    main()
