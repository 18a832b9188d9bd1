"""Table V: time for alternating least squares to reach an error, from four initializations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nonneg import factorize
from nonneg.iteration.progress import Progress
from reproduction.artifacts import WHOLE, Artifact, Measured, Table, Verdict
from reproduction.cr1.algorithm_runs import run_from
from reproduction.cr1.init_times import SET_NAMES, loaded, shape_record
from reproduction.cr1.initializations import DETERMINISTIC, INITS, make_init, seeded
from reproduction.cr1.plain_algorithms import relative_error
from reproduction.cr1.real_sets import FILMS, FOLDERS, QUICK, timed_sets
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "cr1/table-5"
LEVELS = (1.05, 1.02, 1.01)
"""Target errors, as multiples of the smallest error of any run on the data set."""
N_RUNS, MAX_ITER = 10, 100
LIMITS = {
    "olivetti_64x64": 8.0,
    "ckplus48": 15.0,
    "yaleB_32x32": 8.0,
    "coil20": 8.0,
    "indian_pines": 6.0,
    "paviaU_sub50": 3.0,
    FILMS: 6.0,
    QUICK: 1.0,
}
"""Seconds after which a run ends, by set."""

EARLY = (1, 2, 3, 5)
DEFAULT = "default"
"""The row of `factorize` with its own solver and initialization."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per run, data set and initialization."""
    return [
        {
            "set": name,
            "run": run,
            "init": kind,
            "max_iter": 20 if quick else MAX_ITER,
            "limit": LIMITS.get(name, 15.0),
            "threads": 1,
        }
        for run in range(1 if quick else N_RUNS)
        for name in ((QUICK,) if quick else timed_sets())
        for kind in (*INITS, DEFAULT)
        if run == 0 or kind not in (*DETERMINISTIC, DEFAULT)
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run nnlsb from an initialization, or the default, and record errors and times."""
    real, samples = loaded(setting)
    kind, limit = setting["init"], setting["limit"]
    if kind == DEFAULT:
        return [_default_run(samples.X, real.k, limit) | shape_record(real)]
    # A warm-up run loads the compiled code before the clock starts.
    warm = make_init(kind, samples, real.k, seeded(kind, setting["run"]))
    run_from("nnlsb", samples, warm, max_iter=1)
    init = make_init(kind, samples, real.k, seeded(kind, setting["run"]))

    def is_late(progress: Progress) -> bool:
        return init.seconds + progress.history.seconds[-1] > limit

    fit = run_from("nnlsb", samples, init, max_iter=setting["max_iter"], until=is_late)
    return [
        {
            "init seconds": init.seconds,
            "errors": [round(error, 7) for error in fit.errors],
            "seconds": [round(seconds, 5) for seconds in fit.seconds],
        }
        | shape_record(real)
    ]


def _default_run(X: Any, k: int, limit: float) -> dict[str, Any]:
    factorize(X, k, max_iter=1, n_jobs=1)  # a warm-up run, as above
    started, begun = time.perf_counter(), []

    def is_late(progress: Progress) -> bool:
        taken, iterating = time.perf_counter() - started, progress.history.seconds[-1]
        begun.append(taken - iterating)
        return taken > limit

    history = factorize(X, k, max_iter=100_000, tol=0, n_jobs=1, callback=is_late).history
    squared_norm = float((X * X).sum())
    return {
        "init seconds": begun[0],
        "errors": [round(relative_error(loss, squared_norm), 7) for loss in history.loss],
        "seconds": [round(seconds, 5) for seconds in history.seconds],
    }


def first_time(record: Record, error: float) -> float | None:
    """Return when a run first had an error."""
    for value, seconds in zip(record["errors"], record["seconds"], strict=True):
        if value <= error:
            return float(record["init seconds"] + seconds)
    return None


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return one table per data set, and the published one."""
    rows: list[dict[str, Any]] = []
    winners: list[str] = []
    for (name,), group in grouped(records, "set").items():
        best = min(error for record in group if record["init"] != DEFAULT for error in record["errors"])
        levels = [level * best for level in LEVELS]
        rows.append({"set": SET_NAMES[name], "init": "ε"} | {str(i): level for i, level in enumerate(levels)})
        means: list[dict[str, float]] = [{} for _ in levels]
        for kind in (*INITS, DEFAULT):
            if not (runs := [record for record in group if record["init"] == kind]):
                continue
            row: dict[str, Any] = {"set": SET_NAMES[name], "init": kind}
            for i, level in enumerate(levels):
                times = [time for record in runs if (time := first_time(record, level)) is not None]
                mean, spread = mean_and_spread(times)
                row[str(i)] = Measured(
                    mean, spread, remark="" if len(times) == len(runs) else f"({len(times)} of {len(runs)})"
                )
                if mean is not None and len(times) == len(runs) and kind != DEFAULT:
                    means[i][kind] = mean
            row["last"] = mean_and_spread([record["errors"][-1] for record in runs])[0]
            rows.append(row)
        winners += [min(found, key=lambda kind: found[kind]) for found in means if found]
    columns = {"set": "set", "init": "initialization"}
    columns |= {str(i): f"{level:g} times the best (s)" for i, level in enumerate(LEVELS)} | {
        "last": "error at the end"
    }
    counts = {kind: winners.count(kind) for kind in INITS}
    behind = _behind_default(rows)
    return [
        Table("Seconds until an error is reached. ε: the error itself.", columns, rows, digits=3),
        _published(),
        _early(records),
        Verdict(
            "cr1-nmf is the first to reach the error in every case",
            None if _is_quick(records) else counts["cr1-nmf"] == len(winners),
            f"the first in {len(winners)} cases: " + ", ".join(f"{kind} {n}" for kind, n in counts.items()),
        ),
        Verdict(
            "the default of nonneg reaches every error no later than nnlsb from cr1-nmf",
            None if _is_quick(records) or behind is None else not behind,
            "later: " + ", ".join(behind) if behind else "",
        ),
    ]


def _behind_default(rows: Sequence[dict[str, Any]]) -> list[str] | None:
    """Return where cr1-nmf is sooner than the default; None without records of it."""
    times = {(row["set"], row["init"]): row for row in rows}
    names = [name for name, init in times if init == DEFAULT]
    late = []
    for name in names:
        for i, level in enumerate(LEVELS):
            ours, theirs = (times[name, init][str(i)].value for init in (DEFAULT, "cr1-nmf"))
            if theirs is not None and (ours is None or ours > theirs):
                late.append(f"{name} at {level:g}")
    return late if names else None


def _early(records: Sequence[Record]) -> Table:
    """Return the errors after few iterations, and when rand overtakes cr1-nmf."""
    rows: list[dict[str, Any]] = []
    for (name,), group in grouped(records, "set").items():
        curves = {kind: _mean_curve([r["errors"] for r in group if r["init"] == kind]) for kind in INITS}
        pairs = zip(curves["rand"], curves["cr1-nmf"], strict=False)
        ahead = [i for i, (rand, cones) in enumerate(pairs, start=1) if rand < cones]
        for kind, curve in curves.items():
            row: dict[str, Any] = {"set": SET_NAMES[name], "init": kind}
            row |= {str(i): curve[i - 1] for i in EARLY if i <= len(curve)}
            rows.append(row | ({"ahead": ahead[0] if ahead else None} if kind == "rand" else {}))
    columns = {"set": "set", "init": "initialization"} | {str(i): f"iteration {i}" for i in EARLY}
    columns["ahead"] = "ahead of cr1-nmf from iteration"
    return Table("Errors after few iterations, mean over runs.", columns, rows, digits=3)


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    return [sum(errors) / len(errors) for errors in zip(*curves, strict=False)]


def _is_quick(records: Sequence[Record]) -> bool:
    return records[0]["set"] == QUICK


def _published() -> Table:
    published = published_values("cr1_nmf")["table_5_time_to_error_with_nnlsb_s"]
    rows: list[dict[str, Any]] = []
    for name, found in published.items():
        for init, values in found.items():
            label = "ε" if init == "eps" else init
            rows.append({"set": name, "init": label} | {str(i): value for i, value in enumerate(values)})
    columns = {"set": "set", "init": "initialization"} | {
        str(i): f"error {i + 1} (s)" for i in range(len(LEVELS))
    }
    caption = "Published values, on other data sets (MATLAB, i5-3570)."
    return Table(caption, columns, rows, 4, {WHOLE: "data sets, machine and programs differ"})


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=FOLDERS,
    quick_data_sets=(),
    parallel=False,  # times are measured
)
