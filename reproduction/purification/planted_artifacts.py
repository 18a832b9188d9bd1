"""Curves, tables and verdicts over draws of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.artifacts import Curves, Series, Table
from reproduction.purification.planted_runs import middle, worst

Groups = dict[tuple[Any, ...], list[dict[str, Any]]]


def has_all(groups: Groups, places: Sequence[tuple[Any, ...]], n_draws: int) -> bool:
    """Tell whether every group has all its draws, so that something may be concluded."""
    return all(len(groups.get(place, [])) >= n_draws for place in places)


def worst_of(groups: Groups, places: Sequence[tuple[Any, ...]], key: str) -> float:
    """Return the largest value of an entry over groups and draws."""
    values = [record[key] for place in places for record in groups.get(place, [])]
    return worst(values) if values else float("nan")


def iteration_series(label: str, group: Sequence[Mapping[str, Any]], key: str = "e_curve") -> Series:
    """Return the median over draws of what every iteration measured."""
    length = min(len(record[key]) for record in group)
    values = [middle([record[key][at] for record in group]) for at in range(length)]
    return Series(label, list(range(length)), [value if np.isfinite(value) else None for value in values])


def median_series(label: str, points: Mapping[float, Sequence[Mapping[str, Any]]], key: str) -> Series:
    """Return medians over draws against something."""
    places = sorted(points)
    values = [middle([record[key] for record in points[place]]) for place in places]
    return Series(label, places, [value if np.isfinite(value) else None for value in values])


def panel(title: str, x_label: str, series: Sequence[Series], *, y_label: str, x_log: bool = True) -> Curves:
    """Return curves on a logarithmic scale."""
    return Curves(title, x_label, y_label, series, x_log=x_log, y_log=True)


def median_table(
    caption: str, groups: Groups, headings: Mapping[str, str], measures: Mapping[str, str], digits: int = 2
) -> Table:
    """Return one row per group with medians over its draws."""
    rows = []
    for place, group in groups.items():
        row: dict[str, Any] = dict(zip(headings, place, strict=True))
        for key in measures:
            values = [record[key] for record in group if key in record]
            found = middle(values) if values else None
            row[key] = None if found is None or not np.isfinite(found) else found
        rows.append(row | {"draws": len(group)})
    return Table(caption, {**headings, **measures, "draws": "draws"}, rows, digits)


def geometric_rate(curve: Sequence[float | None], floor: float = 1e-11) -> float:
    """Return the factor of an iteration, from a line through the logarithms of an error."""
    values: list[float] = []
    for value in curve:
        if value is None or value < floor:
            break
        values.append(value)
    if len(values) < 3:
        return float("nan")
    return float(np.exp(np.polyfit(np.arange(len(values)), np.log(values), 1)[0]))


def power_of(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exponent of a power law through points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
