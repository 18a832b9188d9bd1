"""Tables from records: markdown for the documentation and the terminal, and the verdicts on the bars."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.race import RaceClaim
from benchmarks.records import latest

DASH = "-"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with aligned columns."""
    rows = [list(row) for row in rows]
    widths = [max(len(line[i]) for line in [list(head), *rows]) for i in range(len(head))]
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]

    def line(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join([first, *rest])} |"

    return "\n".join([line(head), line(rule), *(line(row) for row in rows)])


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table."""
    if value is None:
        return DASH
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text


def race_table(claim: RaceClaim, records: list[dict[str, Any]]) -> str:
    """Return the table of a race, its summary against the bars, and the table of the further peers."""
    records = latest(records, "case", "dtype", "threads", "contender")
    duels = [record for record in records if record["contender"] == "nonneg"]
    others = [record for record in records if record["contender"] != "nonneg"]
    parts = [_duel_table(claim, duels, others)]
    if len({record["threads"] for record in duels}) > 1:
        parts.append("Ratio by number of threads, for every contender the same:\n\n" + _threads_table(duels))
    if claim.bars:
        parts.append(
            markdown(
                ("statistic", "cases", "type", "threads", "measured", "minimum", "goal"), _bars(claim, duels)
            )
        )
    if others:
        parts.append(_others_table(duels, others))
    failures = [
        f"- {record['case']}, {record['dtype']}, {record['threads']} threads: {record['failure']}"
        for record in duels
        if record.get("failure")
    ]
    if failures:
        parts.append("Failures of `nonneg`:\n\n" + "\n".join(failures))
    return "\n\n".join(parts)


def _duel_table(claim: RaceClaim, duels: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    head = (
        "data",
        "type",
        "threads",
        f"{claim.reference} (s)",
        "nonneg (s)",
        "ratio",
        "ratio, steps only",
        "best other peer (s)",
        "passes",
        "solver",
        "target",
    )
    return markdown(head, [_duel_row(record, others) for record in duels])


def _duel_row(record: dict[str, Any], others: list[dict[str, Any]]) -> list[str]:
    rivals = [
        (other["seconds"], other["contender"])
        for other in others
        if other.get("status") == "reached" and _place(other) == _place(record)
    ]
    best = f"{number(min(rivals)[0])} ({min(rivals)[1]})" if rivals else DASH
    if record.get("reached"):
        target = "reached"
    elif record.get("seconds") is None:
        target = "failed"
    else:
        target = f"missed by {number(record.get('excess'), 2)}"
    if record.get("n_init", 1) > 1:
        reached = sum(ratio > 0 for ratio in record["init_ratios"])
        target += f" (median of {record['n_init']} restarts, {reached} reached)"
    return [
        record["case"],
        record["dtype"],
        str(record["threads"]),
        number(record["reference_seconds"]),
        number(record.get("seconds")),
        number(record.get("ratio")),
        number(record.get("clock_ratio")),
        best,
        str(record.get("n_iter", DASH)),
        str(record.get("solver", DASH)),
        target,
    ]


def _threads_table(duels: list[dict[str, Any]]) -> str:
    """Return the ratios with one column per number of threads."""
    counts = sorted({record["threads"] for record in duels})
    rows = []
    for case, dtype in dict.fromkeys((record["case"], record["dtype"]) for record in duels):
        found = {r["threads"]: r for r in duels if (r["case"], r["dtype"]) == (case, dtype)}
        ratios = [found[count].get("ratio") if count in found else None for count in counts]
        missed = [count in found and not found[count].get("reached") for count in counts]
        cells = ["missed" if miss else number(ratio) for ratio, miss in zip(ratios, missed, strict=True)]
        rows.append([case, dtype, *cells])
    head = ("data", "type", *(f"{count} thread{'s' if count > 1 else ''}" for count in counts))
    return markdown(head, rows)


def _others_table(duels: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    rows = []
    absent: dict[str, list[dict[str, Any]]] = {}
    for record in others:
        if record["status"] == "cannot run":
            absent.setdefault(record["reason"], []).append(record)
            continue
        duel = next((duel for duel in duels if _place(duel) == _place(record)), {})
        seconds, own = record.get("seconds"), duel.get("seconds")
        rows.append(
            [
                record["case"],
                record["dtype"],
                str(record["threads"]),
                record["contender"],
                number(seconds),
                str(record.get("passes", DASH)),
                number(seconds / own if seconds and own else None),
                record["status"] + (f": {record['reason']}" if record.get("reason") else ""),
            ]
        )
    head = ("data", "type", "threads", "peer", "s to target", "passes", "over nonneg's", "status")
    parts = [markdown(head, rows)] if rows else []
    for reason, records in absent.items():
        peers = ", ".join(sorted({record["contender"] for record in records}))
        races = dict.fromkeys(f"{r['case']} ({r['dtype']}, {r['threads']})" for r in records)
        parts.append(f"Could not run ({reason}): {peers}, on {'; '.join(races)}.")
    return "\n\n".join(parts)


def _place(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["case"], record["dtype"], record["threads"]


def _bars(claim: RaceClaim, duels: list[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for dtype, threads in dict.fromkeys((record["dtype"], record["threads"]) for record in duels):
        for bar in claim.bars:
            group = [
                record
                for record in duels
                if (record["dtype"], record["threads"], record["kind"]) == (dtype, threads, bar.kind)
            ]
            if not group:
                continue
            # A target that was missed is no ratio at all.
            ratios = [record["ratio"] if record.get("reached") else 0.0 for record in group]
            found = statistics.median(ratios) if bar.statistic == "median" else min(ratios)
            land = bar.land if threads < 16 or bar.land_on_all is None else bar.land_on_all
            rows.append(
                [
                    bar.statistic,
                    f"{bar.kind} ({len(group)})",
                    dtype,
                    str(threads),
                    number(found),
                    f"{land:g} {verdict(found, land)}",
                    f"{bar.goal:g} {verdict(found, bar.goal)}",
                ]
            )
    return rows


def verdict(found: float, bar: float) -> str:
    """Return whether a ratio reaches its bar."""
    return "met" if found >= bar else "missed"


def machine_lines(machine: dict[str, Any], *commands: str, threads: str = "") -> str:
    """Return where and how records were made; `threads` says which of them, if not all of the page."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return "\n".join(
        [
            *(f"- Command: `{command}`" for command in commands),
            f"- Date: {machine['date']}",
            f"- Machine{threads}: {machine['processor']}, {machine['cores']} cores, "
            f"{machine['memory_gib']} GiB, {machine['system']}; load before the run {machine['load_before']}",
            f"- Python {machine['python']}; {versions}",
        ]
    )


def machines(records: list[dict[str, Any]]) -> str:
    """Return where the records of a page were made: one list for each machine, with its thread counts."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(record["machine"]["processor"], []).append(record)
    told = []
    for group in groups.values():
        counts = sorted({int(record["threads"]) for record in group})
        threads = f" ({', '.join(map(str, counts))} thread{'s' if counts != [1] else ''})"
        commands = dict.fromkeys(r["machine"]["command"] for r in group if "command" in r["machine"])
        newest = max((record["machine"] for record in group), key=lambda machine: machine["date"])
        told.append(machine_lines(newest, *commands, threads=threads if len(groups) > 1 else ""))
    return "\n\n".join(told)
