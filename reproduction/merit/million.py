"""A million points: MERIT at the lowest signal-to-noise ratio at which successive projections fail."""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.data import as_data_matrix
from nonneg.datasets import SeparableData
from nonneg.metrics.selection import anchors_found
from nonneg.separable.merit.penalty_weight import balanced_weight
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from reproduction.device import described_device, has_cuda, placed, use_device
from reproduction.experiment import Experiment, Setting, Workspace
from reproduction.merit.anchor_trials import GAP, MERIT_ITERATIONS, MU, draw_points
from reproduction.merit.million_exhibits import (
    SHOWS,
    failed_above,
    lowest_ratio,
    shown_before,
    summarize,
)
from reproduction.merit.peak_memory import resident_peak
from reproduction.registry import TITLES

NAME = "merit/million"
RATIOS = tuple(range(8, 16))
WEIGHED_LIKE = 1000
"""The weight of the row sparsity is that of so many points at the same noise."""
N_DRAWS = 3
STEPS = (0, 1, 2, 3)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: searches at every ratio, then the large runs."""
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
    X = placed(points.X)
    device = {"device": described_device() or "NumPy"}
    k = setting["n_anchors"]
    _, spa_record = _timed(lambda: select_anchors(X, k, method="spa"), points)
    resumed = checkpoint is not None and checkpoint.is_dir()
    merit, record = _timed(
        lambda: select_anchors(
            X,
            k,
            method="merit",
            lam=_weight(X, k),
            mu=MU,
            max_iter=MERIT_ITERATIONS,
            tol=GAP["dirichlet"],
            recovery=False,
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
    return balanced_weight(as_data_matrix(X), k).lam * min(1.0, math.sqrt(WEIGHED_LIKE / X.shape[0]))


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


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    SHOWS,
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["n"]) / 1e5 * (1 if setting["stage"] == "search" else 5),
    in_stages=True,
    side_by_side=False,
    lacks=lambda quick: (
        None
        if quick or has_cuda()
        else "a million points need an NVIDIA GPU that PyTorch can use (N^2 operations an iteration: minutes "
        "there, most of a day on a processor). Run it with --quick for a small copy."
    ),
)
