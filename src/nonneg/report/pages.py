"""Page of a run: headline, sections of its command, certificate and the facts of the run."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from nonneg.exceptions import FileFormatError
from nonneg.report import drawings, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

BLOCKS = {
    "fit": "fits",
    "rank": "ranks",
    "consensus": "consensus",
    "signatures": "consensus",
    "anchors": "anchors",
    "topics": "topics",
    "communities": "communities",
    "separate": "sounds",
    "unmix": "cubes",
}
"""For each command the module of this folder with its sections."""


def build_page(record: Record) -> str:
    """Write the page of a run."""
    certificate = [wording.statement(entry) for entry in record.certificate]
    # What should not be used as it is, is said first.
    problems = [entry for entry in certificate if entry["headline"]]
    header = html.element(
        "header",
        html.element("p", record.title, class_="eyebrow"),
        html.element("h1", " ".join([record.answer, *(entry["headline"] for entry in problems)])),
        [_alert(entry) for entry in problems],
        html.element("p", record.lead, class_="lead"),
        html.tiles(wording.tile(name, value) for name, value in record.tiles.items()),
        [html.element("p", hint, class_="note hint") for hint in record.hints],
    )
    groups = [
        html.element("div", html.element("h3", heading), html.facts(entries), class_="card")
        for heading, entries in wording.facts(record)
    ]
    listed = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return html.document(
        record.title,
        header,
        _block(record.command).sections(record),
        _convergence(record),
        certificate_section(certificate),
        html.section("The run", html.element("div", groups, class_="groups")),
        html.element("footer", f"Written by nonneg. {listed}."),
    )


def _convergence(record: Record) -> Any:
    curves = [html.figure(curve, wide=False) for curve in drawings.convergence(record.history)]
    return html.section("Convergence", html.side_by_side(*curves)) if curves else None


def certificate_section(entries: list[dict[str, Any]]) -> Any:
    """Return the statements of the certificate, if there are any."""
    if not entries:
        return None
    intro = html.paragraph("What could be verified about this result, and what to do where a check failed.")
    return html.section("Certificate", intro, [html.statement(entry) for entry in entries])


def restored(record: Record, folder: Path) -> Record:
    """Read back what the page of an earlier run draws, from the files beside its record."""
    if record.command in ("separate", "unmix", "transform"):
        raise FileFormatError(
            f"{folder} contains results of `nonneg {record.command}`, whose report cannot be made from them "
            "alone. Run it again with its data."
        )
    if hasattr(block := _block(record.command), "restore"):
        block.restore(record, folder)
    return record


def _block(command: str) -> Any:
    if command not in BLOCKS:
        raise FileFormatError(f"There is no report of `nonneg {command}`.")
    return importlib.import_module(f"nonneg.report.{BLOCKS[command]}")


def _alert(entry: dict[str, Any]) -> Any:
    said = f" {entry['sentence']} {entry['advice']}"
    return html.element("p", html.element("strong", entry["headline"]), said, class_="alert")
