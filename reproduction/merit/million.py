"""A million points: MERIT at the lowest signal-to-noise ratio at which successive projection fails."""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.data import as_data_matrix
from nonneg.datasets import SeparableData
from nonneg.metrics import anchors_found
from nonneg.separable.merit.penalty_weight import penalty_weight
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Figure, Measured, Paragraph, Table, Verdict
from reproduction.device import describe_device, has_cuda, to_device, use_device
from reproduction.experiment import Experiment, Record, Setting, Workspace
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.anchor_trials import GAP, MERIT_ITERATIONS, METHODS, MU, draw_points
from reproduction.merit.peak_memory import resident_peak
from reproduction.merit.rates import Rate, rate_cell, rate_curves, success_rates
from reproduction.registry import TITLES

NAME = "merit/million"
RATIOS = tuple(range(8, 16))
WEIGHED_LIKE = 1000
"""The weight of the row-sparsity penalty is that for this number of points at the same noise."""
N_DRAWS = 3
# The steps and the choice of anchors with which the page was made; `studies/merit-large` shows the default.
AS_SHOWN = {"steps": "open-loop", "choice": "row-maxima"}
STEPS = (0, 1, 2, 3)
MILLION = 1_000_000
SEARCH_SIZE = 100_000
ITERATION_GOAL, TOTAL_GOAL = 0.025, 240.0


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: runs at every noise level, then the large runs."""
    common = {"data": "dirichlet", "n_features": 50, "n_anchors": 40, "dtype": "float32"}
    n, n_large = (200, 500) if quick else (100_000, 1_000_000)
    ratios, n_draws = ((10, 16), 1) if quick else (RATIOS, N_DRAWS)
    found: list[dict[str, Any]] = [
        {"stage": "search", "n": n, "snr": snr, "draw": draw} | common
        for draw in range(n_draws)
        for snr in reversed(ratios)
    ]
    return found + [{"stage": "large", "n": n_large, "step": step, "draw": 0} | common for step in STEPS]


def run(setting: Setting, workspace: Workspace) -> list[dict[str, Any]]:
    """Run one trial."""
    with use_device("cuda" if has_cuda() else None):
        if setting["stage"] == "search":
            hopeless = failed_above(workspace.records, setting)
            return [{"outcome": "MERIT failed at a higher ratio"}] if hopeless else _both(setting, None)
        lowest = lowest_ratio(workspace.records)
        if lowest is None:
            return [{"outcome": "no ratio at which MERIT alone succeeds was found"}]
        if shown_before(workspace.records, setting["n"], setting["step"]):
            return [{"outcome": "not needed"}]
        snr = lowest + setting["step"]
        folder = workspace.folder / f"checkpoint-{snr:g}-dB"
        records = _both(dict(setting) | {"snr": snr}, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return [{"found_snr": snr} | record for record in records]


def _both(setting: Setting, checkpoint: Path | None) -> list[dict[str, Any]]:
    points = draw_points(setting, setting["draw"])
    X = to_device(points.X)
    device = {"device": describe_device() or "NumPy"}
    k = setting["n_anchors"]
    _, spa_record = _timed(lambda: select_anchors(X, k, method="spa"), points)
    resumed = checkpoint is not None and checkpoint.is_dir()
    merit, record = _timed(
        lambda: select_anchors(
            X,
            k,
            method="merit",
            method_params={"lam": _weight(X, k), "mu": MU, "recovery": False} | AS_SHOWN,
            max_iter=MERIT_ITERATIONS,
            tol=GAP["dirichlet"],
            checkpoint=checkpoint,
        ),
        points,
    )
    clock = merit.history["seconds"]
    record |= {
        "n_iter": merit.n_iter,
        "iterations_s": round(clock[-1], 4),
        "iteration_s": round(statistics.median(np.diff([0.0, *clock]).tolist()), 6),
        "gap": merit.gap,
        "objective": merit.objective,
        "margin": merit.margin,
        "lam": merit.lam,
        "entries": merit.facts["entries"],
        "resumed": resumed,
    }
    return [{"method": "spa", **spa_record, **device}, {"method": "merit", **record, **device}]


def _weight(X: Any, k: int) -> float:
    # The published one is the norm of a residual, which grows like the root of the number of points.
    return penalty_weight(as_data_matrix(X), k, "paper").lam * min(1.0, math.sqrt(WEIGHED_LIKE / X.shape[0]))


def _timed(
    search: Callable[[], SelectionResult], points: SeparableData
) -> tuple[SelectionResult, dict[str, Any]]:
    gpu = import_module("torch").cuda if has_cuda() else None
    if gpu is not None:
        gpu.synchronize()
        gpu.reset_peak_memory_stats()
    started = time.perf_counter()
    result = search()
    if gpu is not None:
        gpu.synchronize()
    seconds = time.perf_counter() - started
    found = anchors_found(points.anchors, result.anchors)
    return result, {
        "success": int(found == 1),
        "found": round(found * len(points.anchors)),
        "total_s": round(seconds, 4),
        "device_mb": None if gpu is None else round(gpu.max_memory_allocated() / 1e6, 1),
        "host_mb": resident_peak(),
    }


def lowest_ratio(records: Sequence[Record]) -> float | None:
    """Return the lowest ratio at which MERIT finds all anchors in every draw, and SPA in none."""
    rates = success_rates(_searches(records), "snr", "method")
    # Where MERIT failed in one draw, that draw was not tried at lower ratios.
    n_draws = max((rate.n for rate in rates.values()), default=0)
    fit = [
        snr
        for snr in {snr for snr, _ in rates}
        if rates.get((snr, "merit")) == Rate(n_draws, n_draws) and rates.get((snr, "spa")) == Rate(0, n_draws)
    ]
    return min(fit, default=None)


def failed_above(records: Sequence[Record], setting: Setting) -> bool:
    """Tell whether MERIT missed anchors of the same draw at a higher ratio."""
    return any(
        record["method"] == "merit" and record["snr"] > setting["snr"] and not record["success"]
        for record in _searches(records)
        if (record["n"], record["draw"]) == (setting["n"], setting["draw"])
    )


def _searches(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.get("stage") == "search" and "method" in record]


def shown_before(records: Sequence[Record], n: int, step: int) -> bool:
    """Tell whether an earlier large run had MERIT find all anchors."""
    return any(
        record.get("success") == 1
        for record in records
        if record.get("stage") == "large"
        and record["n"] == n
        and record["step"] < step
        and record.get("method") == "merit"
    )


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the searches, the large runs, and the claims."""
    searches = _searches(records)
    large = [record for record in records if record["stage"] == "large" and "method" in record]
    artifacts: list[Artifact] = []
    if searches:
        artifacts += _searched(searches)
    lowest = lowest_ratio(records)
    artifacts.append(
        Paragraph(
            "There is no ratio at which MERIT alone succeeds in every draw."
            if lowest is None
            else f"The lowest ratio at which MERIT succeeds in every draw and SPA in none: {lowest:g} dB."
        )
    )
    if large:
        artifacts.append(_large(large))
    return [*artifacts, *_verdicts(searches, large)]


