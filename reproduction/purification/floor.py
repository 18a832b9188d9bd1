"""The floor of the covariance update on finite samples, and its absence with the regression update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Series, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_artifacts import (
    Groups,
    has_all,
    iteration_series,
    median_series,
    median_table,
    panel,
    power_of,
    worst_of,
)
from reproduction.purification.planted_runs import cost, middle, run, settings
from reproduction.registry import TITLES

NAME = "purification/floor"
N_DRAWS = 5
NUMBERS = (2000, 4000, 8000, 16000, 32000, 64000, 128000)
SIZES = (10, 40)
FLOOR = 0.8
INITS = (0.1, 0.4)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per number of samples, update and initialization."""
    published = {"update": "covariance", "alpha": 0.25, "eta": 0.5, "pseudo_inverse": "moore-penrose"}
    numbers = (1000, 4000) if quick else NUMBERS
    cases: list[dict[str, Any]] = []
    for number in numbers:
        cases += [published | {"samples": number, "level": level} for level in INITS]
        cases.append({"update": "regression", "samples": number})
    if not quick:
        cases += [
            published | {"n": n, "m": 5 * n, "samples": number} for n in SIZES for number in (8000, 32000)
        ]
    # 23^2 = 529 samples.
    cases.append(published | {"samples": "array"})
    common = {"max_iter": 40, "curve": True}
    return settings(cases, 1 if quick else N_DRAWS, size=1 if quick else N_DRAWS, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the error against the number of samples, the way to it, and the claims."""
    groups = grouped(records, "n", "update", "level", "samples")
    drawn = {place: group for place, group in groups.items() if place[3] != "array"}
    numbers = sorted({place[3] for place in drawn})
    lines = [
        median_series(
            f"covariance, initial error {level}",
            {
                k: groups[20, "covariance", level, k]
                for k in numbers
                if (20, "covariance", level, k) in groups
            },
            "e_norm",
        )
        for level in INITS
    ]
    regression = {
        k: groups[20, "regression", 0.1, k] for k in numbers if (20, "regression", 0.1, k) in groups
    }
    both = [*lines[:1], median_series("regression, initial error 0.1", regression, "e_norm")]
    lines.append(
        Series("0.8 n / sqrt(N)", numbers, [FLOOR * 20 / math.sqrt(k) for k in numbers], style="dashed")
    )
    ways = [
        iteration_series(f"N = {place[3]}, initial error {place[2]}", group)
        for place, group in groups.items()
        if place[0] == 20 and place[1] == "covariance" and place[3] in (numbers[0], numbers[-1], "array")
    ]
    table = median_table(
        "Medians over draws after 40 iterations.",
        groups,
        {"n": "n", "update": "update", "level": "initial error", "samples": "N"},
        {"e_norm": "||E||_1", "error": "normalized error"},
        3,
    )
    rows = [
        {**row, "floor": FLOOR * row["n"] / math.sqrt(529 if row["samples"] == "array" else row["samples"])}
        for row in table.rows
    ]
    return [
        Figure(
            "floor",
            "||E||_1 after 40 iterations against the number of samples, and on the way there.",
            [
                panel("covariance update, n = 20", "samples N", lines, y_label="||E||_1"),
                panel("both updates, n = 20", "samples N", both, y_label="||E||_1"),
                panel("covariance update", "iteration", ways, y_label="||E||_1", x_log=False),
            ],
        ),
        Table(table.caption, {**table.columns, "floor": "0.8 n / sqrt(N)"}, rows, table.digits),
        *_verdicts(groups),
    ]


def _verdicts(groups: Groups) -> list[Verdict]:
    covariance = [(20, "covariance", level, k) for level in INITS for k in NUMBERS]
    others = [(n, "covariance", 0.1, k) for n in SIZES for k in (8000, 32000)]
    ratios = {
        place: middle([record["e_norm"] for record in groups[place]])
        / (FLOOR * place[0] / math.sqrt(place[3]))
        for place in [*covariance, *others]
        if place in groups
    }
    twenty = {place: ratio for place, ratio in ratios.items() if place[0] == 20}
    apart = [
        f"initial error {place[2]}, N = {place[3]}: {ratio:.2f}"
        for place, ratio in twenty.items()
        if abs(ratio - 1) > 0.3
    ]
    done = has_all(groups, covariance, N_DRAWS)
    regression = [(20, "regression", 0.1, k) for k in NUMBERS]
    array = [(20, "covariance", 0.1, "array")]
    slope = (
        power_of(NUMBERS, [middle([r["e_norm"] for r in groups[20, "covariance", 0.1, k]]) for k in NUMBERS])
        if done
        else float("nan")
    )
    rest = ", ".join(f"{ratio:.2f} (n = {p[0]}, N = {p[3]})" for p, ratio in ratios.items() if p[0] != 20)
    return [
        Verdict(
            "n = 20: the published update ends within 30% of 0.8 n / sqrt(N), from a better and a "
            "worse initialization",
            not apart if done else None,
            "; ".join(apart)
            or "ratios "
            f"{min(twenty.values(), default=math.nan):.2f} to {max(twenty.values(), default=math.nan):.2f}",
        ),
        Verdict(
            "the floor falls as 1 / sqrt(N): exponent between -0.6 and -0.4",
            -0.6 <= slope <= -0.4 if done else None,
            f"{slope:.2f}",
        ),
        Verdict(
            "10 and 40 features: within 30% of 0.8 n / sqrt(N) too",
            all(abs(ratio - 1) <= 0.3 for p, ratio in ratios.items() if p[0] != 20)
            if has_all(groups, others, N_DRAWS)
            else None,
            rest or "no trials",
        ),
        Verdict(
            "the default update has no floor: ||E||_1 <= 1e-10 for every N",
            worst_of(groups, regression, "e_norm") <= 1e-10 if has_all(groups, regression, N_DRAWS) else None,
            f"worst {worst_of(groups, regression, 'e_norm'):.1e}",
        ),
        Verdict(
            "without chance correlations (529 samples of an orthogonal array) the published update continues "
            "to "
            "1e-6 in 40 iterations",
            worst_of(groups, array, "e_norm") <= 1e-6 if has_all(groups, array, N_DRAWS) else None,
            f"worst {worst_of(groups, array, 'e_norm'):.1e}",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
