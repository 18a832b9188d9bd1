"""Words of a record: numbers, counts and names for people, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


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


def lead(size: str, data: Mapping[str, Any], method: str, result: Mapping[str, Any]) -> str:
    """Say what a run had, how it went about it, how long it took and why it stopped."""
    missing = f", {counted(data['n_missing'], 'cell')} missing" if data.get("n_missing") else ""
    told = f"{size}{missing} from {data['source']}, by {method}"
    if "seconds" in result:
        told += f", in {seconds(result['seconds'])}"
    if "stop_reason" in result:
        reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
        told += f" and {counted(result['n_iter'], 'iteration')}; it stopped because {reason}"
    return f"{told}."


def samples(data: Mapping[str, Any]) -> str:
    """Say how large a table is."""
    rows, columns = data["shape"]
    return f"{counted(rows, 'sample')} with {counted(columns, 'feature')}"


def strongest(weights: Any, names: Sequence[Any], count: int) -> list[tuple[Any, float]]:
    """Return the names of the largest entries, each with its size in percent of the largest."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:count].tolist()
    return shaded([(names[at], float(weights[at])) for at in order])


def shaded(names: Sequence[tuple[Any, float]]) -> list[tuple[Any, float]]:
    """Return names with their weights in percent of the first, which is the largest."""
    return [(name, 100 * weight / names[0][1]) for name, weight in names if weight > 0]


def entries_of(**columns: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the entries of a table that is given by its columns."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(entries: Iterable[Mapping[str, Any]], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return entries as rows of a table: a heading for each key, or a heading and how to write the value."""
    rows = []
    for entry in entries:
        row: dict[str, Any] = {}
        for key, column in columns.items():
            heading, form = (column, None) if isinstance(column, str) else column
            value = entry.get(key)
            missing = value is None or (isinstance(value, float) and np.isnan(value))
            row[heading] = None if missing else value if form is None else form(value)
        rows.append(row)
    return rows
