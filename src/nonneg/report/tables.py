"""Tables as Markdown text, made from records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def markdown_table(
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | Mapping[str, str] | None = None,
    *,
    digits: int = 4,
    right: Collection[str] = (),
) -> str:
    """Lay records out as a Markdown table, numbers to the right."""
    if columns is None:
        columns = list(dict.fromkeys(key for record in records for key in record))
    headings = dict(columns) if isinstance(columns, Mapping) else {key: key for key in columns}
    if not headings:
        return ""
    body = [[format_cell(record.get(key), digits=digits) for key in headings] for record in records]
    rows = [[_escaped(heading) for heading in headings.values()], *body]
    numeric = [key in right or _is_numeric([record.get(key) for record in records]) for key in headings]
    widths = [max(3, *(len(row[at]) for row in rows)) for at in range(len(headings))]
    lines = [
        "| "
        + " | ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        + " |"
        for row in rows
    ]
    rule = (
        "-" * (width + 1) + ":" if right else "-" * (width + 2)
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]]) + "\n"


def format_cell(value: Any, *, digits: int = 4) -> str:
    """Write one value for a person."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _is_numeric(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in present
    )
