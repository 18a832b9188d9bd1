"""Theorem 2: unbiased noise that is larger than the signal averages out."""

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
    median_series,
    panel,
    power_of,
)
from reproduction.purification.planted_runs import cost, middle, run, settings, worst
from reproduction.registry import TITLES

NAME = "purification/unbiased-noise"
N_DRAWS = 3
SIZES = (10, 20, 40, 80)
STRENGTHS = (0.5, 1.0)
LEVELS = (0.1, 0.3, 1.0, 3.0, 10.0)
NUMBERS = (5000, 20000, 80000)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per number of features, noise level and number of samples."""
    cases: list[dict[str, Any]] = [
        {
            "case": "size",
            "n": n,
            "m": 3 * n,
            "samples": 25 * n * n,
            "strength": c,
            "noise_level": c * math.sqrt(n),
        }
        for n in ((10, 20) if quick else SIZES)
        for c in STRENGTHS
    ]
    if not quick:
        cases += [{"case": "level", "noise_level": level, "samples": 20000} for level in LEVELS]
        cases += [{"case": "number", "noise_level": 3.0, "samples": number} for number in NUMBERS]
        cases += [
            {"case": "dependent", "noise": "dependent", "noise_level": 1.0, "samples": number}
            for number in NUMBERS
        ]
    common = {"noise": "unbiased", "max_iter": 12}
    return settings(cases, 1 if quick else N_DRAWS, size=1, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return errors relative to the noise, and the claims."""
    told = [
        dict(record)
        | {
            "share": record["error"] / record["noise_level"],
            "known_share": record["known_weights"] / record["noise_level"],
        }
        for record in records
    ]
    sizes = grouped([record for record in told if record["case"] == "size"], "strength", "n")
    levels = grouped([record for record in told if record["case"] == "level"], "noise_level")
    numbers = grouped([record for record in told if record["case"] == "number"], "samples")
    dependent = grouped([record for record in told if record["case"] == "dependent"], "samples")
    lines = []
    for c in STRENGTHS:
        points = {n: group for (strength, n), group in sizes.items() if strength == c}
        if points:
            lines.append(median_series(f"c = {c:g}", points, "share"))
            lines.append(median_series(f"c = {c:g}, true weights known", points, "known_share"))
    some = sorted({n for _, n in sizes})
    if some and lines:
        first = lines[0].y[0] or 1.0
        lines.append(
            Series("1 / sqrt(n)", some, [first * math.sqrt(some[0] / n) for n in some], style="dashed")
        )
    panels = [panel("error over noise", "features n", lines, y_label="error / l1 norm of the noise")]
    if levels:
        by_level = {level: group for (level,), group in levels.items()}
        panels.append(
            panel(
                "n = 20, N = 20000",
                "l1 norm of the noise in a sample",
                [
                    median_series("purification", by_level, "error"),
                    median_series("true weights known", by_level, "known_weights"),
                ],
                y_label="normalized error",
            )
        )
    if numbers:
        by_number = {number: group for (number,), group in numbers.items()}
        panels.append(
            panel(
                "n = 20, noise 3",
                "samples N",
                [
                    median_series("purification", by_number, "error"),
                    median_series("true weights known", by_number, "known_weights"),
                ],
                y_label="normalized error",
            )
        )
    rows = [
        {key: group[0][key] for key in ("case", "noise", "n", "samples", "noise_level")}
        | {key: middle([record[key] for record in group]) for key in ("error", "known_weights", "share")}
        for group in grouped(told, "case", "n", "samples", "noise_level").values()
    ]
    columns = {"noise": "noise", "n": "n", "samples": "N", "noise_level": "l1 norm of the noise"}
    columns |= {"error": "normalized error"}
    columns |= {"known_weights": "true weights known", "share": "error / noise"}
    return [
        Figure("noise", "Errors of the worst feature, medians over draws.", panels),
        Table("Medians over draws.", columns, rows, 3),
        *_verdicts(sizes, levels, numbers),
        _averages_out("dependent on x*, of l1 norm 1,", dependent),
    ]


def _verdicts(sizes: Groups, levels: Groups, numbers: Groups) -> list[Verdict]:
    found = []
    for c in STRENGTHS:
        places = [(c, n) for n in SIZES]
        claim = (
            f"noise of l1 norm {c:g} sqrt(n): the error relative to it falls as 1/sqrt(n) or faster, n "
            f"= 10 "
            "to 80"
        )
        if not has_all(sizes, places, N_DRAWS):
            found.append(Verdict(claim, None, "not enough trials"))
            continue
        shares = [middle([record["share"] for record in sizes[place]]) for place in places]
        scaled = [share * math.sqrt(n) for share, n in zip(shares, SIZES, strict=True)]
        power = power_of(SIZES, shares)
        found.append(
            Verdict(
                claim,
                power <= -0.4 and max(scaled) <= 1,
                f"exponent {power:.2f}; times sqrt(n): " + ", ".join(f"{value:.3f}" for value in scaled),
            )
        )
    one = levels.get((1.0,), [])
    error = worst([record["error"] for record in one]) if one else float("nan")
    found.append(
        Verdict(
            "noise of l1 norm 1, N = 20000: error at most 0.03",
            error <= 0.03 if len(one) >= N_DRAWS else None,
            f"worst draw {error:.4f}",
        )
    )
    found.append(_averages_out("of l1 norm 3", numbers))
    return found


def _averages_out(which: str, numbers: Groups) -> Verdict:
    claim = f"unbiased noise {which} averages out: the error falls with N, exponent below -0.4"
    if not has_all(numbers, [(number,) for number in NUMBERS], N_DRAWS):
        return Verdict(claim, None)
    power = power_of(NUMBERS, [middle([r["error"] for r in numbers[(k,)]]) for k in NUMBERS])
    return Verdict(claim, power <= -0.4, f"{power:.2f}")


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
