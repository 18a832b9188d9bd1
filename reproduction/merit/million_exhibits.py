"""What the run on a million points shows, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.exhibits import Exhibit, Figure, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.anchor_trials import METHODS
from reproduction.merit.rates import Rate, rate_cell, rate_curves, success_rates

MILLION = 1_000_000
SEARCH_SIZE = 100_000
ITERATION_GOAL, TOTAL_GOAL = 0.025, 240.0

SHOWS = """
No published run of a convex self-dictionary method exceeds about 100000 points. Here are a million:
Dirichlet weights, K = 40 anchors in 50 dimensions, as in Figure 4 of Nguyen, Fu & Wu, in float32 on one GPU.
First, 100000 points are searched at several signal-to-noise ratios, by SPA and by MERIT (100 iterations
from C = 0 with the published steps, mu = 1e-5). The published weight of the row sparsity, the norm of a
residual over 2 K, grows like the root of the number N of points and is too large for many of them: at N =
100000 and 17 dB MERIT found 33 of the 40 anchors with it, none with 3 times it, and all with 0.03 to 0.3
times it. It is multiplied by sqrt(1000 / N) here, which makes it that of 1000 points. The lowest ratio at
which MERIT finds all anchors in every draw and SPA in none is then taken for a million points; where that
is too low for them, a decibel more is tried. A draw is searched from high ratios to low ones until MERIT
misses an anchor. Times are those of the whole search, with the weight that rests on SPA's anchors, without
the drawing of the points.
"""


def lowest_ratio(records: Sequence[Record]) -> float | None:
    """Return the lowest ratio at which MERIT finds all anchors in every draw, and SPA in none."""
    rates = success_rates(_searches(records), "snr", "method")
    # Where MERIT failed in one draw, that draw was not tried at lower ratios.
    n_draws = max((rate.n for rate in rates.values()), default=0)
    fit = [
        snr
        for snr in {snr for snr, _ in rates}
        if rates.get((snr, "merit")) == Rate(n_draws, n_draws) and rates.get((snr, "spa")) == Rate(0, n_draws)
    ]
    return min(fit, default=None)


def failed_above(records: Sequence[Record], setting: Setting) -> bool:
    """Tell whether MERIT missed anchors of the same draw at a higher ratio."""
    return any(
        record["method"] == "merit" and record["snr"] > setting["snr"] and not record["success"]
        for record in _searches(records)
        if (record["n"], record["draw"]) == (setting["n"], setting["draw"])
    )


def _searches(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.get("stage") == "search" and "method" in record]


def shown_before(records: Sequence[Record], n: int, step: int) -> bool:
    """Tell whether an earlier large run had MERIT find all anchors."""
    return any(
        record.get("success") == 1
        for record in records
        if record.get("stage") == "large"
        and record["n"] == n
        and record["step"] < step
        and record.get("method") == "merit"
    )


def summarize(records: Sequence[Record]) -> list[Exhibit]:
    """Return the searches, the large runs, and what was to be shown."""
    searches = _searches(records)
    large = [record for record in records if record["stage"] == "large" and "method" in record]
    exhibits: list[Exhibit] = []
    if searches:
        exhibits += _searched(searches)
    lowest = lowest_ratio(records)
    exhibits.append(
        Paragraph(
            "There is no ratio at which MERIT alone succeeds in every draw."
            if lowest is None
            else f"The lowest ratio at which MERIT succeeds in every draw and SPA in none: {lowest:g} dB."
        )
    )
    if large:
        exhibits.append(_large(large))
    return [*exhibits, *_verdicts(searches, large)]


def _searched(searches: Sequence[Record]) -> list[Exhibit]:
    rates = success_rates(searches, "method", "snr")
    groups = grouped(searches, "snr", "method")
    snrs = sorted({snr for snr, _ in groups})
    n = searches[0]["n"]
    rows = []
    for snr in snrs:
        row: dict[str, Any] = {"snr": snr}
        for name in ("merit", "spa"):
            group = groups.get((snr, name), [])
            row[f"{name} rate"] = rate_cell(rates.get((name, snr)))
            row[f"{name} found"] = Measured(mean_and_spread([record["found"] for record in group])[0])
        merit = groups.get((snr, "merit"), [])
        row["margin"] = Measured(*mean_and_spread([record["margin"] for record in merit]))
        row["ms"] = Measured(mean_and_spread([1000 * record["iteration_s"] for record in merit])[0])
        rows.append(row)
    columns = {"snr": "SNR (dB)", "merit rate": "MERIT", "spa rate": "SPA", "merit found": "anchors of MERIT"}
    columns |= {"spa found": "anchors of SPA", "margin": "margin of MERIT", "ms": "ms an iteration"}
    curves = {
        METHODS[name]: {snr: rate for (method, snr), rate in rates.items() if method == name}
        for name in ("merit", "spa")
    }
    return [
        Figure(
            "search",
            f"Success rate against the signal-to-noise ratio, N = {n}. Bars: exact 95 % intervals.",
            [rate_curves(f"N = {n}", "SNR (dB)", curves)],
            n_columns=1,
        ),
        Table(f"N = {n}: success rates, anchors found, MERIT's margin and time.", columns, rows, 3),
    ]


def _large(large: Sequence[Record]) -> Table:
    columns = {
        "n": "N", "found_snr": "SNR (dB)", "method": "method", "found": "anchors", "n_iter": "iterations",
        "iteration_s": "s an iteration", "total_s": "s in all", "gap": "duality gap", "margin": "margin",
        "device_mb": "GPU (MB)", "host_mb": "host (MB)", "device": "device",
    }  # fmt: skip
    rows = [
        {key: record.get(key) for key in columns}
        | {
            "method": METHODS[record["method"]],
            "found": f"{record['found']} of {record['n_anchors']}",
            "total_s": f"{record['total_s']:.4g}" + (" (resumed)" if record.get("resumed") else ""),
        }
        for record in large
    ]
    return Table("The large runs. Memory is the largest that was in use during the search.", columns, rows, 4)


def _verdicts(searches: Sequence[Record], large: Sequence[Record]) -> list[Verdict]:
    million = [record for record in large if record["n"] == MILLION]
    times = [
        record["iteration_s"]
        for record in searches
        if record["method"] == "merit" and record["n"] == SEARCH_SIZE
    ]
    winners = {
        record["step"]: record for record in million if record["method"] == "merit" and record["success"]
    }
    rival = {record["step"]: record for record in million if record["method"] == "spa"}
    best = min(winners, default=None)
    detail = "no run"
    if best is not None:
        detail = f"{winners[best]['found_snr']:g} dB, SPA found {rival[best]['found']}"
    elif million:
        detail = "MERIT found " + ", ".join(str(r["found"]) for r in million if r["method"] == "merit")
    lengths = [
        record["iterations_s"] if record["resumed"] else record["total_s"]
        for record in million
        if record["method"] == "merit"
    ]
    return [
        Verdict(
            "of a million points MERIT finds all 40 anchors at a ratio at which SPA does not",
            None if not million else best is not None and rival[best]["success"] == 0,
            detail,
        ),
        Verdict(
            f"100 iterations on a million points take at most {TOTAL_GOAL / 60:g} minutes",
            max(lengths) <= TOTAL_GOAL if lengths else None,
            ", ".join(f"{length:.0f} s" for length in lengths) or "no run",
        ),
        Verdict(
            f"an iteration on {SEARCH_SIZE} points takes at most {1000 * ITERATION_GOAL:g} ms",
            sorted(times)[len(times) // 2] <= ITERATION_GOAL if times else None,
            f"median {1000 * sorted(times)[len(times) // 2]:.1f} ms" if times else "no run",
        ),
    ]
