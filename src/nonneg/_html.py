"""Small pieces of HTML that notebooks show in place of a text."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

# Readable on light and dark pages: text keeps the color of the notebook, only the badge has its own.
BADGES = {"good": "#1a7f37", "caution": "#9a6700", "problem": "#cf222e"}
_CELL = "padding:.25em .8em .25em 0;text-align:left;vertical-align:top"


def badge(verdict: str, grade: str) -> str:
    """Return a verdict as a word in the color of its grade."""
    color = BADGES.get(grade, "#57606a")
    return (
        f'<span style="background:{color};color:#fff;border-radius:.6em;padding:.05em .6em;'
        f'white-space:nowrap">{html.escape(verdict)}</span>'
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, strong: int | None = None) -> str:
    """Return a table; cells that are HTML already are passed as `Raw`, the strong row is in bold."""
    head = "".join(f'<th style="{_CELL}">{html.escape(name)}</th>' for name in headings)
    lines = []
    for place, row in enumerate(rows):
        weight = ";font-weight:bold" if place == strong else ""
        lines.append("".join(f'<td style="{_CELL}{weight}">{_cell(value)}</td>' for value in row))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(title: str, pairs: Iterable[tuple[str, Any]], *more: str) -> str:
    """Return a title, a table of facts and further pieces."""
    rows = "".join(
        f'<tr><th style="{_CELL}">{html.escape(name)}</th><td style="{_CELL}">{_cell(value)}</td></tr>'
        for name, value in pairs
    )
    return (
        f"<div><strong>{html.escape(title)}</strong><table><tbody>{rows}</tbody></table>{''.join(more)}</div>"
    )


class Raw(str):
    """A text that is HTML already."""

    __slots__ = ()


def sparkline(values: Sequence[float], label: str) -> str:
    """Return a small curve, on a logarithmic scale where the values fall over more than a decade."""
    kept = [float(value) for value in values if math.isfinite(float(value))]
    if len(kept) < 2:
        return ""
    if min(kept) > 0 and max(kept) > 10 * min(kept):
        kept = [math.log(value) for value in kept]
    low, span = min(kept), (max(kept) - min(kept)) or 1.0
    step = max(1, len(kept) // 300)
    shown = [*list(enumerate(kept))[::step], (len(kept) - 1, kept[-1])]
    points = " ".join(f"{240 * at / (len(kept) - 1):.1f},{36 - 32 * (y - low) / span:.1f}" for at, y in shown)
    return (
        f'<svg width="240" height="40" role="img" aria-label="{html.escape(label)}">'
        f'<polyline points="{points}" fill="none" stroke="#2f6feb" stroke-width="1.5"/></svg>'
    )


def view_of_result(found: Any) -> str:
    """Return what a function found: its sentence, the loss over the iterations and the certificate."""
    history, certificate = getattr(found, "history", None), getattr(found, "certificate", None)
    pieces = [piece._repr_html_() for piece in (history, certificate) if piece is not None and len(piece)]
    return f"<div><p>{html.escape(repr(found))}</p>{''.join(pieces)}</div>"


def _cell(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return html.escape(str(value))
