"""Draws of the paper's synthetic data, the methods on them, and how well each found the anchors."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import IntArray
from nonneg.data import as_data_matrix
from nonneg.datasets import SeparableData, separable_dirichlet
from nonneg.metrics import anchors_found
from nonneg.separable.merit import published_weight
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.separable.weights import anchor_weights
from reproduction.data import middle_points
from reproduction.device import to_device
from reproduction.experiment import Setting
from reproduction.scores import mean_removed_spectral_angle, relative_approximation, success_rate

METHODS = {
    "merit": "MERIT", "merit-0": "MERIT(0)", "fast-gradient": "FastGradient", "spa": "SPA",
    "default": "default (propose and judge)",
}  # fmt: skip
"""Our names of the methods -> the paper's, and the default of the library beside them."""
MU, MERIT_ITERATIONS, FAST_GRADIENT_ITERATIONS = 1e-5, 100, 150
# The authors end on a duality gap of 1e-5, and never in the setting of middle points.
GAP = {"dirichlet": 1e-5, "middle": 0.0}
_KINDS = {"dirichlet": 1, "middle": 2}


def blocks(n_draws: int, size: int) -> list[dict[str, int]]:
    """Split the draws into batches; an interrupted batch is repeated."""
    return [{"first_draw": first, "n_draws": min(size, n_draws - first)} for first in range(0, n_draws, size)]


def draw_points(setting: Setting, draw: int) -> SeparableData:
    """Draw data."""
    rng = np.random.default_rng(_seeds(setting, draw)[0])
    if setting["data"] == "middle":
        return middle_points(setting["n_features"], setting["n_anchors"], snr=setting["snr"], rng=rng)
    return separable_dirichlet(
        setting["n"],
        setting["n_features"],
        setting["n_anchors"],
        snr=setting["snr"],
        rng=rng,
        dtype=setting.get("dtype", "float64"),
    )


def _seeds(setting: Setting, draw: int) -> list[np.random.SeedSequence]:
    # Whole thousandths of the ratio, above zero: a seed is an integer.
    numbers = [
        setting["n"],
        setting["n_features"],
        setting["n_anchors"],
        round(1000 * setting["snr"]) + 10**6,
    ]
    return np.random.SeedSequence([_KINDS[setting["data"]], *numbers, draw]).spawn(2)


def search(setting: Setting, points: SeparableData, draw: int) -> SelectionResult:
    """Select anchors with the paper's settings."""
    k, method = setting["n_anchors"], setting["method"]
    if method == "spa":
        return select_anchors(points.X, k, method="spa")
    X = to_device(points.X)
    if method == "default":
        return select_anchors(X, k)
    if method == "fast-gradient":
        return select_anchors(
            X, k, method=method, max_iter=FAST_GRADIENT_ITERATIONS, rng=_seeds(setting, draw)[1]
        )
    lam: float | str = 0.0 if method == "merit-0" else "paper"
    factor = setting.get("lam_factor", 1.0)
    if lam == "paper" and factor != 1.0:
        lam = 0.0 if factor == 0 else factor * published_weight(as_data_matrix(X), k, "paper", MU)
    return select_anchors(
        X,
        k,
        method="merit",
        method_params={"lam": lam, "mu": setting.get("mu", MU), "recovery": False},
        max_iter=setting.get("max_iter", MERIT_ITERATIONS),
        tol=GAP[setting["data"]],
    )


def quality(points: SeparableData, anchors: IntArray) -> dict[str, Any]:
    """Measure found anchors as the paper does."""
    found = points.X[anchors]
    weights = to_float64(anchor_weights(as_data_matrix(points.X), found, sum_to_one=True))
    return {
        "success": int(success_rate([(points.anchors, anchors)])),
        "found": round(anchors_found(points.anchors, anchors), 4),
        "mrsa": round(mean_removed_spectral_angle(points.H, found), 5),
        "rae": round(relative_approximation(points.X, weights, found), 6),
    }


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one method on a part of the draws."""
    records = []
    for draw in range(setting["first_draw"], setting["first_draw"] + setting["n_draws"]):
        points = draw_points(setting, draw)
        started = time.perf_counter()
        result = search(setting, points, draw)
        seconds = time.perf_counter() - started
        records.append(
            {"draw": draw, **quality(points, result.anchors), "n_iter": result.n_iter, "s": round(seconds, 4)}
        )
    return records


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    each = {"merit": 0.3, "merit-0": 0.3, "fast-gradient": 0.7, "spa": 0.15, "default": 0.6}[
        setting["method"]
    ]
    return float(each * setting["n_draws"] * setting["n"] / 200.0)


def settings_by_draws(
    cases: Iterable[dict[str, Any]], n_draws: int, size: int, common: dict[str, Any]
) -> list[dict[str, Any]]:
    """Combine cases with batches of draws."""
    listed = list(cases)
    return [common | case | block for block in blocks(n_draws, size) for case in listed]
