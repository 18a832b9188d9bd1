"""Page of a run: headline, sections of its command, certificate and the numbers of the run."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nonneg.certificates.advice import Advice, advice_for, grade_of
from nonneg.exceptions import FileFormatError
from nonneg.report import drawings, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_BLOCKS = {
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
"""For each command the module of this folder with its table and its sections."""
# A statement that fails without harm is a caution.
_BADGES = {"good": "holds", "caution": "caution", "problem": "fails", "open": "not verifiable"}
_TITLES = {"eckart-young-bound": "Eckart-Young lower bound", "symnmf-error": "SymNMF error"}
_NUMBERED = re.compile(r"(.+) (\d+)")  # statements about each of several components


def build_page(record: Record) -> str:
    """Write the page of a run."""
    certificate = [_statement(entry) for entry in record.certificate]
    # What should not be used as it is, is said first.
    problems = [entry for entry in certificate if entry["headline"]]
    header = html.element(
        "header",
        html.element("p", record.title, class_="eyebrow"),
        html.element("h1", " ".join([record.answer, *(entry["headline"] for entry in problems)])),
        [_alert(entry) for entry in problems],
        html.element("p", record.lead, class_="lead"),
        html.tiles(_value(name, value, digits=4) for name, value in record.tiles.items()),
        [html.element("p", hint, class_="note hint") for hint in record.hints],
    )
    curves = html.side_by_side(*drawings.convergence(record.history))
    groups = [
        html.element("div", html.element("h3", heading), html.facts(_plain(entries)), class_="card")
        for heading, entries in (
            ("Data", record.data), ("Result", record.result), ("Parameters", record.parameters),
        )
    ]  # fmt: skip
    listed = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return html.document(
        record.title,
        header,
        _block(record.command).sections(record),
        html.section("Convergence", curves) if curves else None,
        certificate_section(record.certificate) if certificate else None,
        html.section("The run", html.element("div", groups, class_="groups")),
        html.element("footer", f"Written by nonneg. {listed}."),
    )


def main_table(record: Record) -> list[dict[str, Any]]:
    """Return the table of a run, which the terminal shows too."""
    return list(_block(record.command).table(record)) if record.command in _BLOCKS else []


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
    if command not in _BLOCKS:
        raise FileFormatError(f"There is no report of `nonneg {command}`.")
    return importlib.import_module(f"nonneg.report.{_BLOCKS[command]}")


def _value(name: str, value: Any, digits: int = 6) -> tuple[str, str]:
    """Write a number of the record with its name."""
    words = name.removeprefix("n_").replace("_", " ")
    if name in ("time", "seconds"):
        return "time", wording.seconds(value)
    if name == "shape":
        return words, " \N{MULTIPLICATION SIGN} ".join(wording.number(side) for side in value)
    if name == "stop_reason":
        return words, str(value["sentence"]).replace("`", "")
    return {"iter": "iterations"}.get(words, words), wording.number(value, digits=digits)


def _plain(entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Collect the single numbers and words, which someone needs to repeat the run."""
    return [
        _value(name, value)
        for name, value in entries.items()
        if isinstance(value, str | int | float) or name in ("shape", "stop_reason")
    ]


def _alert(entry: Mapping[str, Any]) -> Any:
    said = f" {entry['sentence']} {entry['advice']}"
    return html.element("p", html.element("strong", entry["headline"]), said, class_="alert")


def _statement(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare one statement of the certificate."""
    quantities = entry.get("quantities") or {}
    name, verdict = str(entry["name"]), str(entry["verdict"])
    advice = advice_for(name, quantities) if verdict == "fails" else Advice("")
    return {
        **entry,
        "name": _TITLES.get(name, name.replace("-", " ").capitalize()),
        "grade": grade_of(name, verdict, quantities),
        "advice": advice.todo,
        "headline": advice.headline,
        "quantities": [
            (str(key).replace("_", " "), wording.number(value)) for key, value in quantities.items()
        ],
    }


def certificate_section(certificate: list[dict[str, Any]]) -> Any:
    """Return the statements; what holds for several components is one line, exceptions follow."""
    entries = [_statement(entry) for entry in certificate]
    cards, holding = [], _by_component(entries, "good")
    for name, numbers in holding.items():
        headline = [html.badge(_BADGES["good"], "good"), html.element("h3", name)]
        several = f"Holds for {wording.ranges(numbers)}: {wording.counted(len(numbers), 'component')}."
        cards.append(html.card(headline, html.paragraph(several)))
    cards += [
        _card(entry)
        for entry in entries
        if entry["grade"] != "good" or not _NUMBERED.fullmatch(entry["name"])
    ]
    intro = "What could be verified about this result, and what to do where a check failed."
    return html.section("Certificate", intro, *cards)


def _by_component(entries: list[dict[str, Any]], grade: str) -> dict[str, list[int]]:
    """Return the components of which a statement has a grade, by the name of the statement."""
    numbers: dict[str, list[int]] = {}
    for entry in entries:
        if entry["grade"] == grade and (match := _NUMBERED.fullmatch(entry["name"])):
            numbers.setdefault(match[1], []).append(int(match[2]))
    return numbers


def _card(entry: Mapping[str, Any]) -> Any:
    value = details = None
    if entry["number"] is not None:
        threshold = entry["threshold"]
        limit = "" if threshold is None else f", threshold {wording.number(threshold)}"
        value = html.paragraph(f"Value {wording.number(entry['number'])}{limit}.", note=True)
    if entry["quantities"]:
        shown = html.facts(entry["quantities"])
        details = html.element("details", html.element("summary", "Quantities"), shown)
    headline = [html.badge(_BADGES[entry["grade"]], entry["grade"]), html.element("h3", entry["name"])]
    advice = [" ", html.element("strong", entry["advice"])] if entry["advice"] else None
    return html.card(headline, html.paragraph(entry["sentence"], advice), value, details)


def failures(record: Record) -> list[str]:
    """Say for the terminal what failed, and what to do about it: problems first."""
    entries = [_statement(entry) for entry in record.certificate]
    said = [f"{one['headline']} {one['sentence']} {one['advice']}" for one in entries if one["headline"]]
    cautions = [one["name"] for one in entries if one["grade"] == "caution"]
    several = _by_component(entries, "caution")
    names = [name for name in cautions if not _NUMBERED.fullmatch(name)]
    names += [f"{name} of {wording.ranges(numbers)}" for name, numbers in several.items()]
    return [*said, f"Cautions in the certificate: {', '.join(names)}."] if names else said
