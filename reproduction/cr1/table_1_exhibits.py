"""What Table I shows, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.exhibits import Exhibit, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread
from reproduction.printed import printed_numbers

ALGORITHMS = {
    "cr1": "cr1",
    "mult": "mult",
    "nnlsb": "nnlsb",
    "hals": "hals",
    "default": "our default",
    "default, nndsvda": "our default from nndsvda",
}
PRINTED_NAMES = {"cr1": "cr1-nmf"}
PLAIN = ("hals", "nnlsb", "mult")

SHOWS = """
Liu & Tan (2017), Table I. Points in K=40 cones of size angle 0.2 in F=1600 dimensions. For each draw the
rank-one factorization of cones (`cr1`) is timed, and then other algorithms until they first have a relative
error as small: multiplicative updates (`mult`), alternating least squares by block pivoting (`nnlsb`) and
HALS (`hals`) in their published form, from factors with uniform random entries as in the paper, and beside
them the default solver of this library, from the same factors and from its own start `nndsvda`, whose time
is included.

Everything runs on one thread in float64. Time spent on evaluating the error does not count. A run is ended
when its time is over, or when 100 iterations lower its loss by less than a millionth: then it sits in a
local minimum above the target and would not get there. Such runs are counted, and their times are not among
the means; in the ratios they count with the time at which they were ended, so that a ratio marked > is a
lower bound.
"""


def summarize(records: Sequence[Record]) -> list[Exhibit]:
    """Return the times, the ratios, and what was to be shown."""
    by_size = {n: group for (n,), group in sorted(grouped(records, "n").items())}
    times = [{"n": n, **{name: _time(group, n, name) for name in ALGORITHMS}} for n, group in by_size.items()]
    ratios = [
        {"n": n, **{name: _ratio(group, n, name) for name in ALGORITHMS if name != "cr1"}}
        for n, group in by_size.items()
    ]
    columns = {"n": "N"} | ALGORITHMS
    others = {key: heading for key, heading in columns.items() if key != "cr1"}
    return [
        Table(
            "Seconds until the error of `cr1` is reached, mean ± standard deviation over draws.",
            columns,
            times,
            3,
        ),
        Table("The same divided by the seconds of `cr1` in the same draw.", others, ratios, 3),
        Paragraph(_endings(records)),
        *(_verdict(by_size, name) for name in PLAIN),
    ]


def _printed(n: int, name: str) -> tuple[float | None, float | None]:
    table = printed_numbers("cr1_nmf")["table_1_running_times_s"]
    heading = PRINTED_NAMES.get(name, name)
    if heading not in table["columns"]:
        return None, None
    at = table["columns"].index(heading)
    for mean, spread in zip(table["mean"], table["std"], strict=True):
        if mean[0] == n:
            return mean[at], spread[at]
    return None, None


def _printed_ratio(n: int, name: str) -> float | None:
    ours, theirs = _printed(n, "cr1")[0], _printed(n, name)[0]
    return None if ours is None or theirs is None else theirs / ours


def _time(group: Sequence[Record], n: int, name: str) -> Measured:
    runs = [record for record in group if record["algorithm"] == name]
    reached = [record["seconds"] for record in runs if record["outcome"] == "reached"]
    remark = "" if len(reached) == len(runs) else f"({len(reached)} of {len(runs)} got there)"
    return Measured(*mean_and_spread(reached), *_printed(n, name), remark=remark)


def _ratios(group: Sequence[Record], name: str) -> tuple[list[float], bool]:
    """Return the ratio of each draw, and whether all of them reached the target."""
    ratios, all_reached = [], True
    for members in grouped(group, "draw").values():
        by_name: dict[str, Any] = {record["algorithm"]: record for record in members}
        if name in by_name and "cr1" in by_name:
            ratios.append(by_name[name]["seconds"] / by_name["cr1"]["seconds"])
            all_reached &= by_name[name]["outcome"] == "reached"
    return ratios, all_reached


def _ratio(group: Sequence[Record], n: int, name: str) -> Measured:
    ratios, all_reached = _ratios(group, name)
    mean, spread = mean_and_spread(ratios)
    return Measured(mean, spread, _printed_ratio(n, name), sign="" if all_reached else ">")


def _endings(records: Sequence[Record]) -> str:
    parts = []
    for (n, name), group in grouped(records, "n", "algorithm").items():
        outcomes = [record["outcome"] for record in group]
        told = [
            f"{outcomes.count(outcome)} {words}"
            for outcome, words in (("time limit", "at the time limit"), ("stalled", "in a local minimum"))
            if outcome in outcomes
        ]
        if told:
            parts.append(f"N = {n}, {ALGORITHMS[name]}: {' and '.join(told)} of {len(group)}")
    if not parts:
        return "Every run reached the error of `cr1`."
    return "Runs that ended above the error of `cr1`: " + "; ".join(parts) + "."


def _verdict(by_size: dict[int, list[dict[str, Any]]], name: str) -> Verdict:
    n = 10_000
    printed = _printed_ratio(n, name)
    claim = f"`{name}` takes at least {printed:.2g} times as long as `cr1` at N = {n}, as printed"
    if n not in by_size:
        return Verdict(claim, None, "no draws of that size")
    ratios, all_reached = _ratios(by_size[n], name)
    mean, _ = mean_and_spread(ratios)
    if mean is None or printed is None:
        return Verdict(claim, None, "no draws of that size")
    return Verdict(claim, mean >= printed, f"{'' if all_reached else '> '}{mean:.3g}, {len(ratios)} draws")
