"""Page of a run, and what the terminal says of it: both show nothing but what its record holds.

A section of a record is a heading and blocks: a text, rows of a table, or a mapping that names its kind.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from nonneg._html import Raw, element
from nonneg._optional import import_optional
from nonneg.certificates.certificate import Statement
from nonneg.report import drawings
from nonneg.report.record import Record, block
from nonneg.report.words import number, seconds

_TITLES = {"eckart-young-bound": "Eckart-Young lower bound", "symnmf-error": "SymNMF error"}
_CHECKED = "What could be verified about this result, and what to do where a check failed."
_NUMERIC = re.compile(r"[-+\d.\N{EN DASH}].*")  # a text that stands to the right of its column


def build_page(record: Record) -> str:
    """Write the page of a run: one file that needs no other and runs no script."""
    # The same values as in result.json: a page that is drawn from the file is the same.
    content = record.as_dict()
    statements = [Statement.from_dict(entry) for entry in content["certificate"]]
    # What should not be used as it is, is said first.
    problems = [each for each in statements if each.headline]
    alerts = [
        element("p", element("strong", each.headline), f" {each.sentence} {each.advice}", class_="alert")
        for each in problems
    ]
    tiles = [_value(name, value, digits=4) for name, value in content["tiles"].items()]
    header = element(
        "header",
        element("p", content["title"], class_="eyebrow"),
        element("h1", " ".join([content["answer"], *(each.headline for each in problems)])),
        alerts,
        element("p", content["lead"], class_="lead"),
        element("dl", [element("div", _pair(*tile)) for tile in tiles], class_="tiles"),
        [element("p", hint, class_="note hint") for hint in content["hints"]],
    )
    sections = [*content["sections"]]
    if curves := drawings.convergence(content["history"]):
        sections.append(["Convergence", curves])
    if statements:
        sections.append(
            ["Certificate", _CHECKED, block("cards", cards=[_statement(one) for one in statements])]
        )
    # Parameters have the names that users type.
    typed = [(name, number(value)) for name, value in content["parameters"].items() if _is_single(value)]
    numbers = {"Data": _values(content["data"]), "Result": _values(content["result"]), "Parameters": typed}
    cards = [_card_of(name, block("facts", facts=facts)) for name, facts in numbers.items()]
    sections.append(["The run", block("cards", cards=cards, kind="groups")])
    parts = [
        element("section", element("h2", heading), [_rendered(one, content) for one in blocks])
        for heading, *blocks in sections
    ]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    footer = element("footer", f"Written by nonneg. {versions}.")
    style = resources.files("nonneg.report").joinpath("style.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", content["title"]),
        element("style", Raw(style)),
    )
    body = element("body", element("main", header, parts, footer))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def failures(record: Record) -> list[str]:
    """Say for the terminal what failed, and what to do about it: problems first."""
    statements = [Statement.from_dict(entry) for entry in record.certificate]
    said = [f"{one.headline} {one.sentence} {one.advice}" for one in statements if one.headline]
    cautions = [_title(one.name) for one in statements if one.grade == "caution"]
    return [*said, f"Cautions in the certificate: {', '.join(cautions)}."] if cautions else said


def shown_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[list[Any], bool]]:
    """Return the cells of every column that has any, and whether they are numbers and stand to the right."""
    headings = dict.fromkeys(key for row in rows for key in row)
    columns = {key: [row.get(key) for row in rows] for key in headings}
    texts = {key: [str(cell) for cell in cells if cell is not None] for key, cells in columns.items()}
    return {
        key: (cells, all(map(_NUMERIC.fullmatch, texts[key]))) for key, cells in columns.items() if texts[key]
    }


def _rendered(part: Any, content: Mapping[str, Any], *, bare: bool = False) -> Any:
    """Return a part as HTML; a bare drawing has no card of its own."""
    if not part:
        return None
    if isinstance(part, str):
        return element("p", part)
    if isinstance(part, list):
        return _table(part)
    part = dict(part)
    kind = part.pop("block")
    if kind == "table":
        return _table(content["table"], **part)
    if kind == "cards":
        cards = [_card(content=content, **entry) for entry in part["cards"]]
        return element("div", cards, class_=part.get("kind", "cards"))
    if kind == "row":
        figures = [_figure(_rendered(one, content, bare=True)) for one in part["drawings"]]
        # One drawing alone would fill the page.
        style = "max-width: 560px" if len(figures) == 1 else None
        return element("div", figures, class_="curves", style=style) if figures else None
    if kind in _ELEMENTS:
        return _ELEMENTS[kind](**part)
    caption = part.pop("caption", "")
    drawn = drawings.DRAWINGS[kind](**part)
    # A wide one can be moved sideways on a small screen.
    return drawn if bare else _figure(drawn, caption, kind="wide")


def _figure(drawing: Any, caption: str = "", kind: str = "") -> Raw:
    words = element("figcaption", caption) if caption else None
    return element("figure", drawing, words, class_=f"card {kind}".strip(), tabindex=0 if kind else None)


def _table(rows: Sequence[Mapping[str, Any]], colors: Sequence[str] = ()) -> Raw:
    """Return a table with the keys as headings, and a dot before each row that has a color."""
    columns = shown_columns(rows)
    sides = {key: _side(*column) for key, column in columns.items()}
    head = [element("th", key, class_="right" if sides[key] == "right" else None) for key in columns]
    cells = {key: [_cell(cell) for cell in entries] for key, (entries, _) in columns.items()}
    for at, color in enumerate(colors):
        first = next(iter(cells.values()))
        first[at] = [_swatch(color), first[at]]
    body = [
        element("tr", [element("td", entries[at], class_=sides[key]) for key, entries in cells.items()])
        for at in range(len(rows))
    ]
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    return element("div", whole, class_="scroll", tabindex=0)


def _side(cells: Sequence[Any], numeric: bool) -> str | None:
    if any(isinstance(cell, list) and len(cell) > 1 for cell in cells):
        return "names"
    return "right" if numeric else None


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        address = f"data:audio/wav;base64,{base64.b64encode(value).decode('ascii')}"
        return element("audio", controls="", preload="metadata", src=address)
    if isinstance(value, list):
        return _chips(value)
    return number(value) if value is None or isinstance(value, int | float) else value


def _chips(names: Iterable[tuple[Any, float]]) -> list[Raw]:
    """Return names, each in the shade of its weight in percent."""
    return [element("span", name, class_="chip", style=f"--weight: {round(part)}%") for name, part in names]


def _swatch(color: str) -> Raw:
    return element("span", class_="swatch", style=f"background: {color}")


def _badge(text: str, grade: str) -> Raw:
    return element("span", text, class_=f"badge {grade}")


def _pair(name: str, value: str) -> list[Raw]:
    return [element("dt", name), element("dd", value)]


def _facts(facts: Iterable[tuple[str, str]]) -> Raw:
    return element("dl", [_pair(name, value) for name, value in facts], class_="facts")


def _card(title: str, badges: Iterable[Any], blocks: Iterable[Any], content: Mapping[str, Any]) -> Raw:
    headline = element("div", [_badge(*one) for one in badges], element("h3", title), class_="headline")
    return element("article", headline, [_rendered(one, content, bare=True) for one in blocks], class_="card")


def _card_of(title: str, *blocks: Any, badges: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    return {"title": title, "badges": badges, "blocks": blocks}


def _statement(statement: Statement) -> dict[str, Any]:
    """Return the card of a statement of the certificate."""
    blocks: list[Any] = [f"{statement.sentence} {statement.advice}".rstrip()]
    if statement.number is not None:
        threshold = statement.threshold
        limit = "" if threshold is None else f", threshold {number(threshold)}"
        blocks.append(block("note", text=f"Value {number(statement.number)}{limit}."))
    return _card_of(_title(statement.name), *blocks, badges=[(statement.badge, statement.grade)])


def _pictures(pictures: Iterable[Sequence[Any]], kind: str = "") -> Raw:
    """Return a grid of pictures in shades, each with its caption and perhaps a color."""
    grid = []
    for shades, caption, color in pictures:
        picture, dot = (
            element("img", src=_address(drawings.levels(shades)), alt=caption),
            color and _swatch(color),
        )
        grid.append(element("figure", picture, element("figcaption", dot, caption)))
    return element("div", grid, class_=f"pictures {kind}".strip())


def _photo(image: Any, marks: Iterable[Sequence[Any]], caption: str) -> Raw:
    """Return a color picture with numbered rings at places in percent of its width and height."""
    rows, columns = image.shape[:2]
    numbers = [
        element("span", at, class_="mark", style=f"left: {x:.2f}%; top: {y:.2f}%; border-color: {color}")
        for at, (x, y, color) in enumerate(marks)
    ]
    picture = element("img", src=_address(image), alt=caption)
    whole = element("div", picture, numbers, class_="photo", style=f"max-width: {620 * columns // rows}px")
    return _figure(whole, caption)


def _strips(cells: Any, lines: Sequence[str], ends: Sequence[str], caption: str) -> Raw:
    """Return a heat map: a strip for each line, so that its name stands beside it at every width."""
    height = min(18, max(6, 720 // len(lines)))
    rows = []
    for name, strip in zip(lines, cells, strict=True):
        image = element(
            "img", src=_address(drawings.levels(strip[None]), "Blues"), alt=name, style=f"height: {height}px"
        )
        rows.append([element("th", name if height > 12 else "", scope="row"), element("td", image)])
    ramp = ["0", element("i", class_="ramp"), "maximum"]
    rows.append([element("td"), element("td", [element("span", one) for one in (ends[0], ramp, ends[1])])])
    return _figure(element("table", [element("tr", row) for row in rows], class_="strips"), caption)


def _address(image: Any, colors: str = "gray_r") -> str:
    """Return an address that holds a picture itself: colors, or shades between 0 and 1."""
    matplotlib_image = import_optional("matplotlib.image", extra="report", purpose="Drawing pictures")
    stream = io.BytesIO()
    matplotlib_image.imsave(stream, image, cmap=colors, vmin=0.0, vmax=1.0, format="png")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"


_ELEMENTS: dict[str, Callable[..., Raw]] = {
    "note": lambda text: element("p", text, class_="note"),
    "names": lambda names: element("p", _chips(names)),
    "facts": _facts,
    "pictures": _pictures,
    "strips": _strips,
    "photo": _photo,
}


def _value(name: str, value: Any, digits: int = 6) -> tuple[str, str]:
    """Write a number of the record with its name."""
    words = name.removeprefix("n_").replace("_", " ")
    if name in ("time", "seconds"):
        return "time", seconds(value)
    if name == "shape":
        return words, " \N{MULTIPLICATION SIGN} ".join(number(side) for side in value)
    if name == "stop_reason":
        return words, str(value["sentence"]).replace("`", "")
    words = {"iter": "iterations", "mean npmi": "mean NPMI"}.get(words, words)
    return words, number(value, digits=digits)


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _values(entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Collect single numbers and words; a count of zero is nothing to look at."""
    return [
        _value(name, value)
        for name, value in entries.items()
        if (_is_single(value) and (value or not name.startswith("n_"))) or name in ("shape", "stop_reason")
    ]


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("-", " ").capitalize())
