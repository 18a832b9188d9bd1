"""Records put together by what they have in common, and what is said of such a group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def grouped(records: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Put records with the same entries together.

    Parameters
    ----------
    records : iterable of mapping
        Any records.
    *keys : str
        The entries that tell groups apart; a record that lacks one has None there.

    Returns
    -------
    dict
        The entries -> the records, in the order of first appearance.
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record.get(key) for key in keys), []).append(dict(record))
    return groups


def mean_and_spread(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Return the mean and the standard deviation of what is there.

    Parameters
    ----------
    values : sequence of float or None
        None is left out.

    Returns
    -------
    mean : float or None
        None where nothing is there.
    spread : float or None
        With n - 1 in the denominator; None for fewer than two.
    """
    present = [float(value) for value in values if value is not None]
    if not present:
        return None, None
    mean = math.fsum(present) / len(present)
    if len(present) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in present) / (len(present) - 1))
