"""MERIT by its plain default on a GPU: a hundred thousand and a million points where SPA fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nonneg.certificates.certificate import Verdict as Said
from nonneg.datasets import separable_dirichlet
from nonneg.metrics.selection import anchors_found
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.device import describe_device, has_cuda, to_device, use_device
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "studies/merit-million"
FACTORS = (1 / 3, 3.0)
"""Other weights, in multiples of the automatic one, of which none may find more anchors than the default."""
MOST_SECONDS = 240.0
MILLION = 1_000_000


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per number of points, draw and method."""
    small, large = (200, 400) if quick else (100_000, MILLION)
    methods = [
        "spa",
        "default",
        "early-stopped",
        "published",
        *(f"default x {factor:.3g}" for factor in FACTORS),
    ]
    common = {"n_features": 50, "n_anchors": 40, "snr": 10.5}
    cases = [{"n": large, "draw": 0, "method": name} for name in ("spa", "default")]
    cases += [
        {"n": small, "draw": draw, "method": name} for draw in range(1 if quick else 2) for name in methods
    ]
    return [case | common for case in cases]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Select the anchors of one draw."""
    with use_device("cuda" if has_cuda() else None):
        points = separable_dirichlet(
            setting["n"], setting["n_features"], setting["n_anchors"], snr=setting["snr"],
            rng=20240601 + setting["draw"], dtype="float32",
        )  # fmt: skip
        X, k, name = to_device(points.X), setting["n_anchors"], setting["method"]
        _select(to_device(points.X[:200]), min(k, 10), name)  # compiles
        started = time.perf_counter()
        result = _select(X, k, name)
        seconds = time.perf_counter() - started
        return [
            {
                "found": round(k * anchors_found(points.anchors, result.anchors)),
                "s": round(seconds, 2),
                "n_iter": result.n_iter,
                "gap": None if result.gap is None else round(result.gap / (result.objective or 1.0), 5),
                "lam": result.lam,
                "returned": result.facts.get("choice"),
                "warned": [s.name for s in result.certificate if s.verdict is Said.FAILS],
                "device": describe_device() or "NumPy",
            }
        ]


def _select(X: Any, k: int, name: str) -> Any:
    if name == "spa":
        return select_anchors(X, k, method="spa")
    if name == "default":
        return select_anchors(X, k)
    if name == "early-stopped":
        return select_anchors(X, k, method_params={"steps": "open-loop"})
    if name == "published":
        return select_anchors(
            X, k, method_params={"steps": "open-loop", "lam": "paper", "choice": "row-maxima"}
        )
    # One iteration tells the automatic weight.
    lam = select_anchors(X, k, max_iter=1).lam
    return select_anchors(X, k, method_params={"lam": float(name.rpartition(" ")[2]) * lam})


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the table and the claims."""
    columns = {
        "n": "N", "draw": "draw", "method": "method", "found": "anchors", "s": "s", "n_iter": "iterations",
        "gap": "relative gap", "returned": "choice", "warned": "warnings", "device": "device",
    }  # fmt: skip
    rows = [
        {key: record.get(key) for key in columns}
        | {
            "found": f"{record['found']} of {record['n_anchors']}",
            "warned": ", ".join(record["warned"]) if record["method"] != "spa" else None,
        }
        for record in records
    ]
    worse = []
    for (n, draw), group in grouped(records, "n", "draw").items():
        found = {record["method"]: record["found"] for record in group}
        if "default" in found and found["default"] < max(found.values()):
            worse.append(f"N = {n}, draw {draw}: {found['default']} against {max(found.values())}")
    million = [r for r in records if r["n"] == MILLION and r["method"] == "default"]
    return [
        Table("Anchors found by the defaults and by other weights.", columns, rows, 4),
        Verdict(
            "the default finds all anchors that any of the weights and methods finds",
            None if not million else not worse,
            "; ".join(worse) or f"{len(records)} runs",
        ),
        Verdict(
            f"a million points take at most {MOST_SECONDS / 60:g} minutes, and all anchors are found",
            None if not million else all(
                r["s"] <= MOST_SECONDS and r["found"] == r["n_anchors"] for r in million
            ),
            ", ".join(f"{r['found']} of {r['n_anchors']} in {r['s']:.0f} s" for r in million) or "no run",
        ),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: float(setting["n"]) / 1e5,
    parallel=False,
    lacks=lambda quick: (
        None if quick or has_cuda() else "a million points need an NVIDIA GPU that PyTorch can use."
    ),
)
