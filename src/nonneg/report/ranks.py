"""Record and page of an estimate of the rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nonneg.io import Table
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import Record, table_facts

_NAMES = {"singular-value-ratio": "singular-value ratio", "held_out_error": "held-out error"}


def describe(
    comparison: Any, data: Table, seconds: float, *, title: str, parameters: Mapping[str, Any]
) -> Record:
    """Return the record of an estimate."""
    about, result = table_facts(data), comparison.as_dict() | {"seconds": seconds}
    k = result["rank"]
    chosen = {_NAMES.get(name, name): one["rank"] for name, one in result["estimates"].items()}
    return Record(
        "rank",
        title,
        f"{html.counted(k, 'component')} {'are' if k != 1 else 'is'} recommended.",
        f"{html.samples(about)}; the estimates took {html.seconds(seconds)}.",
        chosen | {"time": seconds},
        about,
        result,
        parameters=dict(parameters),
    )


def table(record: Record) -> list[dict[str, Any]]:
    """Return the candidates with the spread beside each mean."""
    result, rows = record.result, []
    for entry in result["table"]:
        row: dict[str, Any] = {"k": entry["k"]}
        for column in ("ratio", "held_out_error"):
            if entry.get(column) is not None:
                spread = entry.get(f"{column}_spread")
                beside = "" if spread is None else f" ± {html.number(float(spread), digits=2)}"
                row[_NAMES.get(column, column)] = html.number(float(entry[column])) + beside
        chosen = ["recommended"] * (entry["k"] == result["rank"])
        for name, estimate in result["estimates"].items():
            chosen += [_NAMES.get(name, name)] * (entry["k"] == estimate["rank"])
        rows.append(row | {"chosen by": ", ".join(chosen)})
    return rows


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    result, rows = record.result, table(record)
    skipped = [f"{_sentence(name)} was left out. {why}" for name, why in result["left_out"].items()]
    parts = [html.section("Why", _sentence(result["reason"]), *skipped)]
    if rows:
        intro = (
            "Mean and spread over repeats. The held-out error is the unexplained fraction of the squared "
            "norm of held-out entries: smaller is better. Of the ratios, larger is better."
        )
        parts.append(html.section("The candidates", intro, rows))
    for name, estimate in result["estimates"].items():
        curves = [
            drawings.curves(
                curve["candidates"], {curve["name"]: curve["mean"]}, "components", estimate["rank"],
                {curve["name"]: curve["spread"]},
            )
            for curve in estimate["curves"]
        ]  # fmt: skip
        heading = f"{_sentence(_NAMES.get(name, name))}: {estimate['rank']}"
        checked = [entry["sentence"] for entry in estimate["certificate"]]
        parts.append(html.section(heading, _sentence(estimate["reason"]), *curves, *checked))
    return parts


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
