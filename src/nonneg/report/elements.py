"""Blocks of the page: text, tables, pictures, curves and files. Text is escaped wherever it enters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from nonneg._html import Raw
from nonneg.report.wording import number

_VOID = frozenset({"img", "br", "meta"})
_NUMERIC = re.compile(r"[-+\d.\N{EN DASH}].*")  # a text that stands to the right of its column


class Names(list[tuple[Any, float]]):
    """Names with weights in percent: shaded words on the page, a short list in the terminal."""

    def __str__(self) -> str:
        ends = np.cumsum([len(str(name)) + 2 for name, _ in self])
        shown = self[: max(1, int(np.searchsorted(ends, 72)))]
        return ", ".join(str(name) for name, _ in shown)


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
        if isinstance(child, Raw):
            parts.append(str(child))
        elif isinstance(child, Names):
            parts.append(str(joined([_chip(name, weight) for name, weight in child])))
        elif isinstance(child, list | tuple):
            parts.append(str(joined(*child)))
        elif child is not None:
            parts.append(escape(str(child), quote=False))
    return Raw("".join(parts))


def section(heading: str, *blocks: Any) -> Raw:
    """Return a section: texts become paragraphs, lists of rows tables, and empty blocks are left out."""
    return element("section", element("h2", heading), [_block(block) for block in blocks if block])


def _block(block: Any) -> Raw:
    if isinstance(block, Raw):
        return block
    return paragraph(block) if isinstance(block, str) else table(block)


def paragraph(*children: Any, note: bool = False) -> Raw:
    """Return a paragraph."""
    return element("p", *children, class_="note" if note else None)


def table(rows: Sequence[Mapping[str, Any]]) -> Raw:
    """Return a table with the keys as headings; columns of numbers stand to the right."""
    headings = list(dict.fromkeys(key for row in rows for key in row))
    sides = {key: _side([row.get(key) for row in rows]) for key in headings}
    head = [element("th", key, class_="right" if sides[key] == "right" else None) for key in headings]
    body = [
        element("tr", [element("td", _cell(row.get(key)), class_=sides[key]) for key in headings])
        for row in rows
    ]
    whole = element("table", element("thead", element("tr", head)), element("tbody", body))
    return element("div", whole, class_="scroll", tabindex=0)


def _cell(value: Any) -> Any:
    return number(value) if value is None or isinstance(value, int | float) else value


def _side(cells: Sequence[Any]) -> str | None:
    if any(isinstance(cell, Names) for cell in cells):
        return "names"
    return "right" if stands_right(cells) else None


def stands_right(cells: Sequence[Any]) -> bool:
    """Tell whether a column holds numbers, or texts that begin like one, such as percentages."""
    texts = [str(cell) for cell in cells if cell is not None and not isinstance(cell, Raw | list)]
    return len(texts) + cells.count(None) == len(cells) and all(map(_NUMERIC.fullmatch, texts))


def figure(drawing: Any, caption: Any = None, *, wide: bool = True, kind: str = "") -> Raw:
    """Return a drawing on a card; a wide one can be moved sideways on a small screen."""
    return element(
        "figure",
        drawing,
        None if caption is None else element("figcaption", caption),
        class_=" ".join(filter(None, ["card", "wide" if wide else "", kind])),
        tabindex=0 if wide else None,
    )


def side_by_side(*drawings: Raw) -> Raw | None:
    """Return drawings on cards, in as many columns as there is room for."""
    cards = [figure(drawing, wide=False) for drawing in drawings]
    # One drawing alone would fill the page.
    style = "max-width: 560px" if len(cards) == 1 else None
    return element("div", cards, class_="curves", style=style) if cards else None


def pictures(entries: Iterable[tuple[str, str, Any]], kind: str = "") -> Raw:
    """Return a grid of pictures, each an address, its description and a caption."""
    grid = [
        element("figure", element("img", src=address, alt=alt), element("figcaption", caption))
        for address, alt, caption in entries
    ]
    return element("div", grid, class_=f"pictures {kind}".strip())


def card(headline: Any, *blocks: Any, class_: str = "statement", id_: str | None = None) -> Raw:
    """Return an article: a headline of badges and a name, then its blocks."""
    return element("article", element("div", headline, class_="headline"), *blocks, class_=class_, id_=id_)


def _chip(name: Any, weight: float) -> Raw:
    return element("span", name, class_="chip", style=f"--weight: {round(weight)}%")


def badge(text: str, grade: str) -> Raw:
    """Return a word in the color of its grade."""
    return element("span", text, class_=f"badge {grade}")


def swatch(color: str) -> Raw:
    """Return a dot in a color."""
    return element("span", class_="swatch", style=f"background: {color}")


def tiles(entries: Iterable[tuple[str, str]]) -> Raw:
    """Return numbers with their names."""
    boxes = [element("div", element("dt", name), element("dd", value)) for name, value in entries]
    return element("dl", boxes, class_="tiles")


def facts(entries: Iterable[tuple[str, str]]) -> Raw:
    """Return names and values in two columns."""
    pairs = [[element("dt", name), element("dd", value)] for name, value in entries]
    return element("dl", pairs, class_="facts")


def legend(words: str, before: str = "") -> Raw:
    """Return the ramp of shades of a heat map, with what its ends mean."""
    return element("p", before, element("span", class_="ramp"), words, class_="legend")


def downloads(files: Mapping[str, str]) -> Raw:
    """Return links to files beside the page, each with a sentence."""
    listed = [
        element("li", element("a", name, href=name, download=""), f": {what}") for name, what in files.items()
    ]
    return element("ul", listed)


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
