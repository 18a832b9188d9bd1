"""Table III: the time that initializations take on real sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import WHOLE, Artifact, Measured, Table, Verdict
from reproduction.cr1.init_times import (
    TIMED_INITS,
    loaded,
    set_trials,
    shape_columns,
    shape_record,
    timed_inits,
)
from reproduction.cr1.real_sets import FOLDERS, QUICK
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "cr1/table-3"
N_REPEATS = 10


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per data set."""
    return set_trials(quick, n_repeats=2 if quick else N_REPEATS)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Time the initializations on a set."""
    real, samples = loaded(setting)
    times = timed_inits(samples, real.k, setting["n_repeats"])
    return [{"init": kind, "init seconds": times[kind]} | shape_record(real) for kind in TIMED_INITS]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the measured table and the published one."""
    rows, slower = [], []
    for (name,), group in grouped(records, "set").items():
        row = shape_columns(name, group)
        means: dict[str, float] = {}
        for record in group:
            mean, spread = mean_and_spread(record["init seconds"])
            row[record["init"]] = Measured(mean, spread)
            means[record["init"]] = mean or 0.0
        for kind in ("spkm", "nndsvd"):
            row[f"{kind} ratio"] = means[kind] / means["cr1-nmf"]
            slower += [f"{row['set']}: {kind}"] if means[kind] <= means["cr1-nmf"] else []
        rows.append(row)
    columns = {"set": "set", "F": "F", "N": "N", "K": "K"}
    columns |= {kind: f"{kind} (s)" for kind in TIMED_INITS}
    columns |= {"spkm ratio": "spkm / cr1-nmf", "nndsvd ratio": "nndsvd / cr1-nmf"}
    published = published_values("cr1_nmf")["table_3_init_times_s"]
    theirs = [
        dict(zip(["set", *TIMED_INITS], row, strict=True))
        | {"spkm ratio": row[2] / row[1], "nndsvd ratio": row[3] / row[1]}
        for row in published["rows"]
    ]
    kept = {key: heading for key, heading in columns.items() if key not in {"F", "N", "K"}}
    return [
        Table("Initialization time in seconds.", columns, rows, digits=3),
        Table(
            "Published values, on other data sets (MATLAB, i5-3570).",
            kept,
            theirs,
            3,
            {WHOLE: "data sets, machine and programs differ"},
        ),
        Verdict(
            "cr1-nmf is the fastest initialization on every data set",
            None if records[0]["set"] == QUICK else not slower,
            ("not slower than cr1-nmf: " + ", ".join(slower)) if slower else f"{len(rows)} data sets",
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