def _searched(searches: Sequence[Record]) -> list[Artifact]:
    rates = success_rates(searches, "method", "snr")
    groups = grouped(searches, "snr", "method")
    snrs = sorted({snr for snr, _ in groups})
    n = searches[0]["n"]
    rows = []
    for snr in snrs:
        row: dict[str, Any] = {"snr": snr}
        for name in ("merit", "spa"):
            group = groups.get((snr, name), [])
            row[f"{name} rate"] = rate_cell(rates.get((name, snr)))
            row[f"{name} found"] = Measured(mean_and_spread([record["found"] for record in group])[0])
        merit = groups.get((snr, "merit"), [])
        row["margin"] = Measured(*mean_and_spread([record["margin"] for record in merit]))
        row["ms"] = Measured(mean_and_spread([1000 * record["iteration_s"] for record in merit])[0])
        rows.append(row)
    columns = {"snr": "SNR (dB)", "merit rate": "MERIT", "spa rate": "SPA", "merit found": "anchors of MERIT"}
    columns |= {"spa found": "anchors of SPA", "margin": "margin of MERIT", "ms": "ms per iteration"}
    curves = {
        METHODS[name]: {snr: rate for (method, snr), rate in rates.items() if method == name}
        for name in ("merit", "spa")
    }
    return [
        Figure(
            "search",
            f"Success rate against the signal-to-noise ratio, N = {n}. Bars: exact 95% intervals.",
            [rate_curves(f"N = {n}", "SNR (dB)", curves)],
            n_columns=1,
        ),
        Table(f"N = {n}: success rates, anchors found, MERIT's margin and time.", columns, rows, 3),
    ]


