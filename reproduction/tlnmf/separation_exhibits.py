"""Tables and verdicts of the separation experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.exhibits import Exhibit, Measured, Table, Verdict
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread

METHODS = {"tl": "TL-NMF", "jd": "JD+NMF", "dct": "DCT IS-NMF"}
# Decibels by which a learnt transform is to be better than the fixed one to be called significantly better.
GAIN = 10.0
# The most a fit of 100 iterations may take, in seconds.
LONGEST = 60.0
ROUNDING = 1e-12


def summarize(records: Sequence[Record]) -> list[Exhibit]:
    """Return the tables, and what was to be shown."""
    mixtures = [record for record in records if record["part"] == "mixtures"]
    recording = [record for record in records if record["part"] == "recording"]
    exhibits: list[Exhibit] = []
    if mixtures:
        exhibits.append(_mixture_table(mixtures))
    if recording:
        exhibits.append(_recording_table(recording))
    return [*exhibits, *_mixture_verdicts(mixtures), *_recording_verdicts(recording, records)]


def _mixture_table(records: Sequence[Record]) -> Table:
    rows = []
    for (n_takes, window, method, init), group in sorted(
        grouped(records, "n_takes", "window", "method", "init").items(),
        key=lambda item: (
            item[0][0],
            item[0][1] != "tukey",
            list(METHODS).index(item[0][2]),
            item[0][3] or "",
        ),
    ):
        name = METHODS[method] + (f", from the {init.upper()}" if init else "")
        row: dict[str, Any] = {"S": n_takes, "window": window, "method": name, "n": len(group)}
        for name in ("sdr", "sir", "sar", "filtered_sdr"):
            row[name] = Measured(*mean_and_spread([record[name] for record in group]))
        row["least"] = min(record["sdr"] for record in group)
        for name in ("seconds", "fit_seconds"):
            row[name] = mean_and_spread([record[name] for record in group])[0]
        rows.append(row)
    columns = {
        "S": "S",
        "window": "window",
        "method": "method",
        "n": "mixtures",
        "sdr": "SDR (dB)",
        "least": "least SDR (dB)",
        "sir": "SIR (dB)",
        "sar": "SAR (dB)",
        "filtered_sdr": "SDR, filter (dB)",
        "seconds": "iterations (s)",
        "fit_seconds": "fit (s)",
    }
    caption = (
        "Made mixtures: mean and standard deviation over mixtures (at S = 10 each the mean over ten takes) "
        "of the scores of the worse source. Windows: Tukey with a tenth in its ends, as in the paper, or "
        "sine."
    )
    return Table(caption, columns, rows, 3)


def _recording_table(records: Sequence[Record]) -> Table:
    order = list(METHODS)
    rows = [
        {
            "method": METHODS[record["method"]],
            "objective": record["objective"],
            "divergence": record["divergence"],
            "unseen": record["unseen_objective"],
            "residual": record["residual"],
            "seconds": record["seconds"],
            "fit_seconds": record["fit_seconds"],
        }
        for record in sorted(records, key=lambda record: order.index(record["method"]))
    ]
    columns = {
        "method": "method",
        "objective": "C a coefficient",
        "divergence": "I a coefficient",
        "unseen": "C, unseen part",
        "residual": "sum of sources less recording",
        "seconds": "iterations (s)",
        "fit_seconds": "fit (s)",
    }
    return Table("The real recording: how well the models explain it (smaller is better).", columns, rows, 5)


def _mean(
    records: Sequence[Record],
    method: str,
    *,
    alone: bool,
    window: str = "tukey",
    init: str | None = None,
) -> float | None:
    group = [
        record["sdr"]
        for record in records
        if (record["method"], record["window"], record.get("init")) == (method, window, init)
        and (record["n_takes"] == 1) == alone
    ]
    return mean_and_spread(group)[0]


def _mixture_verdicts(records: Sequence[Record]) -> list[Verdict]:
    # The quick setting makes a few iterations on notes of its own, and can tell nothing.
    real = [record for record in records if record["set"] != "notes"]
    single = {method: _mean(real, method, alone=True) for method in METHODS}
    many = {method: _mean(real, method, alone=False) for method in METHODS}
    best = [
        value
        for window in ("tukey", "sine")
        if (value := _mean(real, "dct", alone=True, window=window)) is not None
    ]
    fixed = max(best) if len(best) == 2 else None
    diagonalized = [single["jd"], _mean(real, "jd", alone=True, init="dct")]
    two_stage = max((value for value in diagonalized if value is not None), default=None)
    return [
        Verdict(
            f"one realization: TL-NMF separates at least {GAIN:g} dB better (SDR) than the cosine transform "
            "in the better of its windows",
            None if single["tl"] is None or fixed is None else single["tl"] >= fixed + GAIN,
            _decibels(single["tl"], fixed),
        ),
        Verdict(
            "one realization: TL-NMF separates at least as well as JD+NMF from the better of its starts",
            None if single["tl"] is None or None in diagonalized else single["tl"] >= (two_stage or 0.0),
            _decibels(single["tl"], two_stage),
        ),
        Verdict(
            "ten realizations: TL-NMF and JD+NMF separate equally well, to 1 dB",
            None if many["tl"] is None or many["jd"] is None else abs(many["tl"] - many["jd"]) <= 1.0,
            _decibels(many["tl"], many["jd"]),
        ),
    ]


def _recording_verdicts(recording: Sequence[Record], records: Sequence[Record]) -> list[Verdict]:
    found = {record["method"]: record for record in recording}
    learnt, fixed = found.get("tl"), found.get("dct")
    both = learnt is not None and fixed is not None
    worst = max(record["residual"] for record in records)
    return [
        Verdict(
            "the sources sum to the recording to rounding, in every trial",
            worst <= ROUNDING,
            f"largest relative difference {worst:.1e}",
        ),
        Verdict(
            "the real recording: TL-NMF explains frames it has not seen better than the cosine transform",
            learnt["unseen_objective"] < fixed["unseen_objective"] if learnt and fixed else None,
            f"C a coefficient {learnt['unseen_objective']:.4f} and {fixed['unseen_objective']:.4f}"
            if learnt and fixed
            else "not run",
        ),
        Verdict(
            f"10 s of sound in frames of 512: 100 iterations of TL-NMF take at most {LONGEST:g} s",
            learnt["seconds"] <= LONGEST if both and learnt else None,
            f"{learnt['seconds']:.0f} s, the whole fit {learnt['fit_seconds']:.0f} s"
            if learnt
            else "not run",
        ),
    ]


def _decibels(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return "not run"
    return f"{first:.1f} and {second:.1f} dB"
