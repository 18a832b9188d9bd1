"""Figure 2: the relative error of the rank-one factorization of cones against N."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import as_data_matrix
from reproduction.cr1.cone_draws import FULL, QUICK, SIZES, draw_cones, n_mixed_clusters
from reproduction.cr1.figure_2_exhibits import (
    ITERATIONS,
    N_DRAWS,
    N_FIRST_POINTS,
    N_RIGHT_DRAWS,
    SHOWS,
    summarize,
)
from reproduction.cr1.plain_algorithms import relative_error, run_plain, uniform_start
from reproduction.experiment import Experiment, Setting
from reproduction.registry import TITLES

NAME = "cr1/figure-2"
ALPHAS = (0.2, 0.3)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings: one a draw for the left panels, one a draw and N for the right ones."""
    size = QUICK if quick else FULL
    sizes = [60, 240, 960] if quick else list(SIZES)
    left = {"panel": "left", "sizes": sizes, "n_first_points": 3 if quick else N_FIRST_POINTS}
    found: list[dict[str, Any]] = [
        {"draw": draw, "alpha": alpha} | left | size
        for draw in range(2 if quick else N_DRAWS)
        for alpha in ALPHAS
    ]
    found += [
        {"draw": draw, "alpha": alpha, "panel": "right", "n": n} | size
        for draw in range(1 if quick else N_RIGHT_DRAWS)
        for alpha in ALPHAS
        for n in (sizes[:2] if quick else sizes)
    ]
    return found


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    return _right(setting) if setting["panel"] == "right" else _left(setting)


def _left(setting: Setting) -> list[dict[str, Any]]:
    k = setting["n_cones"]
    X_all, cones_all, rng = draw_cones(setting)
    records = []
    for n in setting["sizes"]:
        X, cones = X_all[:n], cones_all[:n]
        first_points = rng.choice(n, setting["n_first_points"], replace=False).tolist()
        results = [cone_rank_one(X, k, first=first) for first in first_points]
        records.append(
            {
                "n": n,
                "errors": [result.relative_error for result in results],
                "bound": results[0].bounds["cluster"],
                "n_mixed": [n_mixed_clusters(result.labels, cones) for result in results],
                "n_cones_with_points": len(np.unique(cones)),
            }
        )
    return records


def _right(setting: Setting) -> list[dict[str, Any]]:
    n, k = setting["n"], setting["n_cones"]
    X, _, rng = draw_cones(setting)
    X = X[:n]
    data = as_data_matrix(X)
    squared_norm = data.squared_norm()
    W, Ht = uniform_start(data.shape, k, rng)
    ours = cone_rank_one(X, k, first=int(rng.integers(n)), bounds=False)
    records = [{"algorithm": "cr1", "n_iter": None, "error": ours.relative_error}]
    for name, max_iter in ITERATIONS.items():
        history = run_plain(name, data, W, Ht, max_iter=max_iter).history
        error = relative_error(history.loss[-1], squared_norm)
        records.append({"algorithm": name, "n_iter": max_iter, "error": error})
    return records


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    SHOWS,
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: 20.0 * setting["n_drawn"] if setting["panel"] == "left" else 50.0 * setting["n"],
)
