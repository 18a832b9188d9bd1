"""Duality gap of MERIT against time, for every step rule."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._threads import threads
from nonneg.datasets import separable_dirichlet
from nonneg.iteration import Progress
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Curves, Figure, Measured, Paragraph, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "studies/merit-convergence"
RULES = ("open-loop", "line-search", "away", "pairwise", "fully-corrective")
# The requirement: this gap, within this many times the time of 100 open-loop iterations.
GAP, TIMES = 0.01, 3.0
LARGE = 10_000
# Seconds after which a run is ended, by number of points; the other rules would not reach the gap anyway.
LIMITS = {1000: 3.0, LARGE: 30.0}
N_DRAWS = {1000: 3, LARGE: 2}
N_THREADS = 2


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per step rule, size and draw."""
    if quick:
        return [
            {"n": 120, "m": 20, "k": 6, "snr": 10, "rule": rule, "draw": 0, "threads": 1} for rule in RULES
        ]
    return [
        {"n": n, "m": 50, "k": 40, "snr": 10, "rule": rule, "draw": draw, "threads": N_THREADS}
        for draw in range(max(N_DRAWS.values()))
        for n, n_draws in N_DRAWS.items()
        if draw < n_draws
        for rule in RULES
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one step rule, with the same weight for all of them."""
    n, k = setting["n"], setting["k"]
    points = separable_dirichlet(
        n, setting["m"], k, snr=setting["snr"], rng=np.random.default_rng([n, setting["draw"]])
    )
    params: dict[str, Any] = {"steps": "fully-corrective", "recovery": False}
    with threads(setting["threads"]):
        # Compiled code is loaded, and the weight computed, before the clock starts.
        lam = select_anchors(points.X, k, max_iter=1, method_params=params).lam
        params |= {"steps": setting["rule"], "lam": lam}
        select_anchors(points.X[: 2 * k], k, max_iter=2, method_params=params)
        limit = LIMITS.get(n, 1.0)

        def out_of_time(progress: Progress) -> bool:
            return setting["rule"] != "open-loop" and progress.history.seconds[-1] > limit

        started = time.perf_counter()
        result = select_anchors(points.X, k, callback=out_of_time, method_params=params)
    history = result.history
    assert history is not None
    assert result.row_maxima is not None
    gaps = np.array(history["gap"]) / np.array(history["loss"])
    shown = np.unique(np.linspace(0, len(gaps) - 1, 60).round().astype(int))
    return [
        {
            "seconds": time.perf_counter() - started,
            "n_iter": result.n_iter,
            "gap": float(gaps[-1]),
            "times": [round(float(history.seconds[i]), 4) for i in shown],
            "gaps": [float(f"{gaps[i]:.4g}") for i in shown],
            "n_rows": int(np.sum(result.row_maxima > 0)),
            "lam": lam,
        }
    ]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, the times and the requirement."""
    groups = grouped(records, "n", "rule")
    sizes = sorted({n for n, _ in groups})
    panels = [
        Curves(
            f"N = {n}",
            "seconds",
            "duality gap / objective",
            [
                Series(rule, groups[n, rule][0]["times"], groups[n, rule][0]["gaps"])
                for rule in RULES
                if (n, rule) in groups
            ],
            x_log=True,
            y_log=True,
        )
        for n in sizes
    ]
    columns = {
        "n": "N",
        "rule": "steps",
        "n_iter": "iterations",
        "seconds": "seconds",
        "ratio": "times 100 open-loop iterations",
        "gap": "gap / objective",
        "n_rows": "nonzero rows",
    }
    rows = []
    for n in sizes:
        usual = _mean(groups, n, "open-loop", "seconds")
        for rule in RULES:
            if (n, rule) not in groups:
                continue
            row = {key: _mean(groups, n, rule, key) for key in ("n_iter", "seconds", "gap", "n_rows")}
            ratio = row["seconds"] / usual if row["seconds"] and usual else None
            spread = mean_and_spread([record["gap"] for record in groups[n, rule]])
            rows.append({"n": n, "rule": rule, **row, "ratio": ratio, "gap": Measured(*spread)})
    return [
        Paragraph(
            "Dirichlet weights, 40 anchors in 50 dimensions, 10 dB. All step rules minimize with the same "
            "weight of the row sparsity, the default of fully corrective steps. The gap of the other rules "
            "is that of the smoothed problem. They end after 100 iterations or "
            + ", ".join(f"{seconds:g} s (N = {n})" for n, seconds in LIMITS.items())
            + "; fully corrective steps end at a gap of 1%, by their default."
        ),
        Figure("gap", "Duality gap against time, first draw.", panels),
        Table("Means over draws.", columns, rows, 3),
        _requirement(groups),
    ]


def _mean(groups: dict[tuple[Any, ...], list[dict[str, Any]]], n: int, rule: str, key: str) -> float | None:
    return mean_and_spread([record[key] for record in groups.get((n, rule), [])])[0]


def _requirement(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> Verdict:
    claim = f"at N = {LARGE:,} a gap of 1% takes at most {TIMES:g} times the time of 100 open-loop iterations"
    usual, found = groups.get((LARGE, "open-loop"), []), groups.get((LARGE, "fully-corrective"), [])
    if len(usual) < N_DRAWS[LARGE] or len(found) < N_DRAWS[LARGE]:
        return Verdict(claim, None, "not all trials are done")
    ratios = [a["seconds"] / b["seconds"] for a, b in zip(found, usual, strict=True)]
    gaps = [record["gap"] for record in found]
    met = max(ratios) <= TIMES and max(gaps) <= GAP
    return Verdict(
        claim, met, f"{max(ratios):.2f} times, gap {100 * max(gaps):.2f}% (the worse of {len(found)} draws)"
    )


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: LIMITS.get(setting["n"], 1.0),
    parallel=False,
)
