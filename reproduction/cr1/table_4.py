"""Table IV: what initializations take, in iterations of the algorithms that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import WHOLE, Artifact, Table, Verdict
from reproduction.cr1.init_times import (
    SET_NAMES,
    SHIFTED,
    TIMED_INITS,
    loaded,
    mean_times,
    set_trials,
    shape_record,
    shift,
    timed_inits,
    timed_iterations,
)
from reproduction.cr1.real_sets import FOLDERS, QUICK
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "cr1/table-4"
N_REPEATS, N_ITER = 10, 40


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per data set."""
    return set_trials(quick, n_repeats=2 if quick else N_REPEATS, n_iter=5 if quick else N_ITER)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Time initializations and iterations on a set."""
    real, samples = loaded(setting)
    inits = timed_inits(samples, real.k, setting["n_repeats"])
    iterations = timed_iterations(samples, real.k, setting["n_iter"])
    return [
        {"init": kind, "init seconds": inits[kind], "iteration seconds": iterations} | shape_record(real)
        for kind in TIMED_INITS
    ]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the shifts, the times they come from, and the published shifts."""
    sets = {name: group for (name,), group in grouped(records, "set").items()}
    methods = [(kind, algorithm) for algorithm in SHIFTED for kind in TIMED_INITS]
    shifts: dict[str, dict[tuple[str, str], int]] = {}
    times = []
    for name, group in sets.items():
        inits, iterations = mean_times(group), group[0]["iteration seconds"]
        shifts[name] = {
            (kind, algorithm): shift(inits[kind], iterations[algorithm]) for kind, algorithm in methods
        }
        times.append({"set": SET_NAMES[name]} | inits | iterations)
    rows = [
        {"method": f"{kind}+{algorithm}"} | {name: shifts[name][kind, algorithm] for name in sets}
        for kind, algorithm in methods
    ]
    columns = {"method": "method"} | {name: SET_NAMES[name] for name in sets}
    published = published_values("cr1_nmf")["table_4_iteration_shift"]
    theirs = [dict(zip(published["columns"], row, strict=True)) for row in published["rows"]]
    heads = {"set": "set"} | {kind: f"{kind} (s)" for kind in TIMED_INITS}
    heads |= {algorithm: f"an iteration of {algorithm} (s)" for algorithm in SHIFTED}
    larger = [
        f"{SET_NAMES[name]} {kind}+{algorithm}"
        for name, found in shifts.items()
        for (kind, algorithm), value in found.items()
        if value < found["cr1-nmf", algorithm]
    ]
    return [
        Table("Initialization time in iterations (shifts).", columns, rows),
        Table("Mean time of initializations and iterations in seconds.", heads, times, digits=3),
        Table(
            "Published shifts, on other data sets.",
            {name: name for name in published["columns"]},
            theirs,
            not_comparable={WHOLE: "data sets, machine and programs differ"},
        ),
        Verdict(
            "no initialization has a smaller shift than cr1-nmf, as in the paper",
            None if QUICK in sets else not larger,
            "smaller: " + ", ".join(larger) if larger else f"{len(sets)} data sets",
        ),
    ]


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
