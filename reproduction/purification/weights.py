"""Theorems 6 and 7: weights of other distributions, with the published and with the default update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_artifacts import (
    Groups,
    has_all,
    iteration_series,
    median_table,
    panel,
    worst_of,
)
from reproduction.purification.planted_runs import cost, middle, run, settings
from reproduction.registry import TITLES

NAME = "purification/weights"
N_DRAWS = 5
WEIGHTS = ("binary", "uniform", "heavy")
N_SAMPLES = 4000
N_NOISY = 20000
ADVERSARIAL, UNBIASED = 0.1, 1.0


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per distribution, update, sampling and noise."""
    regression = {"update": "regression", "max_iter": 40}
    covariance = {"update": "covariance", "max_iter": 60, "alpha": 0.1, "eta": 0.5}
    adversarial = {"noise": "adversarial", "noise_level": ADVERSARIAL, "max_iter": 30}
    unbiased = {"noise": "unbiased", "noise_level": UNBIASED, "max_iter": 30, "samples": N_NOISY}
    cases: list[dict[str, Any]] = []
    for weights in WEIGHTS:
        both = [{"weights": weights} | update for update in (regression, covariance)]
        cases += both
        if quick:
            continue
        cases.append(both[1] | {"samples": "array"})
        cases += [both[0] | adversarial | {"samples": N_NOISY}]
        cases += [both[1] | adversarial | {"samples": "array"}]
        cases += [case | unbiased for case in both]
    if not quick:
        cases += [{"weights": "mixed"} | update for update in (regression, covariance)]
    common = {"samples": N_SAMPLES, "curve": True, "constants": True, "pseudo_inverse": "moore-penrose"}
    return settings(cases, 1 if quick else N_DRAWS, common=common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return errors by iteration, a table, and the claims."""
    groups = grouped(records, "weights", "update", "samples", "noise")
    named: dict[str, tuple[str, Any]] = {
        "regression, drawn": ("regression", N_SAMPLES),
        "covariance, drawn": ("covariance", N_SAMPLES),
    }
    named["covariance, array"] = ("covariance", "array")
    panels = []
    for title, (update, samples) in named.items():
        lines = [
            iteration_series(place[0], group)
            for place, group in groups.items()
            if place[1:] == (update, samples, "none")
        ]
        if lines:
            panels.append(panel(title, "iteration", lines, y_label="||E||_1", x_log=False))
    clean = {place: group for place, group in groups.items() if place[3] == "none"}
    noisy = {place: group for place, group in groups.items() if place[3] != "none"}
    headings = {"weights": "weights", "update": "update", "samples": "samples", "noise": "noise"}
    constants = {"C1": "C1", "c2": "c2", "C2": "C2", "density": "C1^3 / (c2^2 n)"}
    artifacts: list[Artifact] = [
        Figure("weights", "||E||_1 by iteration without noise, medians over draws.", panels, n_columns=3),
        median_table(
            "Without noise, at the end; constants of the theorems of the sampled weights. Medians over "
            "draws.",
            clean,
            headings,
            {"e_norm": "||E||_1", "error": "normalized error"} | constants,
            3,
        ),
    ]
    if noisy:
        artifacts.append(
            median_table(
                f"With noise: adversarial of l1 norm {ADVERSARIAL:g}, unbiased of l1 norm {UNBIASED:g}. "
                "Medians over draws.",
                noisy,
                headings,
                {
                    "e_norm": "||E||_1",
                    "n_norm": "||N||_1",
                    "error": "normalized error",
                    "known_weights": "true weights known",
                },
                3,
            )
        )
    return [*artifacts, *_verdicts(groups)]


def _verdicts(groups: Groups) -> list[Verdict]:
    default = [(kind, "regression", N_SAMPLES, "none") for kind in (*WEIGHTS, "mixed")]
    drawn = [(kind, "covariance", N_SAMPLES, "none") for kind in (*WEIGHTS, "mixed")]
    arrays = [(kind, "covariance", "array", "none") for kind in WEIGHTS]
    sixth: dict[str, list[tuple[Any, ...]]] = {
        "default update, drawn samples": [(kind, "regression", N_NOISY, "adversarial") for kind in WEIGHTS],
        "published update, arrays": [(kind, "covariance", "array", "adversarial") for kind in WEIGHTS],
    }
    seventh = [(kind, "regression", N_NOISY, "unbiased") for kind in WEIGHTS]
    floor = 0.8 * 20 / math.sqrt(N_SAMPLES)
    found = [
        _at_most(
            groups, "default update: ||E||_1 <= 1e-6 within 40 iterations for all weights", default, 1e-6
        ),
        _at_most(
            groups,
            "published update without chance correlations: ||E||_1 <= 1e-6 within 60 iterations for all "
            "weights "
            "(Theorem 6 without noise)",
            arrays,
            1e-6,
        ),
        *_floors(groups, drawn, floor),
    ]
    for words, places in sixth.items():
        worst = max(worst_of(groups, places, key) for key in ("e_norm", "n_norm"))
        found.append(
            Verdict(
                f"Theorem 6, {words}: ||E||_1 and ||N||_1 at most c/2 = {ADVERSARIAL / 2:g} for all weights",
                worst <= ADVERSARIAL / 2 if has_all(groups, places, N_DRAWS) else None,
                f"worst {worst:.3f}",
            )
        )
    ratios = [
        record["error"] / record["known_weights"] for place in seventh for record in groups.get(place, [])
    ]
    found.append(
        Verdict(
            "Theorem 7, default update: the error is at most twice that of least squares with the true "
            "weights",
            max(ratios) <= 2 if has_all(groups, seventh, N_DRAWS) else None,
            f"{min(ratios):.2f} to {max(ratios):.2f} times" if ratios else "no trials",
        )
    )
    return found


def _at_most(groups: Groups, claim: str, places: list[tuple[Any, ...]], bound: float) -> Verdict:
    worst = worst_of(groups, places, "e_norm")
    return Verdict(claim, worst <= bound if has_all(groups, places, N_DRAWS) else None, f"worst {worst:.1e}")


def _floors(groups: Groups, places: list[tuple[Any, ...]], floor: float) -> list[Verdict]:
    ends = {place[0]: worst_of(groups, [place], "e_norm") for place in places if place in groups}
    alone = {kind: end for kind, end in ends.items() if kind != "mixed"}
    mixed = groups.get(places[-1], [])
    # Chance correlations count in units of the weight that is mixed in over those of the own one.
    uneven = (
        floor * math.sqrt(middle([record["C2"] / record["c2"] for record in mixed])) if mixed else math.nan
    )
    done = has_all(groups, places, N_DRAWS)
    return [
        Verdict(
            "published update on drawn samples: it stays within a factor of two of its floor 0.8 n / sqrt(N) "
            "for each kind of weights",
            all(floor / 2 <= end <= 2 * floor for end in alone.values()) if done else None,
            f"floor {floor:.2f}; worst draws "
            + ", ".join(f"{end:.2f} {kind}" for kind, end in alone.items()),
        ),
        Verdict(
            "mixed weights, whose second moments differ by more than the theorems allow (C2 > 2 c2): it is "
            "within a factor of two of sqrt(C2 / c2) times that floor",
            uneven / 2 <= ends["mixed"] <= 2 * uneven if done else None,
            f"{ends['mixed']:.2f}, expected {uneven:.2f}" if mixed else "no trials",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
