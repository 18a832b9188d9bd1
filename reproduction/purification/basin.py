"""The basin of attraction: success against the error of the initialization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Curves, Figure, Series, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.merit.rates import Rate, rate_cell, rate_curves, rate_verdict
from reproduction.purification.planted_artifacts import median_series
from reproduction.purification.planted_runs import cost, run, settings
from reproduction.registry import TITLES

NAME = "purification/basin"
N_DRAWS = 5
LEVELS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 0.95, 2.0, 4.0)
SUCCESS = 1e-6
CASES: dict[str, dict[str, Any]] = {
    "binary": {"weights": "binary"},
    "uniform": {"weights": "uniform"},
    "heavy": {"weights": "heavy"},
    "outside": {"weights": "uniform", "outside": 0.2},
    "one-positive": {"weights": "uniform", "symmetry": "one other", "signs": "positive"},
    "one-negative": {"weights": "uniform", "symmetry": "one other", "signs": "negative"},
    "published": {"update": "covariance", "alpha": 0.25, "eta": 0.5, "samples": "array", "blocks": 2},
}
WORDS = {
    "binary": "default, binary weights",
    "uniform": "default, uniform weights",
    "heavy": "default, heavy weights",
    "outside": "default, uniform weights, N(0) of norm 0.2",
    "one-positive": "default, uniform weights, l of one other",
    "one-negative": "default, uniform weights, -l of one other",
    "published": "published update, orthogonal array",
}
SPREAD = ("binary", "uniform", "heavy", "outside")
ONE = ("one-positive", "one-negative")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per case and level."""
    levels = (0.1, 0.5) if quick else LEVELS
    cases = [
        {"case": name, "level": level, "samples": 2000, "m": 40 if name == "published" else 100} | options
        for level in levels
        for name, options in CASES.items()
    ]
    common = {"max_iter": 100, "tol": 1e-10, "pseudo_inverse": "moore-penrose"}
    return settings(cases, 1 if quick else N_DRAWS, size=N_DRAWS, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return success rates, estimates, and the claims."""
    groups = grouped(records, "case", "level")
    rates = {
        place: Rate(sum(_recovered(record) for record in group), len(group))
        for place, group in groups.items()
    }
    levels = sorted({level for _, level in groups})
    curves = {
        words: {level: rates[case, level] for level in levels if (case, level) in rates}
        for case, words in WORDS.items()
    }
    estimates = [
        median_series(WORDS[case], {k: groups[case, k] for k in levels if (case, k) in groups}, "estimate")
        for case in ("binary", "uniform", *ONE)
        if any((case, k) in groups for k in levels)
    ]
    rows = [
        {"level": level} | {case: rate_cell(rates.get((case, level))) for case in WORDS} for level in levels
    ]
    return [
        Figure(
            "basin",
            "Success rate against the error l of the initialization (bars: exact 95% intervals), and the "
            "estimate of l from the "
            "data (medians over draws).",
            [
                rate_curves("success", "l = ||E(0)||_s", curves),
                Curves(
                    "estimate",
                    "l = ||E(0)||_s",
                    "estimate of l",
                    [*estimates, Series("l", levels, levels, style="dashed")],
                ),
            ],
        ),
        Table("Success rate with exact 95% intervals.", {"level": "l"} | WORDS, rows, 3),
        rate_verdict(
            "the theorems' l = 0.1 is enough: every draw of every case succeeds up to it",
            [rates.get((case, level)) for case in CASES for level in LEVELS if level <= 0.1],
            1.0,
            N_DRAWS,
        ),
        rate_verdict(
            "default update, E spread over all others: every draw succeeds up to l = 0.5",
            [rates.get((case, level)) for case in SPREAD for level in LEVELS if level <= 0.5],
            1.0,
            N_DRAWS,
        ),
        rate_verdict(
            "default update, l or -l of one other: every draw succeeds up to l = 0.3",
            [rates.get((case, level)) for case in ONE for level in LEVELS if level <= 0.3],
            1.0,
            N_DRAWS,
        ),
        rate_verdict(
            "published update: every draw succeeds up to l = 0.5",
            [rates.get(("published", level)) for level in LEVELS if level <= 0.5],
            1.0,
            N_DRAWS,
        ),
        _ends(rates),
    ]


def _recovered(record: Record) -> bool:
    error = record["relative_e_norm"]
    return error is not None and error <= SUCCESS


def _ends(rates: dict[tuple[Any, ...], Rate]) -> Verdict:
    """Say where the basin ends, case by case."""
    claim = f"the basin ends before l = {LEVELS[-1]:g} in every case"
    told, done = [], True
    for case, words in WORDS.items():
        found = [rates.get((case, level)) for level in LEVELS]
        done = done and all(rate is not None and rate.n >= N_DRAWS for rate in found)
        failed = [
            level for level, rate in zip(LEVELS, found, strict=True) if rate is not None and rate.value < 1
        ]
        told.append((words, min(failed, default=None)))
    return Verdict(
        claim,
        all(first is not None for _, first in told) if done else None,
        "; ".join(f"{words}: first failures at {first:g}" for words, first in told if first is not None)
        or "no failures",
    )


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
