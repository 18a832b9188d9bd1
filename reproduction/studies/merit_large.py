"""MERIT by its plain default on a hundred thousand and on a million points, on a GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.device import describe_device, has_cuda, to_device, use_device
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.planted_anchors import n_found, planted

NAME = "studies/merit-large"
MILLION = 1_000_000
FACTORS = (1.0, 3.0, 0.3)
"""Multiples of the automatic weight; 1 is the default."""
CASES = (("uniform", MILLION, 1), ("near-duplicates", 100_000, 1), ("uniform", 100_000, 1))
TIME_LIMIT = 240.0  # seconds that a million points may take


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw."""
    common = {"m": 50, "k": 40, "snr": 10.5}
    if quick:
        return [{"kind": "uniform", "n": 200, "draw": 0} | common | {"m": 20, "k": 5}]
    found = [
        {"kind": kind, "n": n, "draw": draw} | common for kind, n, draws in CASES for draw in range(draws)
    ]
    # The largest first.
    return sorted(found, key=lambda setting: -setting["n"])


def run(setting: Setting) -> list[dict[str, Any]]:
    """Select anchors by the default, by multiples of its weight, and by greedy methods."""
    n, k = setting["n"], setting["k"]
    # Draws of the stream that reports.
    points = planted(
        setting["kind"], n, setting["m"], k, setting["snr"], setting["draw"], stream=1, dtype=np.float32
    )
    with use_device("cuda" if has_cuda() else None):
        X = to_device(points.X)
        # Kernels are compiled and loaded before the clock starts.
        select_anchors(X[:2000], k)
        records, lam = [], None
        for factor in FACTORS:
            params: dict[str, Any] = {} if lam is None else {"lam": factor * lam}
            started = time.perf_counter()
            result = select_anchors(X, k, method_params=params)
            seconds = time.perf_counter() - started
            lam = result.lam if lam is None else lam
            assert result.gap is not None
            assert result.objective
            records.append(
                {
                    "method": f"x {factor:g}",
                    "found": n_found(points, result.anchors),
                    "seconds": seconds,
                    "gap": result.gap / result.objective,
                    "n_iter": result.n_iter,
                }
            )
        # SNPA projects all points onto a growing hull, which takes minutes for a million.
        for method in ("spa", "snpa") if n < MILLION else ("spa",):
            started = time.perf_counter()
            anchors = select_anchors(X, k, method=method).anchors
            records.append(
                {
                    "method": method,
                    "found": n_found(points, anchors),
                    "seconds": time.perf_counter() - started,
                }
            )
        device = describe_device() or "NumPy"
    return [{"device": device} | record for record in records]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return anchors, times and gaps, and whether the default is enough."""
    columns = {
        "kind": "kind",
        "n": "N",
        "method": "method",
        "found": "anchors found",
        "seconds": "seconds",
        "gap": "gap / objective",
        "n_iter": "iterations",
    }
    rows = []
    for (kind, n, method), group in grouped(records, "kind", "n", "method").items():
        cells = {
            key: Measured(*mean_and_spread([record.get(key) for record in group]))
            for key in ("found", "seconds", "gap", "n_iter")
        }
        rows.append({"kind": kind, "n": n, "method": _title(method)} | cells)
    devices = sorted({str(record["device"]) for record in records})
    shown: list[Artifact] = [
        Paragraph(f"40 anchors in 50 dimensions, 10.5 dB, float32, on {', '.join(devices)}."),
        Table("Means over draws; the default has the automatic weight times 1.", columns, rows, 3),
    ]
    return [*shown, *_verdicts(records)]


def _title(method: str) -> str:
    names = {"x 1": "MERIT, default", "spa": "SPA", "snpa": "SNPA"}
    return names.get(method, f"MERIT, weight {method}")


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    large = [record for record in records if record["n"] == MILLION]
    own = [record for record in large if record["method"] == "x 1"]
    claim = "a million points by the plain default take at most 4 minutes, to a gap of 1%"
    if not own or "NumPy" in {record["device"] for record in own}:
        verdicts = [Verdict(claim, None, "needs a GPU")]
    else:
        seconds, gap = max(record["seconds"] for record in own), max(record["gap"] for record in own)
        met = seconds <= TIME_LIMIT and gap <= 0.01
        verdicts = [Verdict(claim, met, f"{seconds:.0f} s, gap {100 * gap:.2f}%")]
    behind = []
    for (kind, n, draw), group in grouped(records, "kind", "n", "draw").items():
        found = {record["method"]: record["found"] for record in group}
        best = max(found, key=lambda method: found[method])
        if found.get("x 1", 0) < found[best]:
            behind.append(
                f"{kind}, N = {n}, draw {draw}: {found['x 1']} against {found[best]} ({_title(best)})"
            )
    decided = any(record["n"] == MILLION for record in records)
    verdicts.append(
        Verdict(
            "the default finds as many anchors as any of the weights and greedy methods",
            not behind if decided else None,
            "; ".join(behind) or "in every draw",
        )
    )
    return verdicts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["n"]),
    parallel=False,
)
