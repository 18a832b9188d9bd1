"""Grouping of records, and statistics of a group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def grouped(records: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Group records by the given entries."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record.get(key) for key in keys), []).append(dict(record))
    return groups


def mean_and_spread(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Return the mean and the standard deviation of the values that are not None."""
    present = [float(value) for value in values if value is not None]
    if not present:
        return None, None
    mean = math.fsum(present) / len(present)
    if len(present) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in present) / (len(present) - 1))
