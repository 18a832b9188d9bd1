"""Theorem 1 with noise: the error is at most proportional to adversarial noise."""

from __future__ import annotations

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
    power_of,
)
from reproduction.purification.planted_runs import cost, middle, run, settings, worst
from reproduction.registry import TITLES

NAME = "purification/adversarial-noise"
N_DRAWS = 5
LEVELS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# The noise of one sample is as large as a feature; beyond this the theorem says nothing with c <= 1.
LARGEST = 1.0
KINDS = {
    "adversarial": "one of five fixed patterns per sample",
    "correlated": "a pattern that follows from x*",
    "optimized": "a sign that follows from x* and moves one feature the most",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per noise type, noise level and update."""
    levels = (0.1, 0.3) if quick else LEVELS
    published: dict[str, Any] = {"noise": "adversarial", "update": "covariance", "samples": "array"}
    published |= {"blocks": 4 if quick else 23}
    cases: list[dict[str, Any]] = []
    for level in levels:
        cases += [{"noise": kind, "noise_level": level, "update": "regression"} for kind in KINDS]
        cases.append(published | {"noise_level": level, "alpha": 0.25, "eta": 0.5})
    common = {"samples": 4000 if quick else 20000, "max_iter": 30, "pseudo_inverse": "moore-penrose"}
    return settings(cases, 1 if quick else N_DRAWS, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the error against the level of noise, and the claims."""
    groups = grouped(records, "noise", "update", "noise_level")
    levels = sorted({place[2] for place in groups})
    panels = []
    for kind, words in KINDS.items():
        lines = []
        for update in ("regression", "covariance"):
            points = {k: groups[kind, update, k] for k in levels if (kind, update, k) in groups}
            if points:
                lines.append(median_series(update, points, "error"))
        known = {k: groups[kind, "regression", k] for k in levels if (kind, "regression", k) in groups}
        if known:
            lines.append(median_series("true weights known", known, "known_weights"))
        lines.append(Series("2 c", levels, [2 * k for k in levels], style="dashed"))
        panels.append(panel(words, "l1 norm c of the noise in a sample", lines, y_label="normalized error"))
    return [
        Figure("noise", "Normalized l1 error of the worst feature, medians over draws.", panels),
        median_table(
            "Medians over draws.",
            groups,
            {"noise": "noise", "update": "update", "noise_level": "c"},
            {
                "error": "normalized error",
                "known_weights": "true weights known",
                "e_norm": "||E||_1",
                "n_norm": "||N||_1",
            },
            3,
        ),
        *_verdicts(groups),
    ]


def _verdicts(groups: Groups) -> list[Verdict]:
    within = [level for level in LEVELS if level <= LARGEST]
    found = []
    for kind, update in (
        ("adversarial", "regression"),
        ("adversarial", "covariance"),
        ("correlated", "regression"),
        ("optimized", "regression"),
    ):
        places = [(kind, update, level) for level in within]
        done = has_all(groups, places, N_DRAWS)
        claim = (
            f"{update}, {KINDS[kind]}: error at most 2 c, ||E||_1 and ||N||_1 at most c, for c from 0.01 "
            "to 1 and G = 1"
        )
        if not done:
            found.append(Verdict(claim, None, "not enough trials"))
            continue
        ratios = [worst([record["error"] for record in groups[place]]) / place[2] for place in places]
        parts = [
            worst([max(record["e_norm"], record["n_norm"]) for record in groups[place]]) / place[2]
            for place in places
        ]
        errors = [middle([record["error"] for record in groups[place]]) for place in places]
        found.append(
            Verdict(
                claim,
                max(ratios) <= 2 and max(parts) <= 1,
                f"worst draws: error {min(ratios):.2g} to {max(ratios):.2g} times c, the larger norm "
                f"{min(parts):.2g} to {max(parts):.2g} times c, which G = "
                f"{1 / max(0.5 * max(ratios), max(parts)):.2g} allows; error grows as "
                f"c^{power_of(within, errors):.2f}",
            )
        )
    beyond = [("adversarial", "regression", LEVELS[-1])]
    error = middle([record["error"] for record in groups.get(beyond[0], [])]) if beyond[0] in groups else None
    found.append(
        Verdict(
            "beyond the theorem (c = 3, as large as the signal) the default still has an error of at most c",
            None if error is None or not has_all(groups, beyond, N_DRAWS) else error <= LEVELS[-1],
            "no trials" if error is None else f"median {error:.2f}",
        )
    )
    return found


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
