"""Table I: the time until other algorithms reach the error of the rank-one factorization of cones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.iteration.history import History
from nonneg.iteration.progress import Progress
from nonneg.solvers import factorize
from nonneg.solvers.factorize import initial_factors
from reproduction.cr1.cone_draws import FULL, QUICK, draw_cones
from reproduction.cr1.plain_algorithms import PLAIN, relative_error, run_plain, uniform_start
from reproduction.cr1.table_1_exhibits import SHOWS, summarize
from reproduction.experiment import Experiment, Setting
from reproduction.registry import TITLES

NAME = "cr1/table-1"
DRAWS = {100: 10, 1000: 10, 10_000: 5}
LIMITS = {100: 20.0, 1000: 40.0, 10_000: 120.0}
"""Seconds after which a run is ended, by N."""
MAX_ITER = 100_000
# A run that gains so little in so many iterations has found its local minimum above the target.
STALLED_ITERATIONS, STALLED_GAIN = 100, 1e-6


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings, one a draw and N; all of them use one thread."""
    draws = {60: 1, 240: 1} if quick else DRAWS
    limits = {60: 1.0, 240: 1.0} if quick else LIMITS
    head = {"alpha": 0.2, "threads": 1} | (QUICK if quick else FULL)
    return [
        {"draw": draw, "n": n, "limit": limits[n]} | head
        for draw in range(max(draws.values()))
        for n, count in draws.items()
        if draw < count
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    X, _, rng = draw_cones(setting)
    with threads(setting["threads"]):
        return _races(X[: setting["n"]].copy(), setting, rng)


def _races(X: FloatArray, setting: Setting, rng: np.random.Generator) -> list[dict[str, Any]]:
    n, k = X.shape[0], setting["n_cones"]
    first = int(rng.integers(n))
    seconds = []
    for _ in range(4):  # the first one loads compiled code and does not count
        started = time.perf_counter()
        ours = cone_rank_one(X, k, first=first, bounds=False, n_jobs=1)
        seconds.append(time.perf_counter() - started)
    target = ours.relative_error
    records: list[dict[str, Any]] = [
        {"algorithm": "cr1", "seconds": statistics.median(seconds[1:]), "outcome": "reached", "error": target}
    ]
    data = as_data_matrix(X)
    W, Ht = uniform_start(data.shape, k, rng)

    def race(name: str, seconds_before: float, contender: Callable[[Race], History]) -> None:
        watch = Race(data, target, setting["limit"] - seconds_before)
        records.append({"algorithm": name} | watch.result(contender(watch), seconds_before))

    for name in PLAIN:
        race(name, 0.0, partial(_plain, name, data, W, Ht))
    race("default", 0.0, partial(_ours, X, k, {"init": "custom", "W": W, "H": Ht.T}))
    started = time.perf_counter()
    left, right = initial_factors(data, k, init="nndsvda", W=None, H=None, rng=rng)
    for_the_start = time.perf_counter() - started
    custom = {"init": "custom", "W": left, "H": right.T}
    race("default, nndsvda", for_the_start, partial(_ours, X, k, custom))
    return records


def _plain(name: str, data: DataMatrix, W: Any, Ht: Any, watch: Race) -> History:
    return run_plain(name, data, W, Ht, max_iter=MAX_ITER, callback=watch).history


def _ours(X: Any, k: int, start: dict[str, Any], watch: Race) -> History:
    return factorize(X, k, max_iter=MAX_ITER, tol=0.0, n_jobs=1, callback=watch, **start).history


class Race:
    """A callback that ends a run when it has reached the target, its time is over, or it gains nothing."""

    def __init__(self, data: DataMatrix, target: float, limit: float) -> None:
        self.squared_norm = data.squared_norm()
        self.target, self.limit = target, limit
        self.outcome = "ended"

    def __call__(self, progress: Progress) -> bool:
        losses = progress.history.loss
        if relative_error(losses[-1], self.squared_norm) <= self.target:
            self.outcome = "reached"
        elif progress.history["seconds"][-1] >= self.limit:
            self.outcome = "time limit"
        elif (
            len(losses) > STALLED_ITERATIONS
            and losses[-1 - STALLED_ITERATIONS] - losses[-1] <= STALLED_GAIN * losses[-1]
        ):
            self.outcome = "stalled"
        return self.outcome != "ended"

    def result(self, history: History, seconds_before: float) -> dict[str, Any]:
        """Return how the run ended."""
        return {
            "seconds": history["seconds"][-1] + seconds_before,
            "n_iter": len(history),
            "outcome": self.outcome,
            "error": relative_error(history.loss[-1], self.squared_norm),
        }


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    SHOWS,
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["limit"]),
    side_by_side=False,  # times are measured
)
