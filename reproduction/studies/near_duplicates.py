"""Vertices of which the data have many near-duplicates: convex smooth separable NMF beside other methods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg import select_anchors
from nonneg._typing import FloatArray
from nonneg.separable.result import SelectionResult
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "studies/near-duplicates"
N_CHOOSING, N_REPORTING, N_BLOCK = 10, 50, 10
FIRST_CHOOSING_SEED, FIRST_REPORTING_SEED = 10_000, 20_000
N_FEATURES = 30
NOISES = (0.01, 0.1, 0.3, 0.6)
# Vertices, copies of each on average, mixtures, and the Dirichlet parameter of their weights.
CHOOSING: dict[str, dict[str, Any]] = {
    "10 copies": {"k": 5, "copies": 10, "n_mixed": 50, "alpha": 0.1},
    "5 copies": {"k": 10, "copies": 5, "n_mixed": 150, "alpha": 0.1},
    "4 copies, no other pure sample": {"k": 3, "copies": 4, "n_mixed": 30, "alpha": 1.0},
}
"""Data on which the constants of css-nmf were chosen; the first is Test 1 of its authors."""
REPORTING: dict[str, dict[str, Any]] = {
    "12 copies": {"k": 8, "copies": 12, "n_mixed": 100, "alpha": 0.3},
    "8 copies, no other pure sample": {"k": 4, "copies": 8, "n_mixed": 60, "alpha": 1.0},
    "no copies": {"k": 6, "copies": 1, "n_mixed": 120, "alpha": 0.5},
}
"""Data on which it is judged."""
QUICK = {"quick": {"k": 3, "copies": 5, "n_mixed": 20, "alpha": 1.0}}
GROUPS = {"choosing": CHOOSING, "reporting": REPORTING, "quick": QUICK}
# Weights as fractions of ||X||^2.
WEIGHTS = (1e-3, 1e-2, 1e-1)
METHODS = ("css-nmf", "merit", "fast-gradient", "spa", "snpa", "smoothed-spa", "pp-spa")
WITH_COPIES = ("12 copies", "8 copies, no other pure sample")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return blocks of draws."""
    if quick:
        return [{"group": "quick", "data": "quick", "noise": 0.2, "seeds": [0, 1]}]
    return [
        {"group": group, "data": data, "noise": noise, "seeds": list(range(start, start + N_BLOCK))}
        for group, first, n_draws in (
            ("choosing", FIRST_CHOOSING_SEED, N_CHOOSING),
            ("reporting", FIRST_REPORTING_SEED, N_REPORTING),
        )
        for start in range(first, first + n_draws, N_BLOCK)
        for data in GROUPS[group]
        for noise in NOISES
    ]


def draw(kind: dict[str, Any], noise: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return samples whose features sum to one, and the vertices."""
    rng = np.random.default_rng(seed)
    k = kind["k"]
    W = rng.random((k, N_FEATURES))
    W /= W.sum(axis=1, keepdims=True)
    # Every vertex at least once.
    labels = np.concatenate([np.arange(k), rng.integers(k, size=k * (kind["copies"] - 1))])
    H = np.vstack([np.eye(k)[labels], rng.dirichlet(np.full(k, kind["alpha"]), size=kind["n_mixed"])])
    X = H @ W
    disturbed = rng.standard_normal(X.shape)
    X = np.maximum(X + noise * np.linalg.norm(X) / np.linalg.norm(disturbed) * disturbed, 0.0)
    return X / X.sum(axis=1, keepdims=True), W


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run all methods on some draws."""
    kind = GROUPS[setting["group"]][setting["data"]]
    records = []
    for seed in setting["seeds"]:
        X, W = draw(kind, setting["noise"], seed)
        for method in METHODS:
            records.append({"seed": seed, "candidate": method, **_measured(X, W, method, {})})
        for weight in WEIGHTS if setting["group"] == "choosing" else ():
            params = {"lam": weight * float(np.sum(X * X))}
            name = f"css-nmf, weight {weight:g}"
            records.append({"seed": seed, "candidate": name, **_measured(X, W, "css-nmf", params)})
    return records


def _measured(X: FloatArray, W: FloatArray, method: str, params: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    found = select_anchors(X, len(W), method=method, method_params=params, rng=0)
    seconds = round(time.perf_counter() - started, 4)
    vertices = X[found.anchors] if found.components is None else np.asarray(found.components)
    table = np.linalg.norm(vertices[:, None] - W[None], axis=2)
    apart = table[linear_sum_assignment(table)]
    error = float(np.linalg.norm(apart) / np.linalg.norm(W))
    return {"error": round(error, 6), "s": seconds, **_bound(found, float(apart.max()))}


def _bound(found: SelectionResult, farthest: float) -> dict[str, Any]:
    if "vertex-error" not in found.certificate:
        return {}
    statement = found.certificate["vertex-error"]
    true = statement.number is not None and farthest <= statement.number
    return {"holds": statement.holds, "true": true}


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the comparison."""
    shown: list[Artifact] = []
    for group, title in (
        ("choosing", "Data used to choose the constants"),
        ("reporting", "Test data"),
        ("quick", "Quick setting"),
    ):
        some = [record for record in records if record["group"] == group]
        for (data,), part in grouped(some, "data").items():
            shown.append(_table(part, f"{title}, {data}"))
    judged = [record for record in records if record["group"] == "reporting"]
    return [*shown, Paragraph(_bound_sentence(records)), *_verdicts(judged)]


def _table(records: Sequence[Record], title: str) -> Table:
    noises = sorted({record["noise"] for record in records})
    groups = grouped(records, "candidate", "noise")
    rows = []
    for name in dict.fromkeys(record["candidate"] for record in records):
        row: dict[str, Any] = {"candidate": name}
        for noise in noises:
            row[str(noise)] = Measured(*mean_and_spread([r["error"] for r in groups.get((name, noise), [])]))
        rows.append(row)
    columns = {"candidate": "method"} | {str(noise): f"noise {noise:g}" for noise in noises}
    return Table(f"{title}: relative error of the vertices.", columns, rows, 3)


def _bound_sentence(records: Sequence[Record]) -> str:
    stated = [record for record in records if "holds" in record]
    holds = [record for record in stated if record["holds"]]
    return (
        "The certificate of css-nmf bounds the error of its vertices: the bound was below half the distance "
        f"of a vertex from the others in {len(holds)} of {len(stated)} fits, and the largest error was below "
        f"the bound in {sum(record['true'] for record in stated)}."
    )


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    groups = grouped([record for record in records if record["data"] in WITH_COPIES], "data", "noise")
    whole = len(groups) == len(WITH_COPIES) * len(NOISES) and all(
        len([r for r in some if r["candidate"] == "css-nmf"]) == N_REPORTING for some in groups.values()
    )
    verdicts = []
    for other in ("fast-gradient", "merit", "spa"):
        worse, shown = [], []
        for (data, noise), some in groups.items():
            means = {
                name: mean_and_spread([r["error"] for r in some if r["candidate"] == name])[0] or 0.0
                for name in ("css-nmf", other)
            }
            shown.append(f"{means['css-nmf']:.3f} ({means[other]:.3f})")
            if means["css-nmf"] > means[other]:
                worse.append(f"{data}, noise {noise:g}")
        verdicts.append(
            Verdict(
                f"With near-duplicates, css-nmf is nearer to the vertices than {other} at every noise level",
                not worse if whole else None,
                f"{', '.join(shown)}" + (f"; not at {'; '.join(worse)}" if worse else ""),
            )
        )
    return verdicts


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize)
