"""What Figure 2 shows, from its records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nonneg.cones.geometry.bounds import expected_error
from reproduction.exhibits import Curves, Exhibit, Figure, Measured, Series, Table, Verdict
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread

N_DRAWS, N_FIRST_POINTS, N_RIGHT_DRAWS = 50, 20, 10
ITERATIONS = {"mult": 100, "nnlsb": 20, "hals": 100}

SHOWS = f"""
Liu & Tan (2017), Figure 2. Points in K=40 cones of size angle 0.2 or 0.3 in F=1600 dimensions are clustered
greedily by angle, and each cluster is replaced by its best rank-one approximation (`cr1`). Shown is the
relative error against the number of points N: on the left beside the deterministic bound of Theorem 5 (sin
alpha) and the value of Theorem 6, on the right beside multiplicative updates (`mult`, 100 iterations),
alternating least squares by block pivoting (`nnlsb`, 20) and HALS (`hals`, 100), all in their published
form, from factors with uniform random entries.

As in the paper the left panels rest on {N_DRAWS} draws of 10000 points with {N_FIRST_POINTS} random first
points each, and the right ones on {N_RIGHT_DRAWS} draws. Two things differ: smaller N are the first points
of the same draws, and the iterative algorithms start once on each draw instead of ten times, because one
start for all N takes minutes, and the spread over draws contains that over starts.
"""


def summarize(records: Sequence[Record]) -> list[Exhibit]:
    """Return the panels, a table a size angle, and what was to be shown."""
    left = [record for record in records if record["panel"] == "left"]
    right = [record for record in records if record["panel"] == "right"]
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
    for name in ("cr1", *ITERATIONS):
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
    columns |= {"theorem 5": "Theorem 5"} | {name: name for name in ITERATIONS}
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
            row[name] = Measured(*mean_and_spread(values))
        rows.append(row)
    caption = (
        f"Relative errors for alpha = {alpha:g}, mean ± standard deviation. (12) is the bound that is known "
        "without knowing the model: from the smallest cones around the clusters that were found."
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
            "the error lies beneath the deterministic bound sin alpha in every draw, for every first point",
            over_sine == 0,
            f"{over_sine} of {n_runs} runs above",
        ),
        Verdict(
            "the error lies beneath the bound (12) of the clusters found in every draw",
            not over_bound,
            f"{len(over_bound)} of {len(left)} above",
        ),
        Verdict("no found cluster mixes cones", mixed == 0, f"{mixed} of {n_runs} runs with such a cluster"),
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
        f"for alpha = 0.2, N = 10000 the mean over {N_DRAWS} draws is within 1 % of Theorem 6's value",
        None if mean is None or not enough else abs(mean / limit - 1) <= 0.01,
        f"{len(narrow)} draws"
        + (
            ""
            if mean is None
            else f", mean {mean:.5f} against {limit:.5f}: {100 * (mean / limit - 1):+.2f} %"
        ),
    )
    mean, _ = mean_and_spread(_errors(wide))
    limit = _limit(0.3)
    gap = Verdict(
        "for alpha = 0.3, N = 10000 the error stays below Theorem 6's value, as the orthant cuts the cones",
        None if mean is None else max(_errors(wide)) < limit,
        f"{len(wide)} draws"
        + (
            "" if mean is None else f", mean {mean:.5f}, largest {max(_errors(wide)):.5f} against {limit:.5f}"
        ),
    )
    return [close, gap]
