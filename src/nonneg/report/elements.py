"""Elements of the HTML page: text is escaped wherever it enters, so that no name in the data is markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from nonneg._html import Raw

_VOID = frozenset({"img", "br", "meta"})


def element(tag: str, *children: Any, **attributes: Any) -> Raw:
    """Return an element; `class_` and `http_equiv` become class and http-equiv, None is left out."""
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Raw(f"<{tag}{words}>")
    return Raw(f"<{tag}{words}>{joined(*children)}</{tag}>")


def joined(*children: Any) -> Raw:
    """Return several children as one; lists are taken apart, None is nothing, text is escaped."""
    parts = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Raw):
            parts.append(str(child))
        elif isinstance(child, list | tuple):
            parts.append(str(joined(*child)))
        else:
            parts.append(escape(str(child), quote=False))
    return Raw("".join(parts))


def section(heading: str, *children: Any) -> Raw:
    """Return a section with its heading."""
    return element("section", element("h2", heading), *children)


def paragraph(*children: Any, note: bool = False) -> Raw:
    """Return a paragraph."""
    return element("p", *children, class_="note" if note else None)


def figure(drawing: Any, caption: Any = None, *, wide: bool = True, kind: str = "") -> Raw:
    """Return a drawing on a card; a wide one can be moved sideways on a small screen."""
    return element(
        "figure",
        drawing,
        None if caption is None else element("figcaption", caption),
        class_=" ".join(filter(None, ["card", "wide" if wide else "", kind])),
        tabindex=0 if wide else None,
    )


def side_by_side(*cards: Any) -> Raw:
    """Return drawings in as many columns as there is room for."""
    # One drawing alone would fill the page.
    return element("div", *cards, class_="curves", style="max-width: 560px" if len(cards) == 1 else None)


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Raw:
    """Return a table; ">" before a heading puts its column to the right, "*" gives it room for many names."""
    marks = [heading[:1] if heading[:1] in (">", "*") else "" for heading in headings]
    sides = [{">": "right", "*": "names"}.get(mark) for mark in marks]
    head = [
        element("th", heading[len(mark) :], class_="right" if mark == ">" else None)
        for heading, mark in zip(headings, marks, strict=True)
    ]
    body = [
        element("tr", [element("td", cell, class_=side) for cell, side in zip(row, sides, strict=True)])
        for row in rows
    ]
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    return element("div", whole, class_="scroll", tabindex=0)


def chips(entries: Iterable[tuple[Any, float]]) -> list[Raw]:
    """Return names, each shaded by its weight in percent."""
    return [element("span", name, class_="chip", style=f"--weight: {weight}%") for name, weight in entries]


def badge(text: str, grade: str) -> Raw:
    """Return a word in the color of its grade."""
    return element("span", text, class_=f"badge {grade}")


def swatch(color: str) -> Raw:
    """Return a dot in a color."""
    return element("span", class_="swatch", style=f"background: {color}")


def tiles(entries: Iterable[tuple[str, str]]) -> Raw:
    """Return numbers with their names."""
    return element(
        "dl",
        [element("div", element("dt", name), element("dd", value)) for name, value in entries],
        class_="tiles",
    )


def facts(entries: Iterable[tuple[str, str]]) -> Raw:
    """Return names and values in two columns."""
    return element(
        "dl", [[element("dt", name), element("dd", value)] for name, value in entries], class_="facts"
    )


def legend(words: str, before: str = "") -> Raw:
    """Return the ramp of shades of a heat map, with what its ends mean."""
    return element("p", before, element("span", class_="ramp"), words, class_="legend")


def picture(address: str, alt: str, caption: Any) -> Raw:
    """Return a picture with a caption."""
    return element("figure", element("img", src=address, alt=alt), element("figcaption", caption))


def statement(entry: Mapping[str, Any]) -> Raw:
    """Return a statement of the certificate."""
    value = None
    if entry["number"] is not None:
        limit = "" if entry["threshold"] is None else f", threshold {entry['threshold']}"
        value = paragraph(f"Value {entry['number']}{limit}.", note=True)
    details = None
    if entry["quantities"]:
        details = element("details", element("summary", "Quantities"), facts(entry["quantities"]))
    headline = element(
        "div", badge(entry["verdict"], entry["grade"]), element("h3", entry["name"]), class_="headline"
    )
    advice = [" ", element("strong", entry["advice"])] if entry["advice"] else None
    return element(
        "article", headline, paragraph(entry["sentence"], advice), value, details, class_="statement"
    )


def document(title: str, *children: Any) -> str:
    """Return a whole page: one file that needs no other and runs no script."""
    style = resources.files("nonneg.report").joinpath("style.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Raw(style)),
    )
    body = element("body", element("main", *children))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"
