"""Number of components: the singular values propose, the held-out error judges, by family of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import stdtrit

from nonneg import compare_ranks
from nonneg._typing import FloatArray
from nonneg.datasets import circular_cones
from nonneg.rank_selection import cross_validation
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES

NAME = "studies/ranks"
FAMILIES = ("mixtures", "counts", "cones", "signatures", "two scales", "many", "peaks")
"""The last one was added when the rule was fixed."""
RATIO, HELD_OUT, BOTH = "singular-value-ratio", "cross-validation", "recommended"
RULES = (RATIO, HELD_OUT, BOTH)
"""The largest ratio alone, the smallest number whose held-out error is not significantly above the least, and
the default: the former unless its own held-out error is significantly above the least."""
FORMS = ("one standard error", "one standard error, logarithms", "t test")
"""Other forms of "not significantly above", which were tried as well."""
FIRST, N_DRAWS = 12, 24
"""Of each family. The draws before had a part in the choice of the rule and of its test."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw and family."""
    return [
        {"family": family, "draw": draw}
        for draw in range(FIRST, FIRST + (1 if quick else N_DRAWS))
        for family in FAMILIES
    ]


def planted(family: str, draw: int) -> tuple[Any, int]:
    """Draw a matrix with a known number of components; even and odd draws differ in sparsity or noise."""
    rng = np.random.default_rng([20261118, FAMILIES.index(family), draw])
    k, odd = int(rng.integers(3, 13)), draw % 2
    if family in ("mixtures", "many"):
        k = k if family == "mixtures" else int(rng.integers(17, 21))
        shape, noise = ((1.0, 0.3)[odd], 0.3) if family == "mixtures" else (1.0, (0.1, 0.3)[odd])
        X = rng.gamma(shape, size=(200, k)) @ rng.gamma(shape, size=(k, 80))
        X = np.maximum(X + noise * X.mean() * rng.standard_normal(X.shape), 0.0)
    elif family == "two scales":  # two components are thirty times as strong as the others
        W, H = rng.gamma(0.5, size=(200, k)), rng.gamma(0.5, size=(k, 60))
        W[:, :2] *= 30.0
        X = np.maximum(W @ H + (0.15, 0.3)[odd] * rng.standard_normal((200, 60)), 0.0)
    elif family == "counts":
        H = rng.gamma(0.3, size=(k, 100))
        H /= H.sum(axis=1, keepdims=True)
        depth = (300, 1500)[odd] * rng.lognormal(0.0, 0.3, size=(200, 1))
        X = rng.poisson(depth * (rng.dirichlet(np.full(k, 0.3), 200) @ H)).astype(float)
    elif family == "cones":
        X = circular_cones(600, 100, k, size_angle=0.2, rng=rng).X
        X = np.maximum(X + (0.01, 0.03)[odd] * rng.standard_normal(X.shape), 0.0)
    elif family == "peaks":  # two peaks per component, samples with about two fifths of the components
        centers, widths = rng.uniform(0, 120, size=(2, k, 1)), rng.uniform(2, 6, size=(2, k, 1))
        H = np.exp(-(((np.arange(120) - centers) / widths) ** 2) / 2).sum(axis=0)
        W = rng.lognormal(0.0, 0.5, size=(150, k)) * (rng.random((150, k)) < 0.4)
        X = W @ H * rng.lognormal(0.0, (0.05, 0.2)[odd], size=(150, 120))
    else:
        exposures = rng.gamma(0.5, (200, 2000)[odd] / (0.5 * k), size=(100, k))
        X = rng.poisson(exposures @ rng.dirichlet(np.full(96, 0.2), size=k)).astype(float)
    return X[:, X.sum(axis=0) > 0], k


