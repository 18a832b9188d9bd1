"""Searches along rotations in one operation, for many small problems on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nonneg._typing import Array
from nonneg.kernels.rotations import triton as triton_rotations
from nonneg.transforms.rotations.line_search import Point, SearchOutcome

WholeSearch = Callable[[Point, Array, Array, Array, int], SearchOutcome]
"""From point, direction, value, slope and the most trials to where the search ended."""
# The search and retraction of the paper.
USUAL = {True: ("wolfe", "exponential"), False: ("halving", "polar")}


def searches_whole(data: Any, search: str, retraction: str, *, learns: bool) -> bool:
    """Say whether there is a kernel for a search."""
    virtual = getattr(data, "virtual", None)
    usual = (search, retraction) == USUAL[learns]
    return usual and virtual is not None and triton_rotations.searches(virtual)


def whole_search(data: Any, search: str, retraction: str, **objective: Any) -> WholeSearch | None:
    """Return a search in one operation."""
    if not searches_whole(data, search, retraction, learns="inverse" in objective):
        return None

    def found_by_kernel(
        point: Point, direction: Array, value: Array, slope: Array, max_trials: int
    ) -> SearchOutcome:
        found = triton_rotations.searched(
            data.virtual, point[0], direction, value, slope, max_trials, **objective
        )
        moved = found.transform, found.frames, found.variances
        return SearchOutcome(moved, found.step, found.value, found.succeeded > 0, max_trials)

    return found_by_kernel
