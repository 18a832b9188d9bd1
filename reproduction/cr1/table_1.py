"""Table I: the time until other algorithms reach the error of the rank-one factorization of cones."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
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
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.cr1.cone_draws import FULL, QUICK, draw_cones
from reproduction.cr1.plain_algorithms import PLAIN, relative_error, run_plain, uniform_init
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "cr1/table-1"
DRAWS = {100: 10, 1000: 10, 10_000: 5}
LIMITS = {100: 20.0, 1000: 40.0, 10_000: 120.0}
"""Seconds after which a run is ended, by N."""
MAX_ITER = 100_000
# A run with so little progress over this many iterations has converged above the target.
STALLED_ITERATIONS, STALLED_GAIN = 100, 1e-6
ALGORITHMS = {
    "cr1": "cr1",
    "mult": "mult",
    "nnlsb": "nnlsb",
    "hals": "hals",
    "default": "our default",
    "default, nndsvda": "our default from nndsvda",
}
PUBLISHED_NAMES = {"cr1": "cr1-nmf"}
COLUMNS = ("hals", "nnlsb", "mult")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw and N; all use one thread."""
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
    W, Ht = uniform_init(data.shape, k, rng)

    def race(name: str, seconds_before: float, contender: Callable[[Race], History]) -> None:
        watch = Race(data, target, setting["limit"] - seconds_before)
        records.append({"algorithm": name} | watch.result(contender(watch), seconds_before))

    for name in PLAIN:
        race(name, 0.0, partial(_plain, name, data, W, Ht))
    race("default", 0.0, partial(_ours, X, k, {"init": "custom", "W": W, "H": Ht.T}))
    started = time.perf_counter()
    left, right = initial_factors(data, k, init="nndsvda", W=None, H=None, rng=rng)
    init_seconds = time.perf_counter() - started
    custom = {"init": "custom", "W": left, "H": right.T}
    race("default, nndsvda", init_seconds, partial(_ours, X, k, custom))
    return records


def _plain(name: str, data: DataMatrix, W: Any, Ht: Any, watch: Race) -> History:
    return run_plain(name, data, W, Ht, max_iter=MAX_ITER, callback=watch).history


def _ours(X: Any, k: int, init: dict[str, Any], watch: Race) -> History:
    return factorize(X, k, max_iter=MAX_ITER, tol=0.0, n_jobs=1, callback=watch, **init).history


class Race:
    """A callback that stops a run that has reached the target, exceeded its time limit, or stalled."""

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


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the times, the ratios, and the claims."""
    by_size = {n: group for (n,), group in sorted(grouped(records, "n").items())}
    times = [{"n": n, **{name: _time(group, n, name) for name in ALGORITHMS}} for n, group in by_size.items()]
    ratios = [
        {"n": n, **{name: _ratio(group, n, name) for name in ALGORITHMS if name != "cr1"}}
        for n, group in by_size.items()
    ]
    columns = {"n": "N"} | ALGORITHMS
    others = {key: heading for key, heading in columns.items() if key != "cr1"}
    return [
        Table(
            "Seconds until the error of `cr1` is reached, mean ± standard deviation over draws.",
            columns,
            times,
            3,
            dict.fromkeys(ALGORITHMS, "they were measured on another machine with other programs"),
        ),
        Table("The same divided by the seconds of `cr1` in the same draw.", others, ratios, 3),
        Paragraph(_endings(records)),
        *(_verdict(by_size, name) for name in COLUMNS),
    ]


def _published(n: int, name: str) -> tuple[float | None, float | None]:
    table = published_values("cr1_nmf")["table_1_running_times_s"]
    heading = PUBLISHED_NAMES.get(name, name)
    if heading not in table["columns"]:
        return None, None
    at = table["columns"].index(heading)
    for mean, spread in zip(table["mean"], table["std"], strict=True):
        if mean[0] == n:
            return mean[at], spread[at]
    return None, None


def _published_ratio(n: int, name: str) -> float | None:
    ours, theirs = _published(n, "cr1")[0], _published(n, name)[0]
    return None if ours is None or theirs is None else theirs / ours


def _time(group: Sequence[Record], n: int, name: str) -> Measured:
    runs = [record for record in group if record["algorithm"] == name]
    reached = [record["seconds"] for record in runs if record["outcome"] == "reached"]
    remark = "" if len(reached) == len(runs) else f"({len(reached)} of {len(runs)} reached it)"
    return Measured(
        *mean_and_spread(reached), *_published(n, name), remark=remark, n_draws=max(1, len(reached))
    )


def _ratios(group: Sequence[Record], name: str) -> tuple[list[float], bool]:
    """Return the ratio of each draw, and whether all of them reached the target."""
    ratios, all_reached = [], True
    for members in grouped(group, "draw").values():
        by_name: dict[str, Any] = {record["algorithm"]: record for record in members}
        if name in by_name and "cr1" in by_name:
            ratios.append(by_name[name]["seconds"] / by_name["cr1"]["seconds"])
            all_reached &= by_name[name]["outcome"] == "reached"
    return ratios, all_reached


def _ratio(group: Sequence[Record], n: int, name: str) -> Measured:
    ratios, all_reached = _ratios(group, name)
    mean, spread = mean_and_spread(ratios)
    sign = "" if all_reached else ">"
    return Measured(mean, spread, _published_ratio(n, name), sign=sign, n_draws=max(1, len(ratios)))


def _endings(records: Sequence[Record]) -> str:
    parts = []
    for (n, name), group in grouped(records, "n", "algorithm").items():
        outcomes = [record["outcome"] for record in group]
        told = [
            f"{outcomes.count(outcome)} {words}"
            for outcome, words in (("time limit", "at the time limit"), ("stalled", "in a local minimum"))
            if outcome in outcomes
        ]
        if told:
            parts.append(f"N = {n}, {ALGORITHMS[name]}: {' and '.join(told)} of {len(group)}")
    if not parts:
        return "Every run reached the error of `cr1`."
    return "Runs that ended above the error of `cr1`: " + "; ".join(parts) + "."


def _verdict(by_size: dict[int, list[dict[str, Any]]], name: str) -> Verdict:
    n = 10_000
    published = _published_ratio(n, name)
    claim = f"`{name}` takes at least {published:.2g} times as long as `cr1` at N = {n}, as published"
    if n not in by_size:
        return Verdict(claim, None, "no draws of that size")
    ratios, all_reached = _ratios(by_size[n], name)
    mean, _ = mean_and_spread(ratios)
    if mean is None or published is None:
        return Verdict(claim, None, "no draws of that size")
    return Verdict(claim, mean >= published, f"{'' if all_reached else '> '}{mean:.3g}, {len(ratios)} draws")


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["limit"]),
    parallel=False,  # times are measured
)
