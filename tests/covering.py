"""Covering arrays: of the many cases of a test, those that `make test` runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import Any

import pytest

MAY_BE_SKIPPED = ("torch", "skipif")


def leave_the_rest(items: Iterable[pytest.Item]) -> None:
    """Mark cases of tests with `covering(strength)` as slow that its covering array does not need."""
    tests: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("covering")
        if marker and not item.get_closest_marker("slow"):
            tests.setdefault((item.nodeid.partition("[")[0], *marker.args), []).append(item)
    for (_, strength), cases in tests.items():
        # A case that is skipped somewhere stands for others only where it has to.
        cases.sort(key=lambda item: any(item.get_closest_marker(name) for name in MAY_BE_SKIPPED))
        needed = cover([_values(item) for item in cases], strength)
        for at, item in enumerate(cases):
            if at not in needed:
                item.add_marker("slow")


def cover(cases: list[dict[str, Hashable]], strength: int) -> set[int]:
    """Choose cases so that every value occurs (strength 1), or every pair of values of two parameters (2).

    Greedy: the first of the cases that add the most, until none adds anything.
    """
    missing = [set(combinations(case.items(), min(strength, len(case)))) for case in cases]
    chosen: set[int] = set()
    while any(missing):
        best = max(range(len(cases)), key=lambda at: len(missing[at]))
        chosen.add(best)
        new = missing[best].copy()
        for one in missing:
            one -= new
    return chosen


def _values(item: Any) -> dict[str, Hashable]:
    """Return the parameters of a case; one that has no hash is one object in all cases."""
    values: dict[str, Hashable] = {}
    for name, value in sorted(item.callspec.params.items()):
        try:
            hash(value)
        except TypeError:
            value = id(value)
        values[name] = (type(value), value)
    return values
