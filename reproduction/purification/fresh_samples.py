"""Fresh samples in every iteration, the same ones, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_artifacts import (
    has_all,
    iteration_series,
    median_table,
    panel,
    worst_of,
)
from reproduction.purification.planted_runs import cost, medians, run, settings
from reproduction.registry import TITLES

NAME = "purification/fresh-samples"
N_DRAWS, N_ITER = 5, 25
BATCHES = (1000, 4000)
"""Samples per iteration."""
CASES = ("regression", "covariance", "noise")
WORDS = {
    "regression": "regression update",
    "covariance": "covariance update",
    "noise": "regression update, unbiased noise",
}
USES = ("same", "fresh", "all")
"""The same samples in every iteration, others in each, or in each all that the second one sees."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per update, number of samples and way to use them."""
    options: dict[str, dict[str, Any]] = {
        "regression": {},
        "covariance": {"update": "covariance", "alpha": 0.25, "eta": 0.5, "pseudo_inverse": "moore-penrose"},
        "noise": {"noise": "unbiased", "noise_level": 1.0},
    }
    cases = [
        {"case": case, "use": use, "samples": batch * (1 if use == "same" else N_ITER)}
        | ({"batch_size": batch} if use == "fresh" else {})
        | options[case]
        for case in CASES
        for batch in (BATCHES[:1] if quick else BATCHES)
        for use in USES
    ]
    common = {"n": 10, "m": 30, "max_iter": N_ITER, "curve": True}
    return settings(cases, 1 if quick else N_DRAWS, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, the errors at the end, and the claims."""
    sized = [{**record, "each": _each(record)} for record in records]
    groups = grouped(sized, "case", "each", "use")
    most = max(record["each"] for record in sized)
    panels = [
        panel(
            WORDS[case],
            "iteration",
            [
                iteration_series(use, group)
                for (kind, each, use), group in groups.items()
                if (kind, each) == (case, most)
            ],
            y_label="||E||_1",
            x_log=False,
        )
        for case in CASES
    ]
    headings = {"case": "case", "each": "samples per iteration", "use": "samples"}
    return [
        Figure("fresh-samples", f"||E||_1 by iteration, {most} samples in each, medians over draws.", panels),
        median_table(
            f"Median ||E||_1 after {N_ITER} iterations, and the error of the features.",
            groups,
            headings,
            {"e_norm": "||E||_1", "error": "error"},
        ),
        *_verdicts(groups),
    ]


def _each(record: Record) -> int:
    """Return the number of fresh samples per iteration of the setting with which this one is compared."""
    return int(record["samples"]) // (1 if record["use"] == "same" else N_ITER)


def _verdicts(groups: Any) -> list[Verdict]:
    places = {(case, use): [(case, batch, use) for batch in BATCHES] for case in CASES for use in USES}
    done = {key: has_all(groups, listed, N_DRAWS) for key, listed in places.items()}
    exact = {use: worst_of(groups, places["regression", use], "e_norm") for use in ("same", "fresh")}
    ends = medians({key: group for key, group in groups.items() if key[0] == "covariance"}, "e_norm")
    noisy = medians({key: group for key, group in groups.items() if key[0] == "noise"}, "error")
    whole = all(done.values())

    def ratios(found: dict[Any, float], case: str, of: str, to: str) -> list[float]:
        return [found[case, batch, of] / found[case, batch, to] for batch in BATCHES] if whole else []

    floors = ratios(ends, "covariance", "same", "fresh")
    gains = ratios(noisy, "noise", "fresh", "all")
    return [
        Verdict(
            f"regression without noise: ||E||_1 <= 1e-10 after {N_ITER} iterations, with fresh samples and "
            "with the same ones",
            max(exact.values()) <= 1e-10 if whole else None,
            f"worst {exact['fresh']:.1e} with fresh samples, {exact['same']:.1e} with the same",
        ),
        Verdict(
            "covariance update: fresh samples lower the error floor, whose chance correlations are then not "
            "the same in every iteration",
            min(floors) > 1 if whole else None,
            "with the same samples it is " + _times(floors) + " times as high",
        ),
        Verdict(
            "unbiased noise: all samples in every iteration are at least twice as good as fresh ones",
            min(gains) >= 2 if whole else None,
            "fresh samples leave " + _times(gains) + " times the error",
        ),
    ]


def _times(found: Sequence[float]) -> str:
    pairs = zip(found, BATCHES, strict=True) if found else []
    return ", ".join(f"{value:.2g} ({batch} per iteration)" for value, batch in pairs) or "?"


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
