"""Section 6: the number of nonzero weights may grow with the number of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.merit.rates import Rate, rate_cell, rate_curves, rate_verdict
from reproduction.purification.planted_artifacts import median_series, panel
from reproduction.purification.planted_runs import cost, run, settings
from reproduction.registry import TITLES

NAME = "purification/sparsity"
N_DRAWS = 5
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
SIZES = (10, 20, 40)
SUCCESS = 1e-6
LINEAR = 0.3


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per sparsity, number of features and weight distribution."""
    cases: list[dict[str, Any]] = [
        {
            "case": weights,
            "weights": weights,
            "n": n,
            "m": 3 * n,
            "samples": 100 * n,
            "share": share,
            "s": share * n,
        }
        for n in ((20,) if quick else SIZES)
        for share in ((LINEAR,) if quick else SHARES)
        for weights in ("binary", "uniform")
    ]
    published = {"case": "published", "update": "covariance", "alpha": 0.25, "eta": 0.5, "n": 12, "m": 36}
    published |= {"samples": "population", "max_iter": 200}
    cases += [published | {"share": share, "s": 12 * share} for share in ((LINEAR,) if quick else SHARES)]
    common = {"max_iter": 100, "tol": 1e-10, "pseudo_inverse": "moore-penrose"}
    return settings([common | case for case in cases], 1 if quick else N_DRAWS)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return success rates, the iterations taken, and the claims."""
    groups = grouped(records, "case", "n", "share")
    rates = {
        place: Rate(sum(_recovered(record) for record in group), len(group))
        for place, group in groups.items()
    }
    shares = sorted({place[2] for place in groups})
    pairs = list(dict.fromkeys(place[:2] for place in groups))
    names = {pair: f"{pair[0]}, n = {pair[1]}" for pair in pairs}
    panels = []
    for kind in ("binary", "uniform"):
        chosen = [pair for pair in pairs if pair[0] == kind or (kind == "binary" and pair[0] == "published")]
        curves = {
            names[pair]: {share: rates[*pair, share] for share in shares if (*pair, share) in rates}
            for pair in chosen
        }
        panels.append(rate_curves(f"{kind} weights", "s / n", curves))
    steps = []
    for pair in pairs:
        points = {
            share: groups[*pair, share]
            for share in shares
            if (*pair, share) in groups and rates[*pair, share].value == 1
        }
        if points and pair[0] != "published":
            steps.append(median_series(names[pair], points, "n_iter"))
    panels.append(panel("iterations to convergence", "s / n", steps, y_label="iterations", x_log=False))
    columns = {"share": "s / n"} | {str(pair): name for pair, name in names.items()}
    rows = [
        {"share": share} | {str(pair): rate_cell(rates.get((*pair, share))) for pair in pairs}
        for share in shares
    ]
    small = [share for share in SHARES if share <= LINEAR]
    return [
        Figure("sparsity", "Success rate against the fraction of nonzero weights.", panels),
        Table("Success rate with exact 95% intervals.", columns, rows, 3),
        rate_verdict(
            f"linear sparsity: every draw succeeds for s up to {LINEAR:g} n, for every n and both kinds "
            f"of weights",
            [rates.get((kind, n, share)) for kind in ("binary", "uniform") for n in SIZES for share in small],
            1.0,
            N_DRAWS,
        ),
        rate_verdict(
            f"published update: every draw succeeds for s up to {LINEAR:g} n",
            [rates.get(("published", 12, share)) for share in small],
            1.0,
            N_DRAWS,
        ),
        _constant(rates),
    ]


def _recovered(record: Record) -> bool:
    error = record["relative_e_norm"]
    return error is not None and error <= SUCCESS


def _constant(rates: dict[tuple[Any, ...], Rate]) -> Verdict:
    """Find the largest fraction at which all draws succeed, by size."""
    claim = "the largest fraction does not shrink as n grows from 10 to 40: s is linear in n"
    told, ends = [], {}
    for kind in ("binary", "uniform"):
        for n in SIZES:
            found = [rates.get((kind, n, share)) for share in SHARES]
            known = [rate for rate in found if rate is not None]
            if len(known) < len(SHARES) or any(rate.n < N_DRAWS for rate in known):
                return Verdict(claim, None, "not enough trials")
            failed = [share for share, rate in zip(SHARES, known, strict=True) if rate.value < 1]
            ends[kind, n] = min(failed, default=1.0)
            told.append(f"{kind}, n = {n}: all succeed below {ends[kind, n]:g}")
    steady = all(ends[kind, 40] >= ends[kind, 10] for kind in ("binary", "uniform"))
    return Verdict(claim, steady, "; ".join(told))


EXPERIMENT = Experiment(NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost)
