"""Figure 2: success rate against the signal-to-noise ratio, middle points."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.artifacts import Artifact, Figure, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.merit.anchor_trials import METHODS, cost, run
from reproduction.merit.authors_code import authors_rates
from reproduction.merit.middle_settings import N_DRAWS, trials
from reproduction.merit.middle_settings import SHOWN as PUBLISHED
from reproduction.merit.rates import (
    Rate,
    agreement_verdict,
    default_verdict,
    rate_cell,
    rate_curves,
    rate_verdict,
    success_rates,
)
from reproduction.registry import TITLES

NAME = "merit/figure-2"
SHOWN = (*PUBLISHED, "default")


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, a table, and the claims."""
    rates = success_rates(records, "method", "snr")
    theirs = authors_rates("figure-2")
    snrs = sorted({snr for _, snr in rates})
    curves: dict[str, dict[float, Rate]] = {
        METHODS[name]: {snr: rate for (method, snr), rate in rates.items() if method == name}
        for name in SHOWN
    }
    rows = [
        {"snr": snr}
        | {name: rate_cell(rates.get((name, snr))) for name in SHOWN}
        | {
            f"{name} (authors)": theirs[name, snr].value if (name, snr) in theirs else None
            for name in PUBLISHED
        }
        for snr in snrs
    ]
    columns = {"snr": "SNR (dB)"} | {name: METHODS[name] for name in SHOWN}
    columns |= {f"{name} (authors)": f"{METHODS[name]}, authors' code" for name in PUBLISHED}
    return [
        Figure(
            "success-rates",
            "Success rate against the signal-to-noise ratio. Bars: exact 95% intervals.",
            [rate_curves("middle points, K = 10", "SNR (dB)", curves)],
            n_columns=1,
        ),
        Table("Success rates with exact 95% intervals.", columns, rows, 3),
        *_verdicts(rates, theirs),
    ]


def _verdicts(rates: dict[tuple[object, ...], Rate], theirs: dict[tuple[str, int], Rate]) -> list[Verdict]:
    merit = {snr: rate for (method, snr), rate in rates.items() if method == "merit"}
    fast = {snr: rate for (method, snr), rate in rates.items() if method == "fast-gradient"}
    clear = [merit.get(snr) for snr in range(12, 21)]
    whole = Rate(N_DRAWS, N_DRAWS)
    spa = rates.get(("spa", 20))
    pairs = {
        f"{METHODS[name]} at {snr} dB": (rates.get((name, snr)), rate) for (name, snr), rate in theirs.items()
    }
    return [
        rate_verdict(
            f"over {N_DRAWS} draws MERIT finds all anchors in at least 0.7 of them at 10 dB",
            [merit.get(10)],
            0.7,
            N_DRAWS,
        ),
        rate_verdict("MERIT always finds them from 12 dB on", clear, 1.0, N_DRAWS),
        rate_verdict("FastGradient always finds them at 20 dB", [fast.get(20)], 1.0, N_DRAWS),
        agreement_verdict(
            "MERIT's rate at 10 dB and FastGradient's at 16 dB agree with the published 100%",
            {"MERIT": (merit.get(10), whole), "FastGradient": (fast.get(16), whole)},
            N_DRAWS,
        ),
        Verdict(
            "SPA does not reach 100% even at 20 dB",
            None if spa is None or spa.n < N_DRAWS else spa.value < 1,
            "no trials" if spa is None else str(spa),
        ),
        agreement_verdict("all rates agree with those of the authors' code", pairs, N_DRAWS),
        default_verdict({snr: (rates.get(("default", snr)), rate) for snr, rate in merit.items()}, N_DRAWS),
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=lambda quick: trials(quick, SHOWN),
    run=run,
    summarize=summarize,
    cost=cost,
    supports_device=True,
)
