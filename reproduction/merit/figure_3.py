"""Figure 3: spectral angles and approximation against the signal-to-noise ratio, middle points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Curves, Figure, Measured, Series, Table, Verdict
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.anchor_trials import METHODS, cost, run
from reproduction.merit.middle_settings import N_DRAWS, trials
from reproduction.merit.middle_settings import SHOWN as PUBLISHED
from reproduction.registry import TITLES

NAME = "merit/figure-3"
SHOWN = (*PUBLISHED, "default")
MEASURES = {"mrsa": "MRSA", "rae": "RAE"}


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, a table, and the claims."""
    groups = grouped(records, "method", "snr")
    snrs = sorted({snr for _, snr in groups})
    rows = []
    for snr in snrs:
        row: dict[str, Any] = {"snr": snr}
        for measure in MEASURES:
            for name in SHOWN:
                values = [record[measure] for record in groups.get((name, snr), [])]
                row[f"{measure} {name}"] = Measured(*mean_and_spread(values))
        rows.append(row)
    columns = {"snr": "SNR (dB)"} | {
        f"{measure} {name}": f"{words} {METHODS[name]}"
        for measure, words in MEASURES.items()
        for name in SHOWN
    }
    return [
        Figure(
            "angles-and-approximation",
            "Mean MRSA and RAE against the signal-to-noise ratio. Bars: twice the standard error.",
            [_panel(groups, snrs, measure) for measure in MEASURES],
        ),
        Table("Mean ± standard deviation over draws.", columns, rows, 4),
        *_verdicts(groups, snrs),
    ]


def _panel(
    groups: dict[tuple[Any, ...], list[dict[str, Any]]], snrs: Sequence[float], measure: str
) -> Curves:
    series = []
    for name in SHOWN:
        means, bars = [], []
        for snr in snrs:
            values = [record[measure] for record in groups.get((name, snr), [])]
            mean, spread = mean_and_spread(values)
            means.append(mean)
            bars.append(0.0 if spread is None else 2.0 * spread / math.sqrt(len(values)))
        series.append(Series(METHODS[name], list(snrs), means, bars))
    return Curves(MEASURES[measure], "SNR (dB)", MEASURES[measure], series)


def _verdicts(groups: dict[tuple[Any, ...], list[dict[str, Any]]], snrs: Sequence[float]) -> list[Verdict]:
    def mean(name: str, snr: float, measure: str) -> float | None:
        return mean_and_spread([record[measure] for record in groups.get((name, snr), [])])[0]

    enough = all(len(group) >= N_DRAWS for group in groups.values()) and {10, 12, 20} <= set(snrs)
    from_10 = [snr for snr in snrs if snr >= 10]
    angles = {(name, snr): mean(name, snr, "mrsa") for name in SHOWN for snr in from_10}
    best = all(
        (angles["merit", snr] or 0.0) <= min(angles[other, snr] or 0.0 for other in ("fast-gradient", "spa"))
        for snr in from_10
    )
    above = max(
        (angle or 0.0 for (name, snr), angle in angles.items() if name == "merit" and snr >= 12), default=0.0
    )
    fast = mean("fast-gradient", 20, "mrsa")
    return [
        Verdict(
            "MERIT has the smallest mean MRSA of the three at every ratio from 10 dB on",
            best if enough else None,
        ),
        Verdict(
            "MERIT's MRSA is 0 from 12 dB on",
            above < 1e-4 if enough else None,
            f"largest mean {above:.3g}",
        ),
        Verdict(
            "FastGradient's MRSA is 0 at 20 dB",
            None if fast is None or not enough else fast < 1e-4,
            "no trials" if fast is None else f"mean {fast:.3g}",
        ),
        _beside_default(groups, snrs, enough),
    ]


def _beside_default(
    groups: dict[tuple[Any, ...], list[dict[str, Any]]], snrs: Sequence[float], enough: bool
) -> Verdict:
    worse, missing = [], False
    for snr in snrs:
        draws = [[record["mrsa"] for record in groups.get((name, snr), [])] for name in ("default", "merit")]
        (ours, spread), (theirs, other) = (mean_and_spread(values) for values in draws)
        if ours is None or theirs is None:
            missing = True
            continue
        error = math.hypot((spread or 0.0) / len(draws[0]) ** 0.5, (other or 0.0) / len(draws[1]) ** 0.5)
        if ours - theirs > 2 * error:
            worse.append(f"{ours:.3g} against {theirs:.3g} at {snr} dB")
    return Verdict(
        "the default's mean MRSA is at most MERIT's at every ratio, up to two standard errors",
        not worse if enough and not missing else None,
        "; ".join(worse) or "everywhere",
    )


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=lambda quick: trials(quick, SHOWN),
    run=run,
    summarize=summarize,
    cost=cost,
    supports_device=True,
)
