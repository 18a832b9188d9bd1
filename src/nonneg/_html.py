"""HTML elements, whose text is escaped where it enters, and the small views that notebooks show."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

# Readable on light and dark pages: text keeps the color of the notebook, only the badge has its own.
BADGES = {"good": "#1a7f37", "caution": "#9a6700", "problem": "#cf222e"}
_CELL = "padding:.25em .8em .25em 0;text-align:left;vertical-align:top"
_VOID = frozenset({"img", "br", "meta"})


class Raw(str):
    """A text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: Any, **attributes: Any) -> Raw:
    """Return an element; `class_` and `http_equiv` become class and http-equiv, None is left out."""
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Raw(f"<{tag}{words}>" if tag in _VOID else f"<{tag}{words}>{joined(*children)}</{tag}>")


def joined(*children: Any) -> Raw:
    """Return several children as one; lists are taken apart, None is nothing, text is escaped."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Raw):
            parts.append(child)
        elif isinstance(child, list | tuple):
            parts.append(joined(*child))
        elif child is not None:
            parts.append(html.escape(str(child), quote=False))
    return Raw("".join(parts))


def badge(verdict: str, grade: str) -> Raw:
    """Return a verdict as a word in the color of its grade."""
    style = "color:#fff;border-radius:.6em;padding:.05em .6em;white-space:nowrap"
    return element("span", verdict, style=f"background:{BADGES.get(grade, '#57606a')};{style}")


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Raw:
    """Return a table; numbers have six digits."""

    def row(tag: str, values: Sequence[Any]) -> Raw:
        texts = [f"{value:.6g}" if isinstance(value, float) else value for value in values]
        return element("tr", [element(tag, text, style=_CELL) for text in texts])

    body = [row("td", values) for values in rows]
    return element("table", element("thead", row("th", headings)), element("tbody", body))
