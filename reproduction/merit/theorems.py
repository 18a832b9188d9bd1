"""Theorems 1 and 2 and Fact 1: which points the steps of MERIT(0) enter, iterate by iterate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.datasets import SeparableData, separable_dirichlet
from nonneg.separable.select import select_anchors
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "merit/theorems"
NOISES = (None, 120, 100, 80, 60, 40, 20)
"""Signal-to-noise ratios in dB; None is no noise."""
N_DRAWS, N_ITER = 20, 300
SIZE = {"n": 120, "n_features": 30, "n_anchors": 6}
# A column whose residual is this small, relative to its point, is at an optimal solution up to rounding.
AT_OPTIMUM = 1e-12


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per noise level."""
    size = SIZE | ({"n_draws": 2, "n_iter": 60} if quick else {"n_draws": N_DRAWS, "n_iter": N_ITER})
    return [{"snr": snr} | size for snr in ((None, 100) if quick else NOISES)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Follow the iterates of all draws."""
    return [{"draw": draw, **_one_draw(setting, draw)} for draw in range(setting["n_draws"])]


def _one_draw(setting: Setting, draw: int) -> dict[str, Any]:
    seed = [setting["n"], 0 if setting["snr"] is None else setting["snr"], draw]
    points = separable_dirichlet(
        setting["n"],
        setting["n_features"],
        setting["n_anchors"],
        snr=setting["snr"],
        rng=np.random.default_rng(seed),
    )
    iterates = _iterates(points, setting["n_iter"])
    record = _theorem_1(iterates) if setting["snr"] is None else _theorem_2(points, iterates)
    options = {"lam": 0.0, "recovery": False}
    k, n_iter = setting["n_anchors"], setting["n_iter"]
    inside = np.zeros(setting["n"], dtype=bool)
    inside[points.anchors] = True
    found = select_anchors(points.X, k, method="merit", method_params=options, max_iter=n_iter, tol=0.0)
    assert found.coefficients is not None
    C = found.coefficients.toarray()
    record["all outside"] = int(np.sum(np.any(C[~inside] > 0, axis=0)))
    record["all found"] = bool(set(found.anchors) == set(points.anchors))
    return record


def _iterates(points: SeparableData, n_iter: int) -> dict[str, FloatArray]:
    """Run the published steps as printed, and return what the theorems speak of, by iterate and column."""
    X, n = points.X, len(points.X)
    anchor = np.zeros(n, dtype=bool)
    anchor[points.anchors] = True
    C = np.zeros((n, n))  # column l writes point l, as in the paper
    gram = points.H @ points.H.T
    residuals, outside, gaps, errors = [], [], [], []
    for t in range(n_iter):
        R = C.T @ X - X
        entering = np.argmin(X @ R.T, axis=0)  # the lowest index of equal ones
        apart = C.T @ points.W - points.W
        length = np.linalg.norm(apart, axis=1)
        q = np.sort(apart @ gram, axis=1)
        residuals.append(np.linalg.norm(R, axis=1))
        outside.append(~anchor[entering])
        gaps.append((q[:, 1] - q[:, 0]) / np.maximum(length, np.finfo(float).tiny))
        errors.append(length)
        size = 2.0 / (t + 2)
        C *= 1.0 - size
        C[entering, np.arange(n)] += size
    named = {"residual": residuals, "outside": outside, "gap": gaps, "error": errors}
    return {name: np.array(values) for name, values in named.items()} | {"norms": np.linalg.norm(X, axis=1)}


def _theorem_1(iterates: dict[str, FloatArray]) -> dict[str, Any]:
    before = np.logical_and.accumulate(iterates["residual"] > AT_OPTIMUM * iterates["norms"], axis=0)
    outside = iterates["outside"].astype(bool)
    return {
        "steps": int(np.sum(before)),
        "outside before": int(np.sum(outside & before)),
        "outside after": int(np.sum(np.any(outside & ~before, axis=0))),
        "at optimum": int(np.sum(~np.all(before, axis=0))),
        "smallest gap": float(f"{np.min(iterates['gap'][before]):.4g}"),
    }


def _theorem_2(points: SeparableData, iterates: dict[str, FloatArray]) -> dict[str, Any]:
    """Look for the smallest eta with which (16) and (17) hold, and check what follows from them."""
    singular = np.linalg.svd(points.H, compute_uv=False)
    gamma = float(np.max(np.linalg.norm(points.H, axis=1)))
    delta = float(np.max(np.linalg.norm(points.X - points.W @ points.H, axis=1)))
    others = np.delete(points.W, points.anchors, axis=0)
    room = 1.0 - float(np.max(others))
    found: dict[str, Any] = {"delta": float(f"{delta:.4g}"), "applies": False}
    for eta in np.geomspace(delta, 0.5 * float(np.max(iterates["norms"])), 200):
        # A column is left alone from its first small residual on.
        before = np.logical_and.accumulate(iterates["residual"] > eta + 2.0 * delta, axis=0)
        if np.any(before[-1]) or not np.any(before):
            continue
        nu = float(np.min(iterates["gap"][before]))
        limit = math.sqrt(gamma**2 + nu * eta * room / (4.0 * float(singular[0]))) - gamma
        if delta > limit:
            continue
        ends = np.sum(before, axis=0)
        error = float(np.max(iterates["error"][ends, np.arange(len(ends))]))
        bound = (eta + 4.0 * delta) / float(singular[-1])
        return found | {
            "applies": True,
            "eta": float(f"{eta:.4g}"),
            "nu": float(f"{nu:.4g}"),
            "outside before": int(np.sum(iterates["outside"].astype(bool) & before)),
            "mixture error": float(f"{error:.4g}"),
            "bound": float(f"{bound:.4g}"),
        }
    return found


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return one table per theorem, and the claims."""
    clean = [record for record in records if record["snr"] is None]
    noisy = [record for record in records if record["snr"] is not None]
    artifacts: list[Artifact] = []
    if clean:
        artifacts.append(_clean_table(clean))
    if noisy:
        artifacts.append(_noisy_table(noisy))
    return [*artifacts, *_verdicts(clean, noisy)]


def _clean_table(clean: Sequence[Record]) -> Table:
    columns = {
        "draw": "draw",
        "steps": "steps of columns before their optimum",
        "outside before": "outside K",
        "smallest gap": "smallest gap of (16)",
        "at optimum": "columns that reach it",
        "outside after": "of them with steps outside K afterwards",
        "all outside": "columns of C with such entries, as published",
    }
    return Table("Without noise: Theorem 1 and Fact 1.", columns, list(clean), 3)


def _noisy_table(noisy: Sequence[Record]) -> Table:
    rows = []
    for (snr,), group in sorted(grouped(noisy, "snr").items(), reverse=True):
        within = [record for record in group if record["applies"]]
        row: dict[str, Any] = {"snr": snr, "applies": f"{len(within)} of {len(group)}"}
        row["found"] = f"{sum(record['all found'] for record in group)} of {len(group)}"
        if within:
            row |= {
                "outside": sum(record["outside before"] for record in within),
                "nu": min(record["nu"] for record in within),
                "eta": max(record["eta"] for record in within),
                "error": max(record["mixture error"] for record in within),
                "share": max(record["mixture error"] / record["bound"] for record in within),
            }
        rows.append(row)
    columns = {
        "snr": "SNR (dB)",
        "applies": "draws to which Theorem 2 applies",
        "outside": "steps outside K until it ends",
        "nu": "smallest nu of (16)",
        "eta": "largest eta",
        "error": "largest mixture error",
        "share": "largest fraction of its bound",
        "found": "anchors found after all iterations",
    }
    return Table("With noise: Theorem 2 over all iterates.", columns, rows, 3)


def _verdicts(clean: Sequence[Record], noisy: Sequence[Record]) -> list[Verdict]:
    whole = len(clean) >= N_DRAWS
    steps = sum(record["steps"] for record in clean)
    outside = sum(record["outside before"] for record in clean)
    gap = min((record["smallest gap"] for record in clean), default=0.0)
    after = sum(record["outside after"] for record in clean)
    applies = [record for record in noisy if record["applies"]]
    wrong = sum(record["outside before"] > 0 for record in applies)
    far = sum(record["mixture error"] > record["bound"] for record in applies)
    enough = whole and bool(applies)
    return [
        Verdict(
            "Theorem 1: without noise no step of a column leaves K before the column is optimal",
            outside == 0 if whole else None,
            f"{outside} of {steps} steps",
        ),
        Verdict(
            "Fact 1: the two smallest elements of q are never equal, for any column before its optimum",
            gap > 0 if whole else None,
            f"the smallest gap of (16) is {gap:.3g}",
        ),
        Verdict(
            "after its optimum a column may leave K, as the published loop continues with all columns",
            after > 0 if whole else None,
            f"{after} columns",
        ),
        Verdict(
            "Theorem 2: where (16) and (17) hold over the iterates, no step leaves K until the run ends",
            wrong == 0 if enough else None,
            f"{wrong} of {len(applies)} draws",
        ),
        Verdict(
            "Theorem 2: there the mixtures at the end are within (eta + 4 delta) / sigma_min(W)",
            far == 0 if enough else None,
            f"{far} of {len(applies)} draws are not",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize)
