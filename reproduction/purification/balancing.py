"""Section 6: weights with uneven second moments, with and without balancing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Series, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_artifacts import (
    Groups,
    has_all,
    median_series,
    median_table,
    panel,
    worst_of,
)
from reproduction.purification.planted_runs import cost, run, settings
from reproduction.registry import TITLES

NAME = "purification/balancing"
N_DRAWS = 5
N, S, ALPHA = 10, 3.0, 0.25
RATIOS = (1, 2, 4, 16, 64)
UNEVEN = {"size": "weights of uneven size", "frequency": "weights of uneven frequency"}
METHODS = {
    "common": "one r for all",
    "own": "own entry kept",
    "common-balanced": "one r for all, balanced",
    "own-balanced": "own entry kept, balanced",
    "default": "default update",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per ratio and method."""
    p = S / N
    common_r = 1.0 / (2 * p * (1 - p) * (1 - ALPHA))
    published = {"update": "covariance", "alpha": ALPHA, "eta": 0.5, "samples": "population"}
    methods: dict[str, dict[str, Any]] = {
        "common": published | {"r": common_r},
        "own": published,
        "common-balanced": published | {"r": common_r, "balance": True},
        "own-balanced": published | {"balance": True},
        "default": {"update": "regression", "samples": 4000},
    }
    cases = [
        {"method": method, "uneven": uneven, "ratio": float(ratio)} | options
        for uneven in UNEVEN
        for ratio in ((16,) if quick else RATIOS)
        for method, options in methods.items()
    ]
    common = {"n": N, "m": 50, "s": S, "signs": "positive", "max_iter": 80, "pseudo_inverse": "moore-penrose"}
    return settings(cases, 1 if quick else N_DRAWS, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the errors against the ratio, a table, and the claims."""
    groups = grouped(records, "uneven", "method", "ratio")
    ratios = sorted({place[2] for place in groups})
    panels = []
    for uneven, words in UNEVEN.items():
        for key, label in (
            ("relative_e_norm", "||E||_1, own entry one"),
            ("smallest_own", "smallest own entry"),
        ):
            lines = []
            for method, name in METHODS.items():
                points = {k: groups[uneven, method, k] for k in ratios if (uneven, method, k) in groups}
                if points and (key != "smallest_own" or method in ("common", "common-balanced")):
                    lines.append(median_series(name, points, key))
            if key == "smallest_own":
                lines.append(
                    Series("1 / sqrt(ratio)", ratios, [1 / math.sqrt(k) for k in ratios], style="dashed")
                )
            panels.append(panel(words, "C2 / c2", lines, y_label=label))
    return [
        Figure(
            "balancing",
            "||E||_1 with each feature's own entry scaled to one, and the smallest own entry (an entry "
            "of Sigma), "
            "against the ratio of the largest to the smallest second moment. Medians over draws.",
            panels,
        ),
        median_table(
            "Medians over draws after 80 iterations.",
            groups,
            {"uneven": "uneven", "method": "method", "ratio": "C2 / c2"},
            {
                "relative_e_norm": "||E||_1, own entry one",
                "error": "normalized error",
                "smallest_own": "smallest entry of Sigma",
            },
            3,
        ),
        *_verdicts(groups),
    ]


def _verdicts(groups: Groups) -> list[Verdict]:
    far = [float(ratio) for ratio in RATIOS if ratio > 2]
    every = [float(ratio) for ratio in RATIOS]

    def places(
        methods: Sequence[str], ratios: Sequence[float], kinds: Sequence[str] = tuple(UNEVEN)
    ) -> list[Any]:
        return [(kind, method, ratio) for kind in kinds for method in methods for ratio in ratios]

    def smallest(of: Sequence[Any], key: str) -> float:
        values = [record[key] for place in of for record in groups.get(place, [])]
        return min((value for value in values if value is not None), default=math.nan)

    fails = places(["own"], [ratio for ratio in far if ratio >= 16], ["size"])
    balanced = places(["common-balanced", "own-balanced"], every)
    shrinks = places(["common"], far)
    kept = places(["common-balanced"], every)
    common = places(["common"], far)
    default = places(["default"], every)
    left = smallest(fails, "relative_e_norm")
    alone = worst_of(groups, common, "relative_e_norm")
    return [
        Verdict(
            "necessary where own entries are kept: weights whose size falls by 4 or more (C2 / c2 >= 16) "
            "stay below the "
            "common threshold, and the run fails",
            left > 0.1 if has_all(groups, fails, N_DRAWS) else None,
            f"||E||_1 of the best draw {left:.2g}",
        ),
        Verdict(
            "balanced, every run recovers: ||E||_1 <= 1e-8 for every ratio, both kinds and both choices of r",
            worst_of(groups, balanced, "relative_e_norm") <= 1e-8
            if has_all(groups, balanced, N_DRAWS)
            else None,
            f"worst {worst_of(groups, balanced, 'relative_e_norm'):.1e}",
        ),
        Verdict(
            "one r for all without balancing: beyond C2 = 2 c2 the theorem's Sigma >= (1 - l) I does "
            "not hold",
            worst_of(groups, shrinks, "smallest_own") < 0.9 if has_all(groups, shrinks, N_DRAWS) else None,
            f"smallest entries of Sigma {smallest(shrinks, 'smallest_own'):.2f} to "
            f"{worst_of(groups, shrinks, 'smallest_own'):.2f}",
        ),
        Verdict(
            "one r for all, balanced: Sigma >= (1 - l) I for every ratio",
            smallest(kept, "smallest_own") >= 0.9 if has_all(groups, kept, N_DRAWS) else None,
            f"smallest entry {smallest(kept, 'smallest_own'):.3f}",
        ),
        Verdict(
            "one r for all without balancing: the features themselves are not recovered beyond C2 = 2 c2",
            smallest(common, "relative_e_norm") > 0.01 if has_all(groups, common, N_DRAWS) else None,
            f"they are, ||E||_1 at most {alone:.1e} with own entries scaled to one: one r for all scales "
            f"each feature "
            "until its weights have the same second moment as the others', which is balancing",
        ),
        Verdict(
            "the default update needs no balancing: ||E||_1 <= 1e-10 for every ratio",
            worst_of(groups, default, "relative_e_norm") <= 1e-10
            if has_all(groups, default, N_DRAWS)
            else None,
            f"worst {worst_of(groups, default, 'relative_e_norm'):.1e}",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
