"""Theorem 1 without noise: the error falls geometrically."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from reproduction.artifacts import Artifact, Figure, Series, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_artifacts import (
    geometric_rate,
    has_all,
    iteration_series,
    panel,
    worst_of,
)
from reproduction.purification.planted_runs import cost, run, settings, worst
from reproduction.registry import TITLES

NAME = "purification/rate"
N_DRAWS = 5
SIZES = (20, 50, 100)
PROOF_ETA = 1.0 / 60
CASES = ("default", "published", "proof")
WORDS = {
    "default": "regression update, drawn samples",
    "published": "covariance update, orthogonal array",
    "proof": "covariance update with the proof's step size, whole distribution",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per update and number of features."""
    sizes = (20,) if quick else SIZES
    published = {"update": "covariance", "alpha": 0.25, "pseudo_inverse": "moore-penrose", "m": 0}
    cases: list[dict[str, Any]] = [
        {"case": "default", "n": n, "m": (2 if n == 100 else 5) * n, "samples": 100 * n, "max_iter": 25}
        for n in sizes
    ]
    cases += [
        published | {"case": "published", "n": n, "m": 2 * n, "samples": "array", "blocks": 2, "eta": 0.5}
        for n in sizes
    ]
    cases.append(
        published | {"case": "proof", "n": 12, "m": 36, "samples": "population", "s": 2.0, "eta": PROOF_ETA}
    )
    return settings(cases, 1 if quick else N_DRAWS, common={"curve": True})


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, the contraction factors, and the claims."""
    groups = grouped(records, "case", "n")
    rates = {
        place: [geometric_rate(record["e_curve"]) for record in group] for place, group in groups.items()
    }
    rows = [
        {
            "case": WORDS[case],
            "n": n,
            "rate": worst(rates[case, n]),
            "end": worst([record["e_norm"] for record in group]),
            "n_iter": group[0]["n_iter"],
        }
        for (case, n), group in groups.items()
    ]
    panels = [
        panel(
            WORDS[case],
            "iteration",
            [iteration_series(f"n = {n}", group) for (kind, n), group in groups.items() if kind == case],
            y_label="||E||_1",
            x_log=False,
        )
        for case in CASES[:2]
        if any(kind == case for kind, _ in groups)
    ]
    proof = groups.get(("proof", 12), [])
    if proof:
        shown = iteration_series("measured", proof, "potentials")
        first = shown.y[0] or 0.0
        bound = [first * (1 - PROOF_ETA / 25) ** t for t in shown.x]
        panels.append(
            panel(
                WORDS["proof"],
                "iteration",
                [shown, Series("(1 - eta/25)^t", shown.x, bound, style="dashed")],
                y_label="potential",
                x_log=False,
            )
        )
    return [
        Figure("rate", "Error and potential by iteration, medians over draws.", panels),
        Table(
            "Worst draw: the factor by which an iteration multiplies ||E||_1 (a line through the "
            "logarithms "
            "down to 1e-11), and final ||E||_1.",
            {"case": "", "n": "n", "rate": "factor", "end": "final ||E||_1", "n_iter": "iterations"},
            rows,
            3,
        ),
        *_verdicts(groups, rates),
    ]


def _verdicts(groups: Any, rates: Any) -> list[Verdict]:
    places = {case: [(case, n) for n in SIZES] for case in CASES[:2]}
    done = {case: has_all(groups, places[case], N_DRAWS) for case in places}
    ends = {case: worst_of(groups, places[case], "e_norm") for case in places}
    factors = {case: [(n, worst(rates[case, n])) for n in SIZES if (case, n) in rates] for case in places}
    told = {case: ", ".join(f"{rate:.2f} for n = {n}" for n, rate in factors[case]) for case in places}
    proof = groups.get(("proof", 12), [])
    steps = [after / before for record in proof for before, after in pairwise(record["potentials"])]
    return [
        Verdict(
            "default update: ||E||_1 <= 1e-10 within 25 iterations for n = 20, 50 and 100",
            ends["default"] <= 1e-10 if done["default"] else None,
            f"worst {ends['default']:.1e}; contraction factors per iteration {told['default']}",
        ),
        Verdict(
            "published update: ||E||_1 <= 1e-10 within 60 iterations for n = 20, 50 and 100, by a "
            "factor of "
            "at most 0.8 per iteration",
            ends["published"] <= 1e-10 and max(rate for _, rate in factors["published"]) <= 0.8
            if done["published"]
            else None,
            f"worst {ends['published']:.1e}; factors {told['published']}",
        ),
        Verdict(
            "the proof's step size: every iteration lowers the potential at least by the factor 1 - eta/25",
            max(steps) <= 1 - PROOF_ETA / 25 if len(proof) >= N_DRAWS else None,
            f"largest factor {max(steps):.4f}, {1 - PROOF_ETA / 25:.4f} is proved" if steps else "no trials",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
