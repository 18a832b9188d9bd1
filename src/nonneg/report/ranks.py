"""Blocks of an estimate of the rank: why, the candidates, each method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nonneg._html import Raw
from nonneg.io import Table
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_COLUMNS = ("ratio", "held_out_error")
_METHODS = {
    "singular-value-ratio": "Singular-value ratio",
    "cross-validation": "Cross-validation",
}


def describe(
    comparison: Any, data: Table, seconds: float, *, title: str, parameters: Mapping[str, Any]
) -> Record:
    """Return the record of an estimate."""
    about, estimates = records.table_facts(data), comparison.as_dict()
    k = estimates["rank"]
    chosen = {_name(name).lower(): one["rank"] for name, one in estimates["estimates"].items()}
    return Record(
        "rank",
        title,
        f"{wording.counted(k, 'component')} {'are' if k != 1 else 'is'} recommended.",
        f"{wording.samples(about)}; the estimates took {wording.seconds(seconds)}.",
        chosen | {"time": seconds},
        about,
        {**estimates, "seconds": seconds},
        parameters=records.shown_parameters(parameters),
    )


def table(record: Record) -> list[dict[str, Any]]:
    """Return the candidates with the spread beside each mean."""
    result = record.result
    chosen: dict[int, list[str]] = {}
    for name, estimate in result["estimates"].items():
        chosen.setdefault(estimate["rank"], []).append(_name(name).lower())
    rows = []
    for entry in result["table"]:
        row: dict[str, Any] = {"k": entry["k"]}
        for column in _COLUMNS:
            if entry.get(column) is not None:
                text, spread = wording.number(float(entry[column])), entry.get(f"{column}_spread")
                beside = "" if spread is None else f" ± {wording.number(float(spread), digits=2)}"
                row[column.replace("held_out", "held-out").replace("_", " ")] = text + beside
        best = ["recommended"] * (entry["k"] == result["rank"])
        rows.append(row | {"chosen by": ", ".join(best + chosen.get(entry["k"], []))})
    return rows


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    result, rows = record.result, table(record)
    skipped = [f"{_name(name)} was left out. {why}" for name, why in result["left_out"].items()]
    parts = [html.section("Why", _sentence(result["reason"]), *skipped)]
    if rows:
        intro = (
            "Mean and spread over repeats. The held-out error is the unexplained fraction of the squared "
            "norm of held-out entries: smaller is better. Of the ratios, larger is better."
        )
        parts.append(html.section("The candidates", intro, rows))
    return parts + [_estimate(name, estimate) for name, estimate in result["estimates"].items()]


def _estimate(name: str, estimate: Mapping[str, Any]) -> Raw:
    curves = [
        drawings.curve(
            curve["candidates"], curve["mean"], ("components", curve["name"]), spread=curve["spread"],
            mark=estimate["rank"],
        )
        for curve in estimate["curves"]
    ]  # fmt: skip
    checked = [entry["sentence"] for entry in estimate["certificate"]]
    heading = f"{_name(name)}: {estimate['rank']}"
    return html.section(heading, _sentence(estimate["reason"]), html.side_by_side(*curves), *checked)


def _name(method: str) -> str:
    return _METHODS.get(method, method)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
