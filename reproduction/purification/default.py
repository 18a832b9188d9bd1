"""The default beside the published algorithm, on the same planted samples from the same initialization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.purification.planted_runs import cost, run, settings
from reproduction.registry import TITLES

NAME = "purification/default"
N_DRAWS = 5
CASES: dict[str, dict[str, Any]] = {
    "binary weights": {},
    "uniform weights": {"weights": "uniform"},
    "heavy weights": {"weights": "heavy"},
    "orthogonal array": {"samples": "array"},
    "adversarial noise": {"noise": "adversarial", "noise_level": 0.1},
    "noise that depends on the weights": {"noise": "dependent", "noise_level": 1.0},
    "unbiased noise": {"noise": "unbiased", "noise_level": 1.0},
}
"""Theorems 1, 2, 6 and 7: weights and noise; everything else as on the other pages."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per case and algorithm."""
    cases = [
        case | {"case": name, "update": update}
        for name, case in CASES.items()
        for update in ("regression", "published")
    ]
    return settings(cases[:2] if quick else cases, 1 if quick else N_DRAWS, common={"max_iter": 100})


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return errors side by side, and whether the default is ever behind."""
    errors = {
        place: np.array([record["error"] for record in sorted(group, key=lambda record: record["draw"])])
        for place, group in grouped(records, "case", "update").items()
    }
    rows, behind = [], []
    for case in CASES:
        both = [errors.get((case, update)) for update in ("regression", "published")]
        if both[0] is None or both[1] is None:
            continue
        difference = both[0] - both[1]
        error = float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
        rows.append(
            {
                "case": case,
                "default": f"{both[0].mean():.2g}",
                "published": f"{both[1].mean():.2g}",
                "difference": f"{difference.mean():.2g}",
                "error": f"{error:.1g}",
                "draws": len(difference),
            }
        )
        # Errors of the size of rounding are equal.
        if difference.mean() > max(2.0 * error, 1e-9):
            behind.append(case)
    headings = {
        "case": "case",
        "default": "default",
        "published": "published",
        "difference": "difference",
        "error": "standard error",
        "draws": "draws",
    }
    whole = len(rows) == len(CASES)
    return [
        Table(
            "Mean normalized error of the features after 100 iterations, the default number.", headings, rows
        ),
        Verdict(
            "The default is never behind the published algorithm by more than two standard errors",
            not behind if whole else None,
            f"behind: {', '.join(behind)}" if behind else f"{len(rows)} cases",
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
