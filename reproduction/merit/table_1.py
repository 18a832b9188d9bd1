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
SHOWN = ("spa", "fast-gradient", "merit")
# Means of two samples agree within so many standard errors of their difference: 99 % of a normal variable.
STANDARD_ERRORS = 2.58


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per method, number of anchors and batch of draws."""
    common = {"data": "dirichlet", "n": 200, "n_features": 80, "snr": 10}
    numbers = (40, 70) if quick else NUMBERS
    cases = [{"n_anchors": k, "method": method} for k in numbers for method in SHOWN]
    return settings_by_draws(cases, 2 if quick else N_DRAWS, 10, common)


def published(k: int, measure: str, method: str) -> float | None:
    """Return a number of the paper."""
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
        Table("Success rate with exact 95 % intervals.", columns, success, 3),
        Table(
            "MRSA, mean ± standard deviation over draws.",
            columns,
            others["mrsa"],
            4,
            dict.fromkeys(SHOWN, "they are in another unit, which the paper does not give"),
        ),
        Table("RAE, mean ± standard deviation over draws.", columns, others["rae"], 4),
        Paragraph(_angles(groups, numbers)),
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
        _approximations(groups),
        _one_factor(groups),
    ]


def _mean(groups: dict[tuple[Any, ...], list[dict[str, Any]]], k: int, measure: str, name: str) -> Measured:
    values = [record[measure] for record in groups.get((k, name), [])]
    return Measured(*mean_and_spread(values), published=published(k, measure, name))


def _falls(rates: Sequence[Any]) -> bool | None:
    if any(rate is None or rate.n < N_DRAWS for rate in rates):
        return None
    shares = [rate.value for rate in rates]
    return shares == sorted(shares, reverse=True) and shares[-1] == 0


def _angles(groups: dict[tuple[Any, ...], list[dict[str, Any]]], numbers: Sequence[int]) -> str:
    ratios = []
    for k in numbers:
        mean, _ = mean_and_spread([record["mrsa"] for record in groups.get((k, "merit"), [])])
        theirs = published(k, "mrsa", "merit")
        if mean and theirs is not None:
            ratios.append(f"{theirs / mean:.2f} (K = {k}, {math.pi * mean / 100:.3f} rad)")
    return "The published MRSA of MERIT is larger than ours by the factors " + ", ".join(ratios) + "."


def _approximations(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> Verdict:
    claim = "all twelve RAE agree with the published ones"
    apart, compared = [], 0
    for k in NUMBERS:
        for name in SHOWN:
            values = [record["rae"] for record in groups.get((k, name), [])]
            mean, spread = mean_and_spread(values)
            theirs = published(k, "rae", name)
            if mean is None or spread is None or theirs is None or len(values) < N_DRAWS:
                return Verdict(claim, None, f"fewer than {N_DRAWS} trials somewhere")
            compared += 1
            # The published mean rests on the same number of draws, whose spread is taken to be that of ours.
            allowed = STANDARD_ERRORS * spread * math.sqrt(1 / len(values) + 1 / N_DRAWS)
            if abs(mean - theirs) > allowed:
                apart.append(f"{METHODS[name]}, K = {k}: {mean:.4f} against {theirs:.4f}")
    return Verdict(claim, not apart, "; ".join(apart) or f"{compared} compared")


def _one_factor(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> Verdict:
    """Judge the angles up to their unit."""
    claim = "all twelve MRSA agree with the published ones up to one common factor"
    cells = {
        f"{METHODS[name]}, K = {k}": (_mean(groups, k, "mrsa", name), len(groups.get((k, name), [])))
        for k in NUMBERS
        for name in SHOWN
    }
    pairs = [(cell.value, cell.published) for cell, n in cells.values() if n >= N_DRAWS]
    if len(pairs) < len(cells):
        return Verdict(claim, None, f"fewer than {N_DRAWS} trials somewhere")
    factor = sum(theirs or 0.0 for _, theirs in pairs) / sum(ours or 0.0 for ours, _ in pairs)
    apart = []
    for where, (cell, n) in cells.items():
        ours, theirs = factor * (cell.value or 0.0), cell.published or 0.0
        allowed = STANDARD_ERRORS * factor * (cell.spread or 0.0) * math.sqrt(1 / n + 1 / N_DRAWS)
        if abs(ours - theirs) > allowed:
            apart.append(f"{where}: {ours:.2f} against {theirs:.2f}")
    words = "; ".join(apart) or f"{len(cells)} compared"
    return Verdict(claim, not apart, f"factor {factor:.3f}; {words}")


EXPERIMENT = Experiment(
    NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost, supports_device=True
)
