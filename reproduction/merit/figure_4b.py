"""Figure 4b: the memory of the methods against the number of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Curves, Figure, Measured, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.merit.anchor_trials import (
    GAP,
    MERIT_ITERATIONS,
    METHODS,
    MU,
    draw_points,
)
from reproduction.merit.peak_memory import can_measure, measured_peak
from reproduction.registry import TITLES

NAME = "merit/figure-4b"
SHOWN = ("merit", "spa", "fast-gradient", "default")
SIZES = (1000, 2000, 4000, 6000, 8000, 10_000)
LINEAR_SIZES = (*SIZES, 20_000)
LARGEST = 10_000
FAST_GRADIENT_STEPS = 5
# Five arrays of 10000 x 10000 in float64 and what the libraries need beside them.
FAST_GRADIENT_LIMIT = 16e9


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per method and number of points."""
    common = {"data": "dirichlet", "n_features": 50, "n_anchors": 40, "snr": 10, "draw": 0, "threads": 1}
    sizes: dict[str, tuple[int, ...]] = {
        method: LINEAR_SIZES if method != "fast-gradient" else SIZES for method in SHOWN
    }
    if quick:
        sizes = dict.fromkeys(SHOWN, (200, 800))
    pairs = sorted((n, SHOWN.index(method)) for method, many in sizes.items() for n in many)
    return [{"n": n, "method": SHOWN[at]} | common for n, at in pairs]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    points = draw_points(setting, setting["draw"])
    options: dict[str, Any] = {} if setting["method"] == "default" else {"method": setting["method"]}
    if setting["method"] == "merit":
        options |= {"max_iter": MERIT_ITERATIONS, "tol": GAP["dirichlet"]}
        options["method_params"] = {"lam": "paper", "mu": MU, "recovery": False}
    elif setting["method"] == "fast-gradient":
        options |= {"max_iter": FAST_GRADIENT_STEPS, "rng": 0}
        options["method_params"] = {"memory_limit": FAST_GRADIENT_LIMIT}
    return [measured_peak(points.X, setting["n_anchors"], options) | {"points": points.X.nbytes / 1e6}]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, a table, and the claims."""
    found = {key: group[-1] for key, group in grouped(records, "method", "n").items()}
    sizes = sorted({n for _, n in found})
    panels = [
        Curves(
            words,
            "N",
            "MB",
            [
                Series(
                    METHODS[name],
                    [n for n in sizes if (name, n) in found],
                    [max(found[name, n][entry], 0.1) for n in sizes if (name, n) in found],
                )
                for name in SHOWN
            ],
            x_log=True,
            y_log=True,
        )
        for entry, words in (("process", "whole process"), ("search", "search alone"))
    ]
    columns = {"n": "N", "points": "points (MB)"}
    columns |= {
        f"{entry} {name}": f"{METHODS[name]}, {entry} (MB)"
        for entry in ("process", "search")
        for name in SHOWN
    }
    rows = []
    for n in sizes:
        row: dict[str, Any] = {"n": n, "points": n * 50 * 8 / 1e6}
        for name in SHOWN:
            for entry in ("process", "search"):
                row[f"{entry} {name}"] = Measured(found[name, n][entry] if (name, n) in found else None)
        rows.append(row)
    return [
        Figure("peak-memory", "Peak resident memory against the number of points.", panels),
        Table("Peak resident memory.", columns, rows, 3),
        *_verdicts(found),
    ]


def _verdicts(found: dict[tuple[Any, ...], dict[str, Any]]) -> list[Verdict]:
    merit, fast = found.get(("merit", LARGEST)), found.get(("fast-gradient", LARGEST))
    spa, default = found.get(("spa", LARGEST)), found.get(("default", LARGEST))
    return [
        *(
            Verdict(
                f"MERIT needs at most {limit} MB at N = {LARGEST}{whose}",
                None if merit is None else merit["search"] <= limit,
                "not measured" if merit is None else f"{merit['search']:.0f} MB",
            )
            for limit, whose in ((100, ", as published"), (60, ""))
        ),
        Verdict(
            f"FastGradient needs close to 5 GB at N = {LARGEST}",
            None if fast is None else 4000 <= fast["process"] <= 6000,
            "not measured" if fast is None else f"{fast['process'] / 1000:.2f} GB",
        ),
        _growth(found, "merit", "linear", 0.0, 1.2),
        _growth(found, "fast-gradient", "quadratic", 1.8, 2.2),
        Verdict(
            f"the default needs at most 100 MB at N = {LARGEST}, as MERIT as published",
            None if default is None else default["search"] <= 100,
            "not measured" if default is None else f"{default['search']:.0f} MB",
        ),
        Verdict(
            f"SPA needs no more memory than MERIT at N = {LARGEST}",
            None if merit is None or spa is None else spa["search"] <= merit["search"],
            "not measured" if spa is None else f"{spa['search']:.0f} MB",
        ),
    ]


def _growth(
    found: dict[tuple[Any, ...], dict[str, Any]], name: str, word: str, low: float, high: float
) -> Verdict:
    claim = f"{METHODS[name]}'s memory grows {'linearly' if word == 'linear' else 'with the square of N'}"
    small, large = found.get((name, 2000)), found.get((name, LARGEST))
    if small is None or large is None or small["search"] <= 0:
        return Verdict(claim, None, "not measured")
    power = math.log(large["search"] / small["search"]) / math.log(LARGEST / 2000)
    return Verdict(claim, low <= power <= high, f"as N to the {power:.2f} from 2000 to {LARGEST}")


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["n"]) ** 2,
    lacks=lambda quick: (
        None if can_measure() else "memory is read from /proc/self/status, which only Linux has."
    ),
)
