"""Figure 4a: success rate against the signal-to-noise ratio, Dirichlet weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Figure, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.merit.anchor_trials import METHODS, cost, run, settings_by_draws
from reproduction.merit.authors_code import authors_rates
from reproduction.merit.rates import (
    Rate,
    agreement_verdict,
    default_verdict,
    rate_cell,
    rate_curves,
    success_rates,
)
from reproduction.registry import TITLES

NAME = "merit/figure-4a"
N_DRAWS = 50
SNRS = tuple(range(5, 16))
SHOWN = ("merit", "merit-0", "fast-gradient", "spa", "default")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per method, signal-to-noise ratio and batch of draws."""
    common = {"data": "dirichlet", "n": 200, "n_features": 50, "n_anchors": 40}
    snrs = (7, 11) if quick else SNRS
    cases = [{"snr": snr, "method": method} for snr in snrs for method in SHOWN]
    return settings_by_draws(cases, 2 if quick else N_DRAWS, 10, common)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, a table, and the claims."""
    rates = success_rates(records, "method", "snr")
    theirs = authors_rates("figure-4a")
    snrs = sorted({snr for _, snr in rates})
    curves: dict[str, dict[float, Rate]] = {
        METHODS[name]: {snr: rate for (method, snr), rate in rates.items() if method == name}
        for name in SHOWN
    }
    compared = [name for name in SHOWN if any(method == name for method, _ in theirs)]
    rows = [
        {"snr": snr}
        | {name: rate_cell(rates.get((name, snr))) for name in SHOWN}
        | {
            f"{name} (authors)": theirs[name, snr].value if (name, snr) in theirs else None
            for name in compared
        }
        for snr in snrs
    ]
    columns = {"snr": "SNR (dB)"} | {name: METHODS[name] for name in SHOWN}
    columns |= {f"{name} (authors)": f"{METHODS[name]}, authors' code" for name in compared}
    pairs = {
        f"{METHODS[name]} at {snr} dB": (rates.get((name, snr)), rate) for (name, snr), rate in theirs.items()
    }
    return [
        Figure(
            "success-rates",
            "Success rate against the signal-to-noise ratio. Bars: exact 95% intervals.",
            [rate_curves("Dirichlet weights, K = 40, N = 200", "SNR (dB)", curves)],
            n_columns=1,
        ),
        Table("Success rates with exact 95% intervals.", columns, rows, 3),
        _order(rates, "fast-gradient", snrs),
        _order(rates, "spa", snrs),
        agreement_verdict("all rates agree with those of the authors' code", pairs, N_DRAWS),
        default_verdict(
            {snr: (rates.get(("default", snr)), rates.get(("merit", snr))) for snr in snrs}, N_DRAWS
        ),
    ]


def _order(rates: dict[tuple[Any, ...], Rate], other: str, snrs: Sequence[float]) -> Verdict:
    claim = f"MERIT succeeds at least as often as {METHODS[other]} at every ratio"
    pairs = {snr: (rates.get(("merit", snr)), rates.get((other, snr))) for snr in snrs}
    known = {snr: (ours, its) for snr, (ours, its) in pairs.items() if ours is not None and its is not None}
    worse = [
        f"{ours} against {its} at {snr} dB" for snr, (ours, its) in known.items() if ours.value < its.value
    ]
    enough = len(known) == len(SNRS) and all(ours.n >= N_DRAWS <= its.n for ours, its in known.values())
    return Verdict(claim, not worse if enough else None, "; ".join(worse))


EXPERIMENT = Experiment(
    NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, cost=cost, supports_device=True
)
