"""Elements of the page: numbers and names in words, paragraphs, tables, figures, cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from nonneg._html import Raw, element, joined

_NUMERIC = re.compile(r"[-+\d.\N{EN DASH}].*")  # a text that stands to the right of its column


def number(value: Any, *, digits: int = 4) -> str:
    """Write a number for a person."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{value:.{digits}g}"


def counted(count: int, noun: str) -> str:
    """Write how many there are of something."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ty") else f"{noun}s"
    return f"{number(count)} {noun if count == 1 else plural}"


def noted(*counts: tuple[int, str, str]) -> str:
    """Write a sentence for each count that is not zero: the count, its noun and what is said of it."""
    return "".join(f" {counted(count, noun)} {said}." for count, noun, said in counts if count)


def percent(share: float) -> str:
    """Write a share in percent, with as many digits as its distance from 0 and 100 asks for."""
    for digits in (1, 2, 3, 4):
        text = f"{100 * share:.{digits}f}"
        if share >= 1 or float(text) < 100:
            return f"{text}%"
    return "more than 99.9999%"


def seconds(value: float) -> str:
    """Write a duration."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def listed(names: Sequence[str]) -> str:
    """List names in a sentence."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def samples(data: Mapping[str, Any]) -> str:
    """Say how large a table is and where it came from."""
    rows, columns = data["shape"]
    missing = f", {counted(data['n_missing'], 'cell')} missing" if data.get("n_missing") else ""
    return f"{counted(rows, 'sample')} with {counted(columns, 'feature')}{missing} from {data['source']}"


def ending(result: Mapping[str, Any]) -> str:
    """Say how long a run took and why it stopped."""
    reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
    took = f"{counted(result['n_iter'], 'iteration')} and {seconds(result['seconds'])}"
    return f"{took}, and stopped because {reason}"


class Names(list[tuple[Any, float]]):
    """Names with weights in percent: shaded words on the page, a short list in the terminal."""

    def __str__(self) -> str:
        ends = np.cumsum([len(str(name)) + 2 for name, _ in self])
        shown = self[: max(1, int(np.searchsorted(ends, 72)))]
        return ", ".join(str(name) for name, _ in shown)

    def __html__(self) -> str:
        """Return the words, each in the shade of its weight."""
        return joined(
            [element("span", name, class_="chip", style=f"--weight: {round(part)}%") for name, part in self]
        )

    @classmethod
    def strongest(cls, weights: Any, names: Sequence[Any], count: int) -> Names:
        """Return the names of the largest entries, each with its size in percent of the largest."""
        order = np.argsort(-np.asarray(weights), kind="stable")[:count].tolist()
        top = float(weights[order[0]]) if order else 0.0
        return cls((names[at], 100 * float(weights[at]) / top) for at in order if weights[at] > 0 < top)


def section(heading: str, *blocks: Any) -> Raw:
    """Return a section: texts become paragraphs, lists of rows tables, and empty blocks are left out."""
    return element("section", element("h2", heading), [_block(block) for block in blocks if block])


def _block(block: Any) -> Raw:
    if isinstance(block, Raw):
        return block
    return element("p", block) if isinstance(block, str) else table(block)


def note(*children: Any) -> Raw:
    """Return a paragraph in small print."""
    return element("p", *children, class_="note")


def rows_of(entries: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return entries as rows of a table: a heading for each key, or a heading and how to write the value.

    A column without any value is left out.
    """
    rows: list[dict[str, Any]] = [{} for _ in entries]
    for key, column in columns.items():
        heading, form = (column, None) if isinstance(column, str) else column
        values = [entry.get(key) for entry in entries]
        if any(value is not None for value in values):
            for row, value in zip(rows, values, strict=True):
                row[heading] = value if value is None or form is None else form(value)
    return rows


def colored(rows: Sequence[Mapping[str, Any]], colors: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows with a dot in its color before the first cell of each."""
    return [
        {key: [swatch(color), cell] if at == 0 else cell for at, (key, cell) in enumerate(row.items())}
        for row, color in zip(rows, colors, strict=True)
    ]


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
    if any(isinstance(cell, Names) and len(cell) > 1 for cell in cells):
        return "names"
    return "right" if stands_right(cells) else None


def stands_right(cells: Sequence[Any]) -> bool:
    """Tell whether a column holds numbers, or texts that begin like one, such as percentages."""
    texts = [str(cell) for cell in cells if cell is not None and not isinstance(cell, Raw | list)]
    return len(texts) + cells.count(None) == len(cells) and all(map(_NUMERIC.fullmatch, texts))


def figure(drawing: Any, caption: str = "", *, kind: str = "wide") -> Raw:
    """Return a drawing on a card; a wide one can be moved sideways on a small screen."""
    words = element("figcaption", caption) if caption else None
    return element("figure", drawing, words, class_=f"card {kind}".strip(), tabindex=0 if kind else None)


def side_by_side(drawings: Sequence[Raw]) -> Raw | None:
    """Return drawings on cards, in as many columns as there is room for."""
    cards = [figure(drawing, kind="") for drawing in drawings]
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


def cards(entries: Iterable[Sequence[Any]]) -> Raw:
    """Return cards in two columns where there is room, each a headline of a name and badges, and blocks."""
    articles = [
        element("article", element("div", headline, class_="headline"), *blocks, class_="card")
        for headline, *blocks in entries
    ]
    return element("div", articles, class_="cards")


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
