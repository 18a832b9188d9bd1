"""Figure 4: the error against iterations from four starts on real sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nonneg.experiments.cr1.four_starts import DETERMINISTIC, STARTS, make_start, seeded
from nonneg.experiments.cr1.real_sets import QUICK, TIMED
from nonneg.experiments.cr1.runs_from_starts import ALGORITHMS, run_from
from nonneg.experiments.cr1.start_times import (
    SET_NAMES,
    SETS_USED,
    SHIFTED,
    loaded,
    mean_times,
    shape_record,
    shift,
)
from nonneg.experiments.exhibits import Curves, Exhibit, Figure, Series, Table, Verdict
from nonneg.experiments.experiment import Experiment, Record, Setting
from nonneg.experiments.grouping import grouped, mean_and_spread
from nonneg.experiments.registry import TITLES

NAME = "cr1/figure-4"
ITERATIONS = {"mult": 100, "nnlsb": 30, "hals": 100}
N_RUNS = 3

SHOWS = f"""
Liu & Tan (2017), Figure 4: the relative error of mult, nnlsb and hals against iterations, from four starts.
The curves of mult and hals are shifted by the iterations that the start took (Table IV's rule, with times
from these runs); those of nnlsb are not. The paper sees that cr1-nmf is almost always the best in speed, in
the last error or in both; nndsvd+hals is better on PaviaU. {SETS_USED}

Means over {N_RUNS} runs (the paper has 10); {ITERATIONS["mult"]} iterations of mult and hals and
{ITERATIONS["nnlsb"]} of nnlsb, on one thread.
"""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings, one a run, set and algorithm.

    Parameters
    ----------
    quick : bool
        A made-up set, which takes seconds.

    Returns
    -------
    list of dict
        Run after run, so that a part of them is of use.
    """
    return [
        {
            "set": name,
            "run": run,
            "algorithm": algorithm,
            "max_iter": 12 if quick else ITERATIONS[algorithm],
            "threads": 1,
        }
        for run in range(1 if quick else N_RUNS)
        for name in ((QUICK,) if quick else TIMED)
        for algorithm in ALGORITHMS
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run an algorithm from all starts on a set.

    Parameters
    ----------
    setting : mapping
        One of `trials`.

    Returns
    -------
    list of dict
        One a start, with the errors and what start and iterations took. A deterministic start is run in run 0
        alone.
    """
    real, samples = loaded(setting)
    records = []
    for kind in STARTS:
        if kind in DETERMINISTIC and setting["run"] > 0:
            continue
        for _ in range(2):  # the first one loads compiled code
            start = make_start(kind, samples, real.k, seeded(kind, setting["run"]))
        fit = run_from(setting["algorithm"], samples, start, max_iter=setting["max_iter"])
        records.append(
            {
                "start": kind,
                "start seconds": start.seconds,
                "seconds": fit.seconds[-1],
                "errors": [round(error, 6) for error in fit.errors],
            }
            | shape_record(real)
        )
    return records


def summarize(records: Sequence[Record]) -> list[Exhibit]:
    """Return the curves, and the errors at their ends.

    Parameters
    ----------
    records : sequence of mapping
        One a run, set, algorithm and start.

    Returns
    -------
    list of exhibits
        Three panels a set.
    """
    exhibits: list[Exhibit] = []
    rows: list[dict[str, Any]] = []
    for (name,), members in grouped(records, "set").items():
        starts = mean_times(members)
        panels = []
        for (algorithm,), group in grouped(members, "algorithm").items():
            means = {kind: _mean_curve(group, kind) for kind in STARTS}
            random = [record for record in group if record["start"] == "rand"]
            an_iteration = sum(record["seconds"] for record in random) / sum(len(r["errors"]) for r in random)
            shifts = {
                kind: shift(starts[kind], an_iteration) if algorithm in SHIFTED else 0 for kind in STARTS
            } | {"rand": 0}
            panels.append(_panel(SET_NAMES[name], algorithm, means, shifts))
            last = len(means["rand"])
            row: dict[str, Any] = {"set": SET_NAMES[name], "algorithm": algorithm, "last": last}
            for kind in STARTS:
                row[kind] = _error_at(means[kind], last - shifts[kind])
                row[f"{kind} shift"] = shifts[kind]
            row["best"] = min((kind for kind in STARTS if row[kind] is not None), key=lambda kind: row[kind])
            rows.append(row)
        caption = f"{SET_NAMES[name]}: relative error against iterations, shifted for mult and hals."
        exhibits.append(Figure(name.lower().replace("_", "-"), caption, panels, 3))
    columns = {"set": "set", "algorithm": "algorithm", "last": "iterations"} | {kind: kind for kind in STARTS}
    columns |= {f"{kind} shift": f"shift of {kind}" for kind in STARTS if kind != "rand"} | {
        "best": "smallest"
    }
    caption = "Mean relative error when as much time has passed as rand takes for all its iterations."
    counts = {kind: sum(row["best"] == kind for row in rows) for kind in STARTS}
    return [
        *exhibits,
        Table(caption, columns, rows),
        Verdict(
            "cr1-nmf has the smallest error in most cases, as the paper says of its sets",
            None if records[0]["set"] == QUICK else counts["cr1-nmf"] > len(rows) / 2,
            f"the smallest of {len(rows)}: " + ", ".join(f"{kind} {count}" for kind, count in counts.items()),
        ),
    ]


def _mean_curve(records: Sequence[Record], kind: str) -> list[float]:
    curves = [record["errors"] for record in records if record["start"] == kind]
    return [mean_and_spread(values)[0] or 0.0 for values in zip(*curves, strict=True)]


def _error_at(curve: Sequence[float], iteration: int) -> float | None:
    return curve[iteration - 1] if 1 <= iteration <= len(curve) else None


def _panel(name: str, algorithm: str, means: dict[str, list[float]], shifts: dict[str, int]) -> Curves:
    longest = len(means["rand"])
    series = []
    for kind in STARTS:
        x = [i + 1 + shifts[kind] for i in range(len(means[kind]))]
        shown = [(a, b) for a, b in zip(x, means[kind], strict=True) if a <= longest]
        series.append(Series(kind, [a for a, _ in shown], [b for _, b in shown], style="line"))
    return Curves(f"{name}: {algorithm}", "iteration", "relative error", series, y_log=True)


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    SHOWS,
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=TIMED,
    quick_data_sets=(),
)
