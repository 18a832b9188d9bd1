"""Page of a run, and what the terminal says of it: both show nothing but what its record holds.

A section of a record is a heading and blocks: a text, rows of a table, or a mapping that names its kind.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import Any

import numpy as np

from nonneg._html import Raw, element, joined
from nonneg._optional import import_optional
from nonneg.certificates.certificate import Statement
from nonneg.report.drawings import DRAWINGS, curves
from nonneg.report.record import Record
from nonneg.report.words import heading, lead, number, percent, product, seconds

_TITLES = {"eckart-young-bound": "Eckart-Young lower bound"}
_CHECKED = "What could be verified about this result, and what to do where a check failed."
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title><style>{style}</style></head><body>{body}</body></html>
"""
_NUMERIC = re.compile(r"[-+\d.\N{EN DASH}].*")  # a text that stands to the right of its column


def build_page(record: Record) -> str:
    """Write the page of a run: one file that needs no other and runs no script."""
    # The same values as in result.json: a page that is drawn from the file is the same.
    content = record.as_dict()
    statements = [one for one in map(Statement.from_dict, content["certificate"]) if not one.is_detail]
    # What should not be used as it is, is said first.
    problems = [each for each in statements if each.headline]
    numbers = content["data"] | content["result"]
    tiles = [element("div", _pair(*_named(name, numbers[name]))) for name in content["tiles"]]
    header = element(
        "header",
        element("p", content["title"], class_="eyebrow"),
        element("h1", " ".join([content["answer"], *(each.headline for each in problems)])),
        [
            element("p", element("strong", each.headline), f" {each.sentence} {each.advice}", class_="alert")
            for each in problems
        ],
        element("p", lead(content["data"], content["result"]), class_="lead"),
        element("dl", tiles, class_="tiles"),
        [element("p", hint, class_="hint") for hint in content["hints"]],
    )
    sections = [section for section in content["sections"] if section]
    if losses := content["history"].get("loss"):
        sections.append(["Convergence", curves(content["history"]["n_iter"], {"loss": losses}, "iterations")])
    if statements:
        cards = element("div", [_statement(one) for one in statements], class_="cards")
        sections.append(["Certificate", _CHECKED, cards])
    groups = {name: [_named(*one) for one in _singles(content[name])] for name in ("data", "result")}
    # Parameters have the names that users type.
    groups["parameters"] = [(name, number(value)) for name, value in _singles(content["parameters"])]
    lists = {name: element("dl", [_pair(*one) for one in own]) for name, own in groups.items()}
    cards = element("div", [_card(name.capitalize(), own) for name, own in lists.items()], class_="cards")
    sections.append(["The run", cards])
    parts = [
        element("section", element("h2", title), [_rendered(one) for one in blocks if one])
        for title, *blocks in sections
    ]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    style = resources.files("nonneg.report").joinpath("style.css").read_text(encoding="utf-8")
    return _PAGE.format(
        title=joined(content["title"]),
        style=style,
        body=element("main", header, parts, element("footer", f"Written by {versions}.")),
    )


def failures(record: Record) -> list[str]:
    """Say for the terminal what failed, and what to do about it: problems first."""
    statements = [one for one in map(Statement.from_dict, record.certificate) if not one.is_detail]
    hinted = "column-balance" if record.hints else ""  # the hint names the columns that dominate
    shown = [one for one in statements if one.headline or (one.grade == "caution" and one.name != hinted)]
    shown.sort(key=lambda one: not one.headline)
    return [f"{one.headline or 'Caution:'} {one.sentence} {one.advice}" for one in shown]


def shown_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[list[Any], bool]]:
    """Return the cells of every column that has any, and whether they are numbers and stand to the right."""
    headings = dict.fromkeys(key for row in rows for key in row)
    columns = {key: [row.get(key) for row in rows] for key in headings}
    texts = {key: [str(cell) for cell in cells if cell is not None] for key, cells in columns.items()}
    return {
        key: (cells, all(map(_NUMERIC.fullmatch, texts[key]))) for key, cells in columns.items() if texts[key]
    }


def _rendered(part: Any) -> Raw:
    """Return a block as HTML."""
    if isinstance(part, str):
        return part if isinstance(part, Raw) else element("p", part)
    if isinstance(part, list):
        return _table(part)
    content = dict(part)
    return _BLOCKS[content.pop("block")](**content)


def _table(rows: Sequence[Mapping[str, Any]], colors: Sequence[str] = ()) -> Raw:
    """Return a table with the keys as headings, and a dot before each row that has a color."""
    columns = shown_columns(rows)
    sides = {key: "right" if numeric else None for key, (_, numeric) in columns.items()}
    cells = {key: [_cell(cell) for cell in entries] for key, (entries, _) in columns.items()}
    for at, color in enumerate(colors):
        first = next(iter(cells.values()))
        first[at] = [_swatch(color), first[at]]
    head = [element("th", key, class_=sides[key]) for key in columns]
    body = [
        element("tr", [element("td", entries[at], class_=sides[key]) for key, entries in cells.items()])
        for at in range(len(rows))
    ]
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    return element("div", whole, class_="scroll", tabindex=0)


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "shape" in value:
            return _image(value, "strip of a heat map", "Blues", class_="strip")
        address = f"data:audio/wav;base64,{value['bytes']}"
        return element("audio", controls="", preload="metadata", src=address)
    if isinstance(value, list):
        return _chips(value)
    return number(value) if value is None or isinstance(value, int | float) else value


