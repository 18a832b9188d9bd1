"""Sections of an estimate of the rank: why, the candidates, each method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nonneg._html import Raw
from nonneg.io import Table
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

HEADINGS = {
    "ratio": "ratio",
    "held_out_error": "held-out error",
    "agreement": "agreement",
    "cophenetic": "cophenetic",
    "dispersion": "dispersion",
}
"""The columns of the table, and what stands above them."""
_METHODS = {
    "singular-value-ratio": "Singular-value ratio",
    "cross-validation": "Cross-validation",
    "stability": "Stability over restarts",
}


def describe(
    comparison: Any, data: Table, seconds: float, *, title: str, parameters: Mapping[str, Any]
) -> Record:
    """Return the record of an estimate."""
    about, found = records.table_facts(data), comparison.as_dict()
    k = found["rank"]
    return Record(
        "rank",
        title,
        f"{wording.counted(k, 'component')} {'are' if k != 1 else 'is'} recommended.",
        f"{wording.samples(about)}; the estimates took {wording.seconds(seconds)}.",
        {_name(name).lower(): one["rank"] for name, one in found["estimates"].items()} | {"time": seconds},
        about,
        {**found, "seconds": seconds},
        parameters=records.shown_parameters(parameters),
    )


def rank_rows(record: Record) -> list[dict[str, Any]]:
    """Return the table with the spread beside each mean."""
    result = record.result
    chosen: dict[int, list[str]] = {}
    for name, estimate in result["estimates"].items():
        chosen.setdefault(estimate["rank"], []).append(_name(name).lower())
    rows = []
    for entry in result["table"]:
        row: dict[str, Any] = {"k": entry["k"]}
        for column in HEADINGS:
            if entry.get(column) is not None:
                text, spread = wording.number(float(entry[column])), entry.get(f"{column}_spread")
                row[column] = (
                    text if spread is None else f"{text} ± {wording.number(float(spread), digits=2)}"
                )
        best = ["recommended"] * (entry["k"] == result["rank"])
        rows.append(row | {"chosen": ", ".join(best + chosen.get(entry["k"], []))})
    return rows


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    result, rows = record.result, rank_rows(record)
    columns = [name for name in HEADINGS if any(name in row for row in rows)]
    skipped = [
        html.paragraph(f"{_name(name)} was left out. {why}", note=True)
        for name, why in result["left_out"].items()
    ]
    parts = [html.section("Why", html.paragraph(_sentence(result["reason"])), skipped)]
    if rows:
        headings = [">components", *(f">{HEADINGS[name]}" for name in columns), "chosen by"]
        cells = [
            [row["k"], *(row.get(name, wording.number(None)) for name in columns), row["chosen"]]
            for row in rows
        ]
        intro = (
            "Mean and spread over repeats. The held-out error is the unexplained fraction of the squared "
            "norm of held-out entries: smaller is better. In all other columns, larger is better."
        )
        parts.append(html.section("The candidates", html.paragraph(intro), html.table(headings, cells)))
    return parts + [_estimate(name, estimate) for name, estimate in result["estimates"].items()]


def _estimate(name: str, estimate: Mapping[str, Any]) -> Raw:
    curves = [
        html.figure(
            drawings.candidate_curve(
                curve["candidates"], curve["mean"], curve["spread"], estimate["rank"], curve["name"]
            ),
            wide=False,
        )
        for curve in estimate["curves"]
    ]
    return html.section(
        f"{_name(name)}: {estimate['rank']}",
        html.paragraph(_sentence(estimate["reason"])),
        html.side_by_side(*curves) if curves else None,
        [html.statement(wording.statement(entry) | {"number": None}) for entry in estimate["certificate"]],
    )


def _name(method: str) -> str:
    return _METHODS.get(method, method)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