def run(setting: Setting) -> list[dict[str, Any]]:
    """Apply the rules to one draw."""
    X, k = planted(setting["family"], setting["draw"])
    measured: list[tuple[Sequence[int], FloatArray]] = []
    judge = cross_validation.as_good_as_best

    def noted(candidates: Sequence[int], errors: FloatArray) -> tuple[list[int], int]:
        measured.append((candidates, errors))
        return judge(candidates, errors)

    with mock.patch.object(cross_validation, "as_good_as_best", noted):
        found = compare_ranks(X, k_max=24, rng=0, n_jobs=1)
    record = {"k": k, BOTH: found.rank} | {name: found.estimates[name].rank for name in (RATIO, HELD_OUT)}
    for form in FORMS:
        as_good = _as_good(*measured[-1], form)
        record[form] = record[RATIO] if record[RATIO] in as_good else as_good[0]
    return [record]


def _as_good(candidates: Sequence[int], errors: FloatArray, form: str) -> list[int]:
    values = np.log(errors) if "logarithms" in form else errors
    excess = values - values[:, [int(np.argmin(values.mean(axis=0)))]]
    factor = 1.0 if form.startswith("one") else stdtrit(len(errors) - 1, 0.975)
    margin = factor * excess.std(axis=0, ddof=1) / np.sqrt(len(errors))
    return [int(candidates[int(at)]) for at in np.flatnonzero(excess.mean(axis=0) <= margin)]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return how often each rule is right, and what the other families would choose for each."""
    by_family = {family: some for (family,), some in grouped(records, "family").items()}
    right = {
        family: {rule: float(np.mean([r[rule] == r["k"] for r in some])) for rule in (*RULES, *FORMS)}
        for family, some in by_family.items()
    }
    off = {
        family: {
            rule: float(np.mean([abs(np.log2(r[rule] / r["k"])) for r in some])) for rule in (*RULES, *FORMS)
        }
        for family, some in by_family.items()
    }
    rows, chosen_by = [], {}
    for family in right:
        others = [other for other in right if other != family]
        # Of rules that are right equally often, the one whose estimates are nearer.
        score = {
            rule: (
                round(float(np.mean([right[other][rule] for other in others])), 9),
                -float(np.mean([off[other][rule] for other in others])),
            )
            for rule in (*RULES, *FORMS)
        }
        chosen = max(score, key=lambda rule: score[rule]) if others else None
        chosen_by[family] = chosen
        rows.append(
            {"family": family}
            | {rule: f"{100 * right[family][rule]:.0f}%, {off[family][rule]:.2f}" for rule in RULES}
            | {
                "chosen": chosen,
                "held out": None if chosen is None else f"{100 * right[family][chosen]:.0f}%",
            }
        )
    columns = {"family": "family", **{rule: rule for rule in RULES}}
    columns |= {"chosen": "best in the other families", "held out": "it here"}
    full = len(records) == N_DRAWS * len(FAMILIES)
    worst = {rule: max(off[family][rule] for family in off) for rule in RULES}
    return [
        Paragraph(
            "Draws whose number of components is found exactly, and the mean of |log2(estimate / planted)|. "
            "`recommended` is the rule of `compare_ranks`: the largest ratio, unless its held-out error is "
            "significantly above the least. The last columns leave one family out: the rule, or other form "
            "of its test, that is most often right in the others (of equals the one that is nearer on "
            "average), and how often it is right in this one."
        ),
        Table("Planted numbers, by family of data.", columns, rows),
        Table(
            "Numbers found exactly with other forms of the test.",
            {"family": "family", BOTH: "t test, logarithms (default)", **{form: form for form in FORMS}},
            [
                {"family": family} | {rule: f"{100 * right[family][rule]:.0f}%" for rule in (BOTH, *FORMS)}
                for family in right
            ],
        ),
        Verdict(
            "every family, left out, is given the default by the others",
            all(chosen == BOTH for chosen in chosen_by.values()) if full else None,
            ", ".join(f"{family}: {chosen}" for family, chosen in chosen_by.items()),
        ),
        Verdict(
            "in its worst family the default is not farther from the planted number than either rule alone",
            worst[BOTH] <= min(worst.values()) if full else None,
            ", ".join(f"{rule} {value:.2f}" for rule, value in worst.items()),
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize)