def _large(large: Sequence[Record]) -> Table:
    columns = {
        "n": "N", "found_snr": "SNR (dB)", "method": "method", "found": "anchors", "n_iter": "iterations",
        "iteration_s": "s per iteration", "total_s": "s in all", "gap": "duality gap", "margin": "margin",
        "device_mb": "GPU (MB)", "host_mb": "host (MB)", "device": "device",
    }  # fmt: skip
    rows = [
        {key: record.get(key) for key in columns}
        | {
            "method": METHODS[record["method"]],
            "found": f"{record['found']} of {record['n_anchors']}",
            "total_s": f"{record['total_s']:.4g}" + (" (resumed)" if record.get("resumed") else ""),
        }
        for record in large
    ]
    return Table("The large runs. Memory is the peak during the selection.", columns, rows, 4)


def _verdicts(searches: Sequence[Record], large: Sequence[Record]) -> list[Verdict]:
    million = [record for record in large if record["n"] == MILLION]
    times = [
        record["iteration_s"]
        for record in searches
        if record["method"] == "merit" and record["n"] == SEARCH_SIZE
    ]
    winners = {
        record["step"]: record for record in million if record["method"] == "merit" and record["success"]
    }
    rival = {record["step"]: record for record in million if record["method"] == "spa"}
    best = min(winners, default=None)
    detail = "no run"
    if best is not None:
        detail = f"{winners[best]['found_snr']:g} dB, SPA found {rival[best]['found']}"
    elif million:
        detail = "MERIT found " + ", ".join(str(r["found"]) for r in million if r["method"] == "merit")
    lengths = [
        record["iterations_s"] if record["resumed"] else record["total_s"]
        for record in million
        if record["method"] == "merit"
    ]
    return [
        Verdict(
            "MERIT finds all 40 anchors among a million points at a noise level at which SPA does not",
            None if not million else best is not None and rival[best]["success"] == 0,
            detail,
        ),
        Verdict(
            f"100 iterations on a million points take at most {TOTAL_GOAL / 60:g} minutes",
            max(lengths) <= TOTAL_GOAL if lengths else None,
            ", ".join(f"{length:.0f} s" for length in lengths) or "no run",
        ),
        Verdict(
            f"an iteration on {SEARCH_SIZE} points takes at most {1000 * ITERATION_GOAL:g} ms",
            sorted(times)[len(times) // 2] <= ITERATION_GOAL if times else None,
            f"median {1000 * sorted(times)[len(times) // 2]:.1f} ms" if times else "no run",
        ),
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["n"]) / 1e5 * (1 if setting["stage"] == "search" else 5),
    in_stages=True,
    parallel=False,
    lacks=lambda quick: (
        None
        if quick or has_cuda()
        else "a million points need an NVIDIA GPU that PyTorch can use (N^2 operations per iteration: "
        "minutes there, most of a day on a CPU). Use --quick for a small version."
    ),
)