def _chips(names: Sequence[tuple[Any, float]]) -> list[Raw]:
    """Return names, each in the shade of its weight."""
    whole = max((weight for _, weight in names), default=1.0)
    parts = [(name, f"--weight: {weight / whole:.0%}") for name, weight in names]
    return [element("span", name, class_="chip", style=style) for name, style in parts]


def _swatch(color: str) -> Raw:
    return element("span", class_="swatch", style=f"background: {color}")


def _card(title: str, *content: Any, badge: Raw | None = None) -> Raw:
    headline = element("div", badge, element("h3", title), class_="headline")
    return element("article", headline, content, class_="card")


def _cards(rows: Sequence[Mapping[str, Any]], key: str) -> Raw:
    """Return rows as cards in two columns, each named by a key, with its words below."""
    cards = []
    for row in rows:
        cells = {name: value for name, value in row.items() if value is not None}
        title = ": ".join(str(cells.pop(name)) for name in (key, "name") if name in cells)
        names = [cells.pop(name) for name in list(cells) if isinstance(cells[name], list)]
        facts = element("p", ", ".join(f"{name} {number(value)}" for name, value in cells.items()))
        cards.append(
            _card(f"{heading(key).capitalize()} {title}", facts, element("p", list(map(_chips, names))))
        )
    return element("div", cards, class_="cards")


def _statement(statement: Statement) -> Raw:
    """Return the card of a statement of the certificate."""
    text = element("p", f"{statement.sentence} {statement.advice}".rstrip())
    limit = "" if statement.threshold is None else f", threshold {number(statement.threshold)}"
    value = None if statement.number is None else element("p", f"Value {number(statement.number)}{limit}.")
    badge = element("span", statement.badge, class_=f"badge {statement.grade}")
    title = _TITLES.get(statement.name, statement.name.replace("-", " ").capitalize())
    return _card(title, text, value, badge=badge)


def _row(kind: str, drawings: Iterable[Mapping[str, Any]]) -> Raw:
    """Return small drawings side by side."""
    figures = [element("figure", DRAWINGS[kind](**one), class_="card") for one in drawings]
    return element("div", figures, class_="curves")


def _wide(kind: str, caption: str = "", **content: Any) -> Raw:
    """Return a drawing as wide as the page, which can be moved sideways on a small screen."""
    words = element("figcaption", caption) if caption else None
    return element("figure", DRAWINGS[kind](**content), words, class_="card wide", tabindex=0)


def _pictures(pictures: Iterable[Sequence[Any]], kind: str = "") -> Raw:
    """Return a grid of pictures in shades, each with its caption and perhaps a color."""
    grid = [
        element("figure", _image(shades, caption), element("figcaption", color and _swatch(color), caption))
        for shades, caption, color in pictures
    ]
    return element("div", grid, class_=f"pictures {kind}".strip())


def _image(picture: Mapping[str, Any], caption: str, colors: str = "gray_r", **attributes: Any) -> Raw:
    """Return an image that holds its picture itself: colors, or shades as `drawings.shades` makes them."""
    matplotlib_image = import_optional("matplotlib.image", extra="report", purpose="Drawing pictures")
    cells, stream = np.frombuffer(base64.b64decode(picture["bytes"]), dtype=np.uint8), io.BytesIO()
    cells = np.atleast_2d(cells.reshape([int(side) for side in picture["shape"]]))
    levels = cells if cells.ndim == 3 else np.where(cells == 255, np.nan, cells / 254)
    matplotlib_image.imsave(stream, levels, cmap=colors, vmin=0.0, vmax=1.0, format="png")
    address = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
    return element("img", src=address, alt=caption, **attributes)


def _pair(name: str, value: str) -> list[Raw]:
    return [element("dt", name), element("dd", value)]


def _named(name: str, value: Any) -> tuple[str, str]:
    """Return a number of the record with its name, in words."""
    if name == "stop_reason":
        value = value["sentence"].replace("`", "")
    writers: dict[str, Callable[[Any], str]] = {"shape": product, "seconds": seconds, "explained": percent}
    return heading(name), writers.get(name, number)(value)


def _singles(entries: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return single numbers and words; a count of zero is nothing to look at."""
    return [
        (name, value)
        for name, value in entries.items()
        if name in ("shape", "stop_reason")
        or (isinstance(value, str | int | float) and (value or not name.startswith("n_")))
    ]


_BLOCKS: dict[str, Callable[..., Raw]] = {
    "table": _table,
    "row": _row,
    "pictures": _pictures,
    "cards": _cards,
    **{kind: partial(_wide, kind) for kind in DRAWINGS},
}
