"""Figure 4: the error against iterations from four initializations on real sets, and the default's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg import NMF
from reproduction.artifacts import Artifact, Curves, Figure, Measured, Series, Table, Verdict
from reproduction.cr1.algorithm_runs import ALGORITHMS, run_from
from reproduction.cr1.init_times import (
    SET_NAMES,
    SHIFTED,
    loaded,
    mean_times,
    shape_record,
    shift,
)
from reproduction.cr1.initializations import DETERMINISTIC, INITS, make_init, seeded
from reproduction.cr1.real_sets import FILMS, FOLDERS, QUICK, TIMED
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "cr1/figure-4"
ITERATIONS = {"mult": 100, "nnlsb": 30, "hals": 100}
N_RUNS = 10
DEFAULT = "default"
LAST = "after all iterations"
MOMENTS = {"after a fifth of the iterations": 0.2, LAST: 1.0}
"""When the errors are compared."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per run, data set and algorithm, the default among them."""
    return [
        {
            "set": name,
            "run": run,
            "algorithm": algorithm,
            "max_iter": 12 if quick else ITERATIONS.get(algorithm, 200),
            "threads": 1,
        }
        for run in range(1 if quick else N_RUNS)
        for name in ((QUICK,) if quick else TIMED)
        for algorithm in (*ALGORITHMS, DEFAULT)
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run an algorithm from all initializations on a set, or `NMF(k)`."""
    real, samples = loaded(setting)
    if setting["algorithm"] == DEFAULT:
        model = NMF(real.k, max_iter=setting["max_iter"], random_state=setting["run"]).fit(samples.X)
        error = model.reconstruction_err_ / float(np.sqrt(samples.rows.squared_norm()))
        return [{"init": DEFAULT, "n_iter": model.n_iter_, "error": error} | shape_record(real)]
    records = []
    for kind in INITS:
        if kind in DETERMINISTIC and setting["run"] > 0:
            continue
        for _ in range(2):  # the first one loads compiled code
            init = make_init(kind, samples, real.k, seeded(kind, setting["run"]))
        fit = run_from(setting["algorithm"], samples, init, max_iter=setting["max_iter"])
        records.append(
            {
                "init": kind,
                "init seconds": init.seconds,
                "seconds": fit.seconds[-1],
                "errors": [round(error, 6) for error in fit.errors],
            }
            | shape_record(real)
        )
    return records


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, and the errors at their ends."""
    artifacts: list[Artifact] = []
    moments: dict[str, list[dict[str, Any]]] = {moment: [] for moment in MOMENTS}
    defaults = [record for record in records if record["algorithm"] == DEFAULT]
    records = [record for record in records if record["algorithm"] != DEFAULT]
    for (name,), members in grouped(records, "set").items():
        inits = mean_times(members)
        panels = []
        for (algorithm,), group in grouped(members, "algorithm").items():
            means = {kind: _mean_curve(group, kind) for kind in INITS}
            random = [record for record in group if record["init"] == "rand"]
            an_iteration = sum(record["seconds"] for record in random) / sum(len(r["errors"]) for r in random)
            shifts = {
                kind: shift(inits[kind], an_iteration) if algorithm in SHIFTED and kind != "rand" else 0
                for kind in INITS
            }
            panels.append(_panel(SET_NAMES[name], algorithm, means, shifts))
            for moment, share in MOMENTS.items():
                row = {"set": SET_NAMES[name], "algorithm": algorithm} | _errors_at(share, means, shifts)
                moments[moment].append(row)
        caption = f"{SET_NAMES[name]}: relative error against iterations, shifted for mult and hals."
        artifacts.append(Figure(name.lower().replace("_", "-"), caption, panels, 3))
    for moment, rows in moments.items():
        artifacts += _of_moment(moment, rows, decided=records[0]["set"] != QUICK)
    return [*artifacts, *_why(moments[LAST]), *_beside_default(moments[LAST], defaults)]


def _beside_default(rows: Sequence[dict[str, Any]], defaults: Sequence[Record]) -> list[Artifact]:
    """Return the default's errors beside the smallest one from cr1-nmf at the end."""
    table = []
    for (name,), members in grouped(defaults, "set").items():
        of_set = [row for row in rows if row["set"] == SET_NAMES[name] and row["cr1-nmf"] is not None]
        ends = {row["algorithm"]: row["cr1-nmf"] for row in of_set}
        if not ends:
            continue
        best = min(ends, key=lambda algorithm: ends[algorithm])
        mean, spread = mean_and_spread([record["error"] for record in members])
        error = (spread or 0.0) / len(members) ** 0.5
        table.append(
            {
                "set": SET_NAMES[name],
                "n_iter": mean_and_spread([record["n_iter"] for record in members])[0],
                "error": Measured(mean, spread),
                "cr1-nmf": ends[best],
                "algorithm": best,
                "behind": mean is not None and mean - ends[best] > 2 * error,
            }
        )
    columns = {
        "set": "set",
        "n_iter": "iterations of the default",
        "error": "default",
        "cr1-nmf": "smallest from cr1-nmf",
        "algorithm": "with",
    }
    behind = [row["set"] for row in table if row["behind"]]
    met = not behind if len(table) == len(TIMED) else None
    claim = f"the default's error is at most the smallest from cr1-nmf {LAST}, up to two standard errors"
    return [
        Table(f"Mean relative error of `NMF(k)` beside the smallest from cr1-nmf {LAST}.", columns, table),
        Verdict(claim, met, "not on " + ", ".join(behind) if behind else "everywhere"),
    ]


def _why(rows: Sequence[dict[str, Any]]) -> list[Verdict]:
    """Say where the paper's picture comes out, and so why it does not elsewhere."""
    best = {(row["set"], row["algorithm"]): row["best"] for row in rows}
    films = {algorithm: best.get((SET_NAMES[FILMS], algorithm)) for algorithm in ALGORITHMS}
    scene = best.get((SET_NAMES["paviaU_sub50"], "hals"))
    return [
        Verdict(
            f"{LAST}, cr1-nmf has the smallest error for every algorithm where the images of a person "
            "hardly differ, as in the paper's data sets (ORL videos)",
            None if None in films.values() else set(films.values()) == {"cr1-nmf"},
            ", ".join(f"{algorithm}: {kind}" for algorithm, kind in films.items() if kind),
        ),
        Verdict(
            f"{LAST}, nndsvd+hals is the best with hals on PaviaU, as in the paper",
            None if scene is None else scene == "nndsvd",
            scene or "",
        ),
    ]


def _of_moment(moment: str, rows: Sequence[dict[str, Any]], *, decided: bool) -> list[Artifact]:
    """Return the errors when some time has passed, and which initialization has the smallest."""
    columns = {"set": "set", "algorithm": "algorithm", "n_iter": "iterations"}
    columns |= {kind: kind for kind in INITS}
    columns |= {f"{kind} shift": f"shift of {kind}" for kind in INITS if kind != "rand"}
    columns |= {"best": "smallest"}
    counts = {kind: sum(row["best"] == kind for row in rows) for kind in INITS}
    by_algorithm = "; ".join(
        f"{algorithm}: " + ", ".join(f"{kind} {n}" for kind in INITS if (n := _count(group, kind)))
        for (algorithm,), group in grouped(rows, "algorithm").items()
    )
    return [
        Table(f"Mean relative error {moment}, in the time that rand needs for them.", columns, rows),
        Verdict(
            f"{moment}, cr1-nmf has the smallest error in most cases, as in the paper",
            counts["cr1-nmf"] > len(rows) / 2 if decided else None,
            f"the smallest of {len(rows)}: {by_algorithm}",
        ),
    ]


def _count(rows: Sequence[dict[str, Any]], kind: str) -> int:
    return sum(row["best"] == kind for row in rows)


def _errors_at(share: float, means: dict[str, list[float]], shifts: dict[str, int]) -> dict[str, Any]:
    n_iter = round(share * len(means["rand"]))
    row: dict[str, Any] = {"n_iter": n_iter}
    for kind in INITS:
        row[kind] = _error_at(means[kind], n_iter - shifts[kind])
        row[f"{kind} shift"] = shifts[kind]
    row["best"] = min((kind for kind in INITS if row[kind] is not None), key=lambda kind: row[kind])
    return row


def _mean_curve(records: Sequence[Record], kind: str) -> list[float]:
    curves = [record["errors"] for record in records if record["init"] == kind]
    return [mean_and_spread(values)[0] or 0.0 for values in zip(*curves, strict=True)]


def _error_at(curve: Sequence[float], iteration: int) -> float | None:
    return curve[iteration - 1] if 1 <= iteration <= len(curve) else None


def _panel(name: str, algorithm: str, means: dict[str, list[float]], shifts: dict[str, int]) -> Curves:
    longest = len(means["rand"])
    series = []
    for kind in INITS:
        x = [i + 1 + shifts[kind] for i in range(len(means[kind]))]
        shown = [(a, b) for a, b in zip(x, means[kind], strict=True) if a <= longest]
        series.append(Series(kind, [a for a, _ in shown], [b for _, b in shown], style="line"))
    return Curves(f"{name}: {algorithm}", "iteration", "relative error", series, y_log=True)


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=FOLDERS,
    quick_data_sets=(),
)
