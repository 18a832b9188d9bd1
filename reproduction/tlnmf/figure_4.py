"""Figure 4: the objective against iterations, for both methods from the same initializations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg.transforms import FrameCovariances, frame_covariances, learn_transform
from nonneg.transforms.initialization import initial_state
from reproduction.artifacts import Artifact, Curves, Figure, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES
from reproduction.tlnmf.both_methods import KINDS, SEED, default_run, drawn_frames, parameters

NAME = "tlnmf/figure-4"
METHODS = {"tl": "TL-NMF", "jd": "JD+NMF"}
DEFAULT = "default"
S = 100
GRID = {
    "gcm": (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000),
    "music": (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100),
}
N_RESTARTS = {"gcm": 20, "music": 5}
# A run has arrived when this share of its decrease is left.
LEFT = 1e-3
# Speeds are alike where they differ by less than this factor.
ALIKE = 2.0


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per data type and restart."""
    if quick:
        return [
            {"kind": "music", "restart": 0, "grid": [1, 2]},
            *({"kind": "gcm", "restart": start, "grid": [1, 3, 10, 30, 100]} for start in range(2)),
        ]
    return [
        {"kind": kind, "restart": start, "grid": list(GRID[kind])} | method
        for method in ({}, {"method": DEFAULT})
        for kind in ("gcm", "music")
        for start in range(N_RESTARTS[kind])
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run both methods from one initialization, or what `TransformNMF` does by default."""
    kind, grid = setting["kind"], setting["grid"]
    if setting.get("method") == DEFAULT:
        model = default_run(kind, S, 0, seed=setting["restart"])
        assert model.result_ is not None
        return [{"choice": model.choice_.name, "n_iter": model.n_iter_, "last": model.result_.objective}]
    given = parameters(kind)
    data = frame_covariances(drawn_frames(kind, S, 0))
    rng = np.random.SeedSequence([SEED, setting["restart"], 4])
    start = initial_state(data, given["K"], init=None, n_init=1, rng=rng)
    assert start.components is not None
    assert start.activations is not None
    init = start.transform[0], start.components[0], start.activations[0]
    options: dict[str, Any] = {
        "eps0": given["eps0"],
        "init": init,
        "tol": 0.0,
        "method_params": {"n_nmf_updates": given["J_NMF"], "n_rotation_updates": given["J_TL"]},
    }
    tl = learn_transform(data, given["K"], method="tl", max_iter=max(grid), **options)
    curve = list(tl.history["C"])
    jd = [learn_transform(data, given["K"], method="jd", max_iter=J, **options).objective for J in grid]
    first = _objective(data, init, given["eps0"])
    return [
        {"method": "tl", "first": first, "C": [curve[min(J, len(curve)) - 1] for J in grid]},
        {"method": "jd", "first": first, "C": jd},
    ]


def _objective(data: FrameCovariances, init: Any, eps0: float) -> float:
    transform, components, activations = init
    model = activations @ components + eps0
    return float(((data.variances(transform) + eps0) / model + np.log(model)).sum())


def arrival(record: Record) -> int:
    """Return the first J of the grid at which hardly any of the decrease is left."""
    last = record["C"][-1]
    allowed = last + LEFT * (record["first"] - last)
    return next(J for J, value in zip(record["grid"], record["C"], strict=True) if value <= allowed)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, when runs arrive, and the claims."""
    panels, rows = [], []
    arrivals: dict[tuple[str, str], list[int]] = {}
    for (kind,), members in grouped(records, "kind").items():
        defaults = [record for record in members if record["method"] == DEFAULT]
        members = [record for record in members if record["method"] != DEFAULT]
        floor = min(min(record["C"]) for record in members)
        series = []
        for method, label in METHODS.items():
            of = [record for record in members if record["method"] == method]
            arrivals[kind, method] = [arrival(record) for record in of]
            grid = [float(J) for J in of[0]["grid"]]
            medians = np.median([record["C"] for record in of], axis=0)
            series.append(Series(label, grid, [float(value - floor) or None for value in medians]))
            last = [record["C"][-1] for record in of]
            rows.append(
                {
                    "kind": KINDS[kind],
                    "method": label,
                    "n_init": len(of),
                    "J": float(np.median(arrivals[kind, method])),
                    "best": min(last),
                    "median": float(np.median(last)),
                }
            )
        if defaults:
            last = [record["last"] for record in defaults]
            rows.append(
                {
                    "kind": KINDS[kind],
                    "method": DEFAULT,
                    "n_init": len(last),
                    "J": float(np.median([record["n_iter"] for record in defaults])),
                    "best": min(last),
                    "median": float(np.median(last)),
                }
            )
        title = f"{KINDS[kind]}: median of C minus the smallest C found"
        panels.append(Curves(title, "J", "C - least C", series, x_log=True, y_log=True))
    columns = {
        "kind": "data",
        "method": "method",
        "n_init": "restarts",
        "J": "median J at convergence (default: at its end)",
        "best": "smallest final C",
        "median": "median final C",
    }
    return [
        Figure("objective", f"C at S = {S} against J.", panels),
        Table("Iterations to convergence, and final values.", columns, rows, 7),
        *_verdicts(arrivals, records),
    ]


def _verdicts(arrivals: dict[tuple[str, str], list[int]], records: Sequence[Record]) -> list[Verdict]:
    found = []
    for kind, claim in (
        ("gcm", "GCM: JD+NMF converges in fewer iterations than TL-NMF"),
        ("music", "music notes: both converge in about the same number of iterations"),
    ):
        full = all(tuple(r["grid"]) == GRID[kind] for r in records if r["kind"] == kind)
        if (kind, "tl") not in arrivals:
            found.append(Verdict(claim, None, ""))
            continue
        tl, jd = (float(np.median(arrivals[kind, method])) for method in METHODS)
        met = jd < tl if kind == "gcm" else max(tl / jd, jd / tl) <= ALIKE
        detail = f"medians: JD+NMF {jd:g}, TL-NMF {tl:g}"
        found.append(Verdict(claim, met if full else None, detail))
    return found


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    return sum(setting["grid"]) * (1.0 if setting["kind"] == "gcm" else 60.0)


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
