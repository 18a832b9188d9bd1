"""Record of an estimate of the rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nonneg.io import Table
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, table_facts

_NAMES = {"singular-value-ratio": "singular-value ratio", "held_out_error": "held-out error"}
_CANDIDATES = (
    "Mean and spread over repeats. The held-out error is the unexplained fraction of the squared norm of "
    "held-out entries: smaller is better. Of the ratios, larger is better."
)


def describe(comparison: Any, data: Table, seconds: float, parameters: Mapping[str, Any]) -> Record:
    """Return the record of an estimate."""
    about, result = table_facts(data), comparison.as_dict() | {"seconds": seconds}
    k, estimates = result["rank"], result["estimates"]
    chosen = {_NAMES.get(name, name): one["rank"] for name, one in estimates.items()}
    table, reason = [_row(entry, k, chosen) for entry in result["table"]], _sentence(result["reason"])
    skipped = [f"{_sentence(name)} was left out. {why}" for name, why in result["left_out"].items()]
    return Record(
        "rank",
        f"Number of components of {about['source']}",
        f"{words.counted(k, 'component')} {'are' if k != 1 else 'is'} recommended.",
        f"{words.samples(about)}; the estimates took {words.seconds(seconds)}.",
        chosen | {"time": seconds},
        about,
        result,
        parameters=dict(parameters),
        remarks=[reason],
        table=table,
        sections=[
            ["Why", reason, *skipped],
            *([["The candidates", _CANDIDATES, block("table")]] if table else []),
            *(_estimate(_NAMES.get(name, name), estimate) for name, estimate in estimates.items()),
        ],
    )


def _row(entry: Mapping[str, Any], k: int, chosen: Mapping[str, int]) -> dict[str, Any]:
    """Return a candidate with the spread beside each mean, and who chose it."""
    row: dict[str, Any] = {"k": entry["k"]}
    for column in ("ratio", "held_out_error"):
        if entry.get(column) is not None:
            spread = entry.get(f"{column}_spread")
            beside = "" if spread is None else f" ± {words.number(float(spread), digits=2)}"
            row[_NAMES.get(column, column)] = words.number(float(entry[column])) + beside
    by = [name for name, rank in {"recommended": k, **chosen}.items() if rank == entry["k"]]
    return row | {"chosen by": ", ".join(by)}


def _estimate(name: str, estimate: Mapping[str, Any]) -> list[Any]:
    """Return the section of a method."""
    curves = [
        drawings.curves(
            one["candidates"], {one["name"]: one["mean"]}, "components", estimate["rank"],
            {one["name"]: one["spread"]},
        )
        for one in estimate["curves"]
    ]  # fmt: skip
    checked = [entry["sentence"] for entry in estimate["certificate"]]
    return [f"{_sentence(name)}: {estimate['rank']}", _sentence(estimate["reason"]), *curves, *checked]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
