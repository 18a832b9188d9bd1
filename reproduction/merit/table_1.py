"""Table I: success rate, spectral angle and approximation for growing numbers of anchors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.anchor_trials import METHODS, cost, run, settings_by_draws
from reproduction.merit.rates import (
    agreement_verdict,
    default_verdict,
    rate_cell,
    rate_of,
    rate_verdict,
    success_rates,
)
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "merit/table-1"
N_DRAWS = 50
NUMBERS = (40, 50, 60, 70)
SHOWN = ("spa", "fast-gradient", "merit", "default")
# Means of two samples agree within this many standard errors of their difference: 99% of a normal variable.
STANDARD_ERRORS = 2.58
# The printed angles are this many times those of the definition, as far as 50 draws can tell.
UNIT = {"mrsa": 10 / 3}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per method, number of anchors and batch of draws."""
    common = {"data": "dirichlet", "n": 200, "n_features": 80, "snr": 10}
    numbers = (40, 70) if quick else NUMBERS
    cases = [{"n_anchors": k, "method": method} for k in numbers for method in SHOWN]
    return settings_by_draws(cases, 2 if quick else N_DRAWS, 10, common)


def published(k: int, measure: str, method: str) -> float | None:
    """Return a number of the paper."""
    if method == "default":
        return None
    table = published_values("merit")["table_1"]
    at = table["columns"].index(f"{measure}_{METHODS[method]}")
    return next((row[at] for row in table["rows"] if row[0] == k), None)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the table in three parts, and the claims."""
    groups = grouped(records, "n_anchors", "method")
    rates = success_rates(records, "n_anchors", "method")
    numbers = sorted({k for k, _ in groups})
    columns = {"k": "K"} | {name: METHODS[name] for name in SHOWN}
    success = [
        {"k": k} | {name: rate_cell(rates.get((k, name)), published(k, "success", name)) for name in SHOWN}
        for k in numbers
    ]
    others = {
        measure: [{"k": k} | {name: _mean(groups, k, measure, name) for name in SHOWN} for k in numbers]
        for measure in ("mrsa", "rae")
    }
    pairs = {
        f"{METHODS[name]}, K = {k}": (rates.get((k, name)), rate_of(share, N_DRAWS))
        for k in NUMBERS
        for name in SHOWN
        if (share := published(k, "success", name)) is not None
    }
    return [
        Table("Success rate with exact 95% intervals.", columns, success, 3),
        Table("10/3 MRSA, mean ± standard deviation over draws.", columns, others["mrsa"], 4),
        Table("RAE, mean ± standard deviation over draws.", columns, others["rae"], 4),
        Paragraph(_factor(groups)),
        rate_verdict(
            "MERIT finds all anchors in every draw, for every K",
            [rates.get((k, "merit")) for k in NUMBERS],
            1.0,
            N_DRAWS,
        ),
        Verdict(
            "SPA's rate falls with K, to 0 at K = 70",
            _falls([rates.get((k, "spa")) for k in NUMBERS]),
            ", ".join(str(rates[k, "spa"]) for k in numbers if (k, "spa") in rates),
        ),
        agreement_verdict("all twelve success rates agree with the published ones", pairs, N_DRAWS),
        default_verdict({k: (rates.get((k, "default")), rates.get((k, "merit"))) for k in NUMBERS}, N_DRAWS),
        _agreement(groups, "rae", "all twelve RAE agree with the published ones"),
        _agreement(groups, "mrsa", "all twelve published MRSA are 10/3 times those of the definition"),
    ]


def _mean(groups: dict[tuple[Any, ...], list[dict[str, Any]]], k: int, measure: str, name: str) -> Measured:
    unit = UNIT.get(measure, 1.0)
    values = [unit * record[measure] for record in groups.get((k, name), [])]
    return Measured(
        *mean_and_spread(values), published=published(k, measure, name), n_draws=max(1, len(values))
    )


def _falls(rates: Sequence[Any]) -> bool | None:
    if any(rate is None or rate.n < N_DRAWS for rate in rates):
        return None
    shares = [rate.value for rate in rates]
    return shares == sorted(shares, reverse=True) and shares[-1] == 0


def _factor(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> str:
    """Estimate the factor between the printed angles and the definition, from MERIT's at every K."""
    total, weight = 0.0, 0.0
    for k in NUMBERS:
        values = [record["mrsa"] for record in groups.get((k, "merit"), [])]
        mean, spread = mean_and_spread(values)
        theirs = published(k, "mrsa", "merit")
        if mean and spread and theirs is not None:
            factor = theirs / mean
            precision = 1 / (1 / len(values) + 1 / N_DRAWS) / (factor * spread / mean) ** 2
            total, weight = total + precision * factor, weight + precision
    if not weight:
        return ""
    return (
        f"The published MRSA of MERIT is {total / weight:.3f} times that of the definition, "
        f"with a standard error of {1 / math.sqrt(weight):.3f} over all K."
    )


def _agreement(groups: dict[tuple[Any, ...], list[dict[str, Any]]], measure: str, claim: str) -> Verdict:
    apart, compared = [], 0
    for k in NUMBERS:
        for name in SHOWN[:-1]:
            cell, n = _mean(groups, k, measure, name), len(groups.get((k, name), []))
            mean, spread, theirs = cell.value, cell.spread, cell.published
            if mean is None or spread is None or theirs is None or n < N_DRAWS:
                return Verdict(claim, None, f"fewer than {N_DRAWS} trials somewhere")
            compared += 1
            # The published mean rests on the same number of draws, whose spread is taken to be that of ours.
            allowed = STANDARD_ERRORS * spread * math.sqrt(1 / n + 1 / N_DRAWS)
            if abs(mean - theirs) > allowed:
                apart.append(f"{METHODS[name]}, K = {k}: {mean:.4f} against {theirs:.4f}")
    return Verdict(claim, not apart, "; ".join(apart) or f"{compared} compared")


EXPERIMENT = Experiment(
    NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost, supports_device=True
)
