"""Figure 2: the relative error of the rank-one factorization of cones against N."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.cones.geometry.bounds import expected_error
from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import as_data_matrix
from nonneg.solvers.factorize import factorize
from reproduction.artifacts import Artifact, Curves, Figure, Measured, Series, Table, Verdict
from reproduction.cr1.cone_draws import FULL, QUICK, SIZES, draw_cones, n_mixed_clusters
from reproduction.cr1.plain_algorithms import relative_error, run_plain, uniform_init
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES

NAME = "cr1/figure-2"
ALPHAS = (0.2, 0.3)
N_DRAWS, N_FIRST_POINTS, N_RIGHT_DRAWS, N_DEFAULT_DRAWS = 50, 20, 10, 3
ITERATIONS = {"mult": 100, "nnlsb": 20, "hals": 100}
# Initializations of the other algorithms per draw: as many as in the paper up to this N; one beyond it, where
# a run takes up to 20 s.
N_INITS, MOST_POINTS = 10, 215


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw for the left panels, and one per draw and N for the right ones."""
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
    found += [
        {"draw": draw, "alpha": alpha, "panel": "default", "n": n} | size
        for n in (sizes[:2] if quick else sizes)
        for draw in range(1 if quick else N_DEFAULT_DRAWS)
        for alpha in ALPHAS
    ]
    if quick:
        return [
            *found,
            {"draw": 0, "alpha": ALPHAS[0], "panel": "more", "n": sizes[0], "inits": [1, 2]} | size,
        ]
    return found + [
        {"draw": draw, "alpha": alpha, "panel": "more", "n": n, "inits": list(range(1, N_INITS))} | size
        for n in sizes
        for draw in range(N_RIGHT_DRAWS)
        for alpha in ALPHAS
        if n <= MOST_POINTS
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    panels = {"left": _left, "right": _right, "more": _more, "default": _default}
    return panels[setting["panel"]](setting)


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
    W, Ht = uniform_init(data.shape, k, rng)
    ours = cone_rank_one(X, k, first=int(rng.integers(n)), bounds=False)
    records = [{"algorithm": "cr1", "n_iter": None, "error": ours.relative_error}]
    return records + _others(data, W, Ht)


def _more(setting: Setting) -> list[dict[str, Any]]:
    n, k = setting["n"], setting["n_cones"]
    data = as_data_matrix(draw_cones(setting)[0][:n])
    records = []
    for init in setting["inits"]:
        seed = [round(1000 * setting["alpha"]), setting["draw"], n, init]
        W, Ht = uniform_init(data.shape, k, np.random.default_rng(seed))
        records += [{"init": init} | record for record in _others(data, W, Ht)]
    return records


def _default(setting: Setting) -> list[dict[str, Any]]:
    X = draw_cones(setting)[0][: setting["n"]]
    result = factorize(X, setting["n_cones"], rng=0)
    error = float(np.sqrt(2.0 * result.loss) / np.linalg.norm(X))
    return [{"algorithm": "default", "n_iter": result.n_iter, "error": error}]


def _others(data: Any, W: FloatArray, Ht: FloatArray) -> list[dict[str, Any]]:
    squared_norm = data.squared_norm()
    records = []
    for name, max_iter in ITERATIONS.items():
        history = run_plain(name, data, W, Ht, max_iter=max_iter).history
        error = relative_error(history.loss[-1], squared_norm)
        records.append({"algorithm": name, "n_iter": max_iter, "error": error})
    return records


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the panels, one table per size angle, and the claims."""
    left = [record for record in records if record["panel"] == "left"]
    right = [record for record in records if record["panel"] != "left"]
    alphas = sorted({record["alpha"] for record in records})
    panels, tables = [], []
    for alpha in alphas:
        ours = _by_size(record for record in left if record["alpha"] == alpha)
        others = _by_size(record for record in right if record["alpha"] == alpha)
        if ours:
            panels.append(_left_panel(alpha, ours))
        if others:
            panels.append(_right_panel(alpha, others))
        tables.append(_table(alpha, ours, others))
    caption = "Relative error against N. Bars: one standard deviation over draws and first points."
    return [Figure("relative-errors", caption, panels), *tables, *_verdicts(left)]


def _by_size(records: Any) -> dict[int, list[dict[str, Any]]]:
    return {n: group for (n,), group in sorted(grouped(records, "n").items())}


def _errors(group: Sequence[Record]) -> list[float]:
    return [error for record in group for error in record["errors"]]


def _limit(alpha: float) -> float:
    """Return Theorem 6's value; the cones have the same size angle, so that their weights do not matter."""
    return expected_error([alpha], [1.0])


def _left_panel(alpha: float, groups: dict[int, list[dict[str, Any]]]) -> Curves:
    sizes = list(groups)
    pairs = [mean_and_spread(_errors(group)) for group in groups.values()]
    series = [
        Series("cr1", sizes, [mean for mean, _ in pairs], [spread or 0.0 for _, spread in pairs]),
        Series("Theorem 5: sin alpha", sizes, [math.sin(alpha)] * len(sizes), style="dashed"),
        Series("Theorem 6", sizes, [_limit(alpha)] * len(sizes), style="dashed"),
        Series(
            "(12), cones found",
            sizes,
            [mean_and_spread([record["bound"] for record in group])[0] for group in groups.values()],
            style="line",
        ),
    ]
    return Curves(f"alpha = {alpha:g}: bounds", "N", "relative error", series, x_log=True)


def _right_panel(alpha: float, groups: dict[int, list[dict[str, Any]]]) -> Curves:
    sizes = list(groups)
    series = []
    for name in ("cr1", *ITERATIONS, "default"):
        pairs = [
            mean_and_spread([record["error"] for record in group if record["algorithm"] == name])
            for group in groups.values()
        ]
        series.append(
            Series(name, sizes, [mean for mean, _ in pairs], [spread or 0.0 for _, spread in pairs])
        )
    return Curves(f"alpha = {alpha:g}: algorithms", "N", "relative error", series, x_log=True)


def _table(
    alpha: float, ours: dict[int, list[dict[str, Any]]], others: dict[int, list[dict[str, Any]]]
) -> Table:
    columns = {"n": "N", "draws": "draws", "cr1": "cr1", "bound": "(12)", "theorem 6": "Theorem 6"}
    columns |= {"theorem 5": "Theorem 5", "runs": "runs of the others"} | {name: name for name in ITERATIONS}
    columns |= {"default": "default of nonneg"}
    rows = []
    for n in sorted({*ours, *others}):
        group = ours.get(n, [])
        row = {
            "n": n,
            "draws": len(group),
            "cr1": Measured(*mean_and_spread(_errors(group))),
            "bound": Measured(*mean_and_spread([record["bound"] for record in group])),
            "theorem 6": _limit(alpha),
            "theorem 5": math.sin(alpha),
        }
        for name in ITERATIONS:
            values = [record["error"] for record in others.get(n, []) if record["algorithm"] == name]
            row["runs"] = len(values)
            row[name] = Measured(*mean_and_spread(values))
        values = [record["error"] for record in others.get(n, []) if record["algorithm"] == "default"]
        row["default"] = Measured(*mean_and_spread(values))
        rows.append(row)
    caption = (
        f"Relative errors for alpha = {alpha:g}, mean ± standard deviation. (12) is the bound "
        "that needs no knowledge of the model: it uses the smallest cones around the clusters found."
    )
    return Table(caption, columns, rows)


def _verdicts(left: Sequence[Record]) -> list[Verdict]:
    if not left:
        return []
    n_runs = sum(len(record["errors"]) for record in left)
    over_sine = sum(error > math.sin(record["alpha"]) for record in left for error in record["errors"])
    over_bound = [record for record in left if record["errors"][0] > record["bound"]]
    mixed = sum(count > 0 for record in left for count in record["n_mixed"])
    found = [
        Verdict(
            "the error is below the deterministic bound sin alpha in every draw, for every first point",
            over_sine == 0,
            f"{over_sine} of {n_runs} runs above",
        ),
        Verdict(
            "the error is below the bound (12) of the clusters found in every draw",
            not over_bound,
            f"{len(over_bound)} of {len(left)} above",
        ),
        Verdict(
            "no cluster contains points of several cones",
            mixed == 0,
            f"{mixed} of {n_runs} runs with such a cluster",
        ),
    ]
    return [*found, *_limits(left)]


def _limits(left: Sequence[Record]) -> list[Verdict]:
    def at_the_end(alpha: float) -> list[dict[str, Any]]:
        return [
            dict(record)
            for record in left
            if (record["alpha"], record["n"], record["n_features"]) == (alpha, 10_000, 1600)
        ]

    narrow, wide = at_the_end(0.2), at_the_end(0.3)
    mean, _ = mean_and_spread(_errors(narrow))
    limit = _limit(0.2)
    enough = mean is not None and len(narrow) >= N_DRAWS
    close = Verdict(
        f"for alpha = 0.2, N = 10000 the mean over {N_DRAWS} draws is within 1% of Theorem 6's value",
        None if mean is None or not enough else abs(mean / limit - 1) <= 0.01,
        f"{len(narrow)} draws"
        + (
            "" if mean is None else f", mean {mean:.5f} against {limit:.5f}: {100 * (mean / limit - 1):+.2f}%"
        ),
    )
    mean, _ = mean_and_spread(_errors(wide))
    limit = _limit(0.3)
    gap = Verdict(
        "for alpha = 0.3, N = 10000 the error is below Theorem 6's value, as the orthant truncates the cones",
        None if mean is None else max(_errors(wide)) < limit,
        f"{len(wide)} draws"
        + (
            "" if mean is None else f", mean {mean:.5f}, largest {max(_errors(wide)):.5f} against {limit:.5f}"
        ),
    )
    return [close, gap]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    cost=lambda setting: (
        20.0 * setting["n_drawn"]
        if setting["panel"] == "left"
        else 50.0 * setting["n"] * len(setting.get("inits", "1"))
    ),
)
