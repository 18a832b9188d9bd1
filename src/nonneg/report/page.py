"""Page of a run: headline, sections of its command, certificate and the numbers of the run."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nonneg._html import element
from nonneg.certificates.certificate import Statement
from nonneg.exceptions import FileFormatError
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import Record

_COMMANDS = {
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
_TITLES = {"eckart-young-bound": "Eckart-Young lower bound", "symnmf-error": "SymNMF error"}
_CHECKED = "What could be verified about this result, and what to do where a check failed."


def build_page(record: Record) -> str:
    """Write the page of a run."""
    statements = [Statement.from_dict(entry) for entry in record.certificate]
    # What should not be used as it is, is said first.
    problems = [each for each in statements if each.headline]
    alerts = [
        element("p", element("strong", each.headline), f" {each.sentence} {each.advice}", class_="alert")
        for each in problems
    ]
    header = element(
        "header",
        element("p", record.title, class_="eyebrow"),
        element("h1", " ".join([record.answer, *(each.headline for each in problems)])),
        alerts,
        element("p", record.lead, class_="lead"),
        html.tiles(_value(name, value, digits=4) for name, value in record.tiles.items()),
        [element("p", hint, class_="note hint") for hint in record.hints],
    )
    curves = drawings.convergence(record.history)
    # Parameters have the names that users type.
    typed = [(name, html.number(value)) for name, value in record.parameters.items() if _is_single(value)]
    numbers = {"Data": _values(record.data), "Result": _values(record.result), "Parameters": typed}
    groups = [
        element("div", element("h3", heading), html.facts(entries), class_="card")
        for heading, entries in numbers.items()
    ]
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return html.document(
        record.title,
        header,
        _module(record.command).sections(record),
        html.section("Convergence", curves) if curves else None,
        html.section("Certificate", _CHECKED, html.cards(map(_card, statements))) if statements else None,
        html.section("The run", element("div", groups, class_="groups")),
        element("footer", f"Written by nonneg. {versions}."),
    )


def main_table(record: Record) -> list[dict[str, Any]]:
    """Return the table of a run, which the terminal shows too."""
    return list(_module(record.command).table(record)) if record.command in _COMMANDS else []


def restored(record: Record, folder: Path) -> Record:
    """Read back what the page of an earlier run draws, from the files beside its record."""
    if record.command in ("separate", "unmix", "transform"):
        raise FileFormatError(
            f"{folder} contains results of `nonneg {record.command}`, whose report cannot be made from them "
            "alone. Run it again with its data."
        )
    if hasattr(module := _module(record.command), "restore"):
        module.restore(record, folder)
    return record


def _module(command: str) -> Any:
    if command not in _COMMANDS:
        raise FileFormatError(f"There is no report of `nonneg {command}`.")
    return importlib.import_module(f"nonneg.report.{_COMMANDS[command]}")


def _value(name: str, value: Any, digits: int = 6) -> tuple[str, str]:
    """Write a number of the record with its name."""
    words = name.removeprefix("n_").replace("_", " ")
    if name in ("time", "seconds"):
        return "time", html.seconds(value)
    if name == "shape":
        return words, " \N{MULTIPLICATION SIGN} ".join(html.number(side) for side in value)
    if name == "stop_reason":
        return words, str(value["sentence"]).replace("`", "")
    words = {"iter": "iterations", "mean npmi": "mean NPMI"}.get(words, words)
    return words, html.number(value, digits=digits)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _values(entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Collect single numbers and words; a count of zero is nothing to look at."""
    return [
        _value(name, value)
        for name, value in entries.items()
        if (_is_single(value) and (value or not name.startswith("n_"))) or name in ("shape", "stop_reason")
    ]


def _title(statement: Statement) -> str:
    return _TITLES.get(statement.name, statement.name.replace("-", " ").capitalize())


def _card(statement: Statement) -> list[Any]:
    """Return the card of a statement of the certificate."""
    value = details = None
    if statement.number is not None:
        threshold = statement.threshold
        limit = "" if threshold is None else f", threshold {html.number(threshold)}"
        value = html.note(f"Value {html.number(statement.number)}{limit}.")
    if statement.quantities:
        shown = [(key.replace("_", " "), html.number(one)) for key, one in statement.quantities.items()]
        details = element("details", element("summary", "Quantities"), html.facts(shown))
    advice = [" ", element("strong", statement.advice)] if statement.advice else None
    headline = [html.badge(statement.badge, statement.grade), element("h3", _title(statement))]
    return [headline, element("p", statement.sentence, advice), value, details]


def failures(record: Record) -> list[str]:
    """Say for the terminal what failed, and what to do about it: problems first."""
    statements = [Statement.from_dict(entry) for entry in record.certificate]
    said = [f"{one.headline} {one.sentence} {one.advice}" for one in statements if one.headline]
    cautions = [_title(one) for one in statements if one.grade == "caution"]
    return [*said, f"Cautions in the certificate: {', '.join(cautions)}."] if cautions else said
