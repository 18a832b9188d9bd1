"""The report of an estimate of the rank: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nonneg.report import figures, wording
from nonneg.report.curves import curve_panels
from nonneg.report.rendering import drawing, render

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


def rank_sentence(record: Mapping[str, Any]) -> str:
    """Say in one sentence what is recommended."""
    k = record["result"]["rank"]
    return f"{wording.number(k)} component{'s' * (k != 1)} {'are' if k != 1 else 'is'} recommended."


def rank_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the table with the spread beside each mean."""
    result = record["result"]
    chosen: dict[int, list[str]] = {}
    for name, estimate in result["estimates"].items():
        chosen.setdefault(estimate["rank"], []).append(_METHODS[name].lower())
    rows = []
    for entry in result["table"]:
        row: dict[str, Any] = {"k": entry["k"]}
        for column in HEADINGS:
            if column in entry:
                row[column] = _with_spread(entry[column], entry.get(f"{column}_spread"))
        names = chosen.get(entry["k"], [])
        row["chosen"] = ", ".join(["recommended"] * (entry["k"] == result["rank"]) + names)
        rows.append(row)
    return rows


def rank_figure(record: Mapping[str, Any]) -> str:
    """Draw all curves as a file of their own."""
    panels = [
        {
            "title": f"{_METHODS[name]}: {estimate['rank']}",
            "x_label": "components",
            "y_label": curve["name"],
            "series": [
                {
                    "label": curve["name"],
                    "x": curve["candidates"],
                    "y": curve["mean"],
                    "spread": curve["spread"] if any(curve["spread"]) else None,
                    "style": "points",
                }
            ],
        }
        for name, estimate in record["result"]["estimates"].items()
        for curve in estimate["curves"]
    ]
    return curve_panels(panels, "Measures by number of components") if panels else ""


def build_rank_page(record: Mapping[str, Any]) -> str:
    """Write the report of an estimate of the rank."""
    result = record["result"]
    rows = rank_rows(record)
    columns = [name for name in HEADINGS if any(name in row for row in rows)]
    estimates = [
        {
            "name": _METHODS[name],
            "rank": estimate["rank"],
            "reason": _sentence(estimate["reason"]),
            "curves": [
                drawing(
                    figures.candidate_curve(
                        curve["candidates"], curve["mean"], curve["spread"], estimate["rank"], curve["name"]
                    )
                )
                for curve in estimate["curves"]
            ],
            "certificate": [wording.statement(entry) for entry in estimate["certificate"]],
        }
        for name, estimate in result["estimates"].items()
    ]
    context = {
        "title": record["title"],
        "answer": rank_sentence(record),
        "reason": _sentence(result["reason"]),
        "outcome": _outcome(record),
        "tiles": [
            *((estimate["name"].lower(), wording.number(estimate["rank"])) for estimate in estimates),
            ("time", wording.seconds(result["seconds"])),
        ],
        "headings": [HEADINGS[name] for name in columns],
        "rows": [
            {"k": row["k"], "cells": [row.get(name) for name in columns], "chosen": row["chosen"]}
            for row in rows
        ],
        "estimates": estimates,
        "left_out": [(_METHODS[name], why) for name, why in result["left_out"].items()],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("rank.html", context)


def _with_spread(mean: Any, spread: Any) -> str | None:
    if mean is None:
        return None
    text = wording.number(float(mean))
    return text if spread is None else f"{text} \N{PLUS-MINUS SIGN} {wording.number(float(spread), digits=2)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _outcome(record: Mapping[str, Any]) -> str:
    data = record["data"]
    rows, columns = data["shape"]
    return (
        f"{wording.counted(rows, 'sample')} with {wording.counted(columns, 'feature')} from "
        f"{data['source']}; the estimates took {wording.seconds(record['result']['seconds'])}."
    )


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    data, result = record["data"], record["result"]
    rows, columns = data["shape"]
    about_data = [
        ("source", data["source"]),
        ("shape", f"{wording.number(rows)} \N{MULTIPLICATION SIGN} {wording.number(columns)}"),
        ("entries", data["dtype"]),
    ]
    first = next(iter(result["estimates"].values()))
    about_result = [
        ("recommended", wording.number(result["rank"])),
        ("numerical rank", f"at least {wording.number(first['numerical_rank'])}"),
        ("smallest candidate", wording.number(first["k_min"])),
        ("largest candidate", wording.number(first["k_max"])),
    ]
    parameters = [(name, wording.number(value)) for name, value in record["parameters"].items()]
    return [("Data", about_data), ("Result", about_result), ("Parameters", parameters)]
