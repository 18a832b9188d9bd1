"""Claims: the default number of threads never hurts, and large fits use all cores.

The first is a race of ``n_jobs=None`` against ``n_jobs=1`` from 50 x 20 to 2,000 x 1,000, in turns; the
second times the iterations of one large fit on 1, 2, 4, ... threads.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contender import quiet, stopwatch
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number, verdict

NAME = "threads"
TITLE = "Threads: the default against one, and scaling of a large fit"

SIZES = {
    "50x20 k=3": (50, 20, 3),
    "500x50 k=5": (500, 50, 5),
    "1800x64 k=16": (1800, 64, 16),
    "575x1024 k=20": (575, 1024, 20),
    "1965x560 k=30": (1965, 560, 30),
    "2000x1000 k=20": (2000, 1000, 20),
}
LARGE = {"20000x1500 k=40": (20_000, 1500, 40)}
LOSSES = {"frobenius": 12, "kullback-leibler": 5}  # and the number of iterations of the large fit
TURNS = 9
SLOWER, SCALING = 1.1, 8.0  # the bars; the second for 16 threads


def _data(rows: int, columns: int, k: int) -> Any:
    rng = np.random.default_rng([rows, columns, k])
    X = rng.gamma(0.5, size=(rows, k)) @ rng.gamma(0.5, size=(k, columns))
    return rng.poisson(4 * X / X.mean()) + 0.01 * rng.random(X.shape)


def _fit(X: Any, k: int, loss: str, n_jobs: int | None, n_iter: int) -> float:
    """Return the seconds of a whole fit."""
    from nonneg import NMF

    model = NMF(k, init="random", random_state=0, beta_loss=loss, tol=0, max_iter=n_iter, n_jobs=n_jobs)
    with quiet(), stopwatch() as seconds:
        model.fit(X)
        return seconds()


def _iteration(X: Any, k: int, loss: str, n_jobs: int, n_iter: int) -> tuple[float, float]:
    """Return the seconds of a factorization without final encoding, and of an iteration (the median)."""
    from nonneg import factorize

    options: dict[str, Any] = {"beta_loss": loss, "tol": 0, "max_iter": n_iter, "n_jobs": n_jobs}
    with quiet(), stopwatch() as seconds:
        history = factorize(X, k, init="random", rng=0, **options).history
        taken = seconds()
    return taken, statistics.median(np.diff([0.0, *history.seconds]))


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Race the default against one thread, then time the large fit on more and more threads."""
    from nonneg._threads import available_threads

    cores = available_threads()
    names = settings.named(SIZES | LARGE)
    for loss in LOSSES:
        for name in (name for name in names if name in SIZES):
            *shape, k = SIZES[name]
            X, n_iter = _data(*shape, k), 30 if loss == "frobenius" else 15
            _fit(X, k, loss, None, 2)
            _fit(X, k, loss, 1, 2)
            turns = [
                (_fit(X, k, loss, 1, n_iter), _fit(X, k, loss, None, n_iter))
                for _ in range(3 if settings.quick else TURNS)
            ]
            one, default = (statistics.median(times) for times in zip(*turns, strict=True))
            # In turns, so that what the machine does besides hits both.
            ratio = statistics.median(b / a for a, b in turns)
            yield {
                "claim": NAME, "case": f"{loss} {name}", "threads": cores, "part": "default",
                "one_seconds": one, "seconds": default, "ratio": ratio, "met": ratio <= SLOWER,
            }  # fmt: skip
    for name in (name for name in names if name in LARGE and not settings.quick):
        *shape, k = LARGE[name]
        X = _data(*shape, k)
        for loss, n_iter in LOSSES.items():
            _iteration(X[:1000], k, loss, cores, 3)
            first = None
            for count in (c for c in (1, 2, 4, 8, 16) if c <= cores):
                taken, iteration = _iteration(X, k, loss, count, n_iter)
                first = first or iteration
                yield {
                    "claim": NAME, "case": f"{loss} {name}", "threads": count, "part": "scaling",
                    "seconds": taken, "iteration": iteration, "ratio": first / iteration,
                    "met": first / iteration >= SCALING if count == 16 else None,
                }  # fmt: skip


def table(records: list[dict[str, Any]]) -> str:
    """Return the tables of the records."""
    newest = latest(records, "case", "part", "threads")
    default = [
        [
            r["case"], str(r["threads"]), number(1e3 * r["one_seconds"]), number(1e3 * r["seconds"]),
            f"{r['ratio']:.2f}", verdict(SLOWER, r["ratio"]),
        ]
        for r in newest if r["part"] == "default"
    ]  # fmt: skip
    scaling = [
        [
            r["case"], str(r["threads"]), number(1e3 * r["iteration"]), f"{r['ratio']:.1f}",
            "-" if r["met"] is None else verdict(r["ratio"], SCALING),
        ]
        for r in newest if r["part"] == "scaling"
    ]  # fmt: skip
    parts = [
        f"Whole fits, medians of {TURNS} turns. The default may take {SLOWER} times as long as one thread.",
        markdown(("fit", "cores", "n_jobs=1, ms", "n_jobs=None, ms", "ratio", "target"), default),
    ]
    if scaling:
        parts += [
            f"A large fit, median time of an iteration. Target on 16 threads: {SCALING:g} times as fast.",
            markdown(("fit", "threads", "ms per iteration", "times one thread", "target"), scaling),
        ]
    return "\n\n".join(parts)
