"""Number of components: published proposals and the held-out error, by family of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg import compare_ranks
from nonneg.datasets import circular_cones
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "studies/ranks"
FAMILIES = ("mixtures", "counts", "cones", "signatures")
METHODS = ("singular-value-ratio", "cross-validation", "stability")
N_DRAWS = 12


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw and family."""
    return [
        {"family": family, "draw": draw} for draw in range(1 if quick else N_DRAWS) for family in FAMILIES
    ]


def planted(family: str, draw: int) -> tuple[Any, int]:
    """Draw a matrix with 3 to 12 components; even and odd draws differ in sparsity, depth or noise."""
    rng = np.random.default_rng([20261118, FAMILIES.index(family), draw])
    k, odd = int(rng.integers(3, 13)), draw % 2
    if family == "mixtures":
        shape = (1.0, 0.3)[odd]
        X = rng.gamma(shape, size=(200, k)) @ rng.gamma(shape, size=(k, 80))
        X = np.maximum(X + 0.3 * X.mean() * rng.standard_normal(X.shape), 0.0)
    elif family == "counts":
        H = rng.gamma(0.3, size=(k, 100))
        H /= H.sum(axis=1, keepdims=True)
        depth = (300, 1500)[odd] * rng.lognormal(0.0, 0.3, size=(200, 1))
        X = rng.poisson(depth * (rng.dirichlet(np.full(k, 0.3), 200) @ H)).astype(float)
    elif family == "cones":
        X = circular_cones(600, 100, k, size_angle=0.2, rng=rng).X
        X = np.maximum(X + (0.01, 0.03)[odd] * rng.standard_normal(X.shape), 0.0)
    else:
        exposures = rng.gamma(0.5, (200, 2000)[odd] / (0.5 * k), size=(100, k))
        X = rng.poisson(exposures @ rng.dirichlet(np.full(96, 0.2), size=k)).astype(float)
    return X[:, X.sum(axis=0) > 0], k


def run(setting: Setting) -> list[dict[str, Any]]:
    """Compare the methods on one draw."""
    X, k = planted(setting["family"], setting["draw"])
    found = compare_ranks(X, k_max=24, rng=0, n_jobs=1)
    return [{"k": k, "recommended": found.rank} | {name: found.estimates[name].rank for name in METHODS}]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return how often each method is right, and what the other families would choose for each."""
    right = {
        family: {name: float(np.mean([r[name] == r["k"] for r in some])) for name in METHODS}
        for (family,), some in grouped(records, "family").items()
    }
    off = {
        family: {name: float(np.median([abs(np.log2(r[name] / r["k"])) for r in some])) for name in METHODS}
        for (family,), some in grouped(records, "family").items()
    }
    rows = []
    for family in right:
        others = [other for other in right if other != family]
        score = {name: float(np.mean([right[other][name] for other in others])) for name in METHODS}
        chosen = max(score, key=lambda name: score[name]) if others else None
        rows.append(
            {"family": family}
            | {name: f"{100 * right[family][name]:.0f}%, {off[family][name]:.2f}" for name in METHODS}
            | {
                "chosen": chosen,
                "held out": None if chosen is None else f"{100 * right[family][chosen]:.0f}%",
            }
        )
    columns = {"family": "family", **{name: name for name in METHODS}}
    columns |= {"chosen": "best in the other families", "held out": "it here"}
    full = len(records) == N_DRAWS * len(FAMILIES)
    worst = {name: min(right[family][name] for family in right) for name in METHODS}
    followed = all(r["recommended"] == r["cross-validation"] for r in records)
    return [
        Paragraph(
            "Draws whose number of components, 3 to 12, is found exactly, and the median of |log2(estimate / "
            "planted)|. The judge of `compare_ranks` is the held-out error of cross-validation. The last "
            "columns leave one family out: the method that is most often right in the others, and how often "
            "it is right in this one."
        ),
        Table("Planted numbers, by family of data.", columns, rows),
        Verdict("the recommendation is the choice of the held-out error", followed, f"{len(records)} draws"),
        Verdict(
            "the held-out error finds the planted number in at least half of the draws of every family",
            worst["cross-validation"] >= 0.5 if full else None,
            ", ".join(f"{name} {100 * value:.0f}% in its worst family" for name, value in worst.items()),
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize)
