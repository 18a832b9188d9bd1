"""What choosing among initializations gains: the best of several after few iterations, and an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.artifacts import Table
from reproduction.experiment import Record

BEST_OF: dict[str, tuple[str, ...]] = {
    "cone, random": ("cone", "random"),
    "cone-or-random, cone-merge": ("cone-or-random", "cone-merge"),
    "cone, nndsvd, 3 random": ("cone", "nndsvd", "random", "random", "random"),
}
"""Candidates; a name more than once stands for several seeds."""
TRIED = (1, 3, 10)
"""Iterations from every candidate."""
N_DRAWS = 10


def best_of(
    runs: Mapping[str, Sequence[Record]],
    names: Sequence[str],
    n_iter: int,
    grid: Sequence[int],
    seconds: float,
) -> list[dict[str, Any]]:
    """Return runs that continue from the best of several; the time of all counts as initialization."""
    # The iterations of the best one are not lost: they are those of the run.
    found = []
    at = grid.index(n_iter)
    for draw in range(N_DRAWS):
        tried = [
            runs[name][(draw * names.count(name) + names[:place].count(name)) % len(runs[name])]
            for place, name in enumerate(names)
        ]
        best = min(tried, key=lambda record: record["errors"][at])
        spent = sum(record["init seconds"] for record in tried) + (len(tried) - 1) * n_iter * seconds
        found.append({**best, "init seconds": spent})
    return found


def choice_table(
    heading: str,
    cases: Sequence[Any],
    grid: Sequence[int],
    near: float,
    work_until: Callable[[Record, float, float], float],
    error_after: Callable[[Record, float, float], float],
    best: Mapping[str, tuple[str, ...]] = BEST_OF,
) -> Table:
    """Return how often choices are the first or near it, over the cases of all data sets."""
    rows: list[dict[str, Any]] = []
    for label, names in best.items():
        for n_iter in TRIED:
            ratios, errors = [], []
            for case in cases:
                runs = best_of(case.runs, names, n_iter, grid, case.seconds)
                least = case.work[case.first]
                works = [work_until(record, case.error, case.seconds) for record in runs]
                after = [error_after(record, least, case.seconds) for record in runs]
                ratios.append(float(np.median(works)) / least)
                errors.append(float(np.median(after)) / case.error)
            rows.append(
                {
                    "choice": f"best of {label}",
                    "iterations": n_iter,
                    "near": sum(ratio <= near for ratio in ratios),
                    "error": sum(error <= near for error in errors),
                    "mean": _mean(ratios),
                }
            )
    known = [_least(cases, case) for case in cases]
    rows.append(
        {
            "choice": "the best of all on each data set, known beforehand",
            "near": sum(ratio <= near for ratio in known),
            "mean": _mean(known),
        }
    )
    columns = {
        "choice": "choice",
        "iterations": "iterations from each",
        "near": "first or within 2% of its time",
        "error": "error within 2% when the first is there",
        "mean": "time over that of the first, geometric mean (10 where an error is not reached)",
    }
    caption = f"{heading}: what choosing among initializations costs and gains, {len(cases)} cases."
    return Table(caption, columns, rows, digits=3)


def _least(cases: Sequence[Any], case: Any) -> float:
    """Return the ratio of the initialization that is near the first most often on the data set."""
    same = [other for other in cases if other.name == case.name]
    best = min(case.ratio, key=lambda init: _mean([other.ratio.get(init, math.inf) for other in same]))
    return float(case.ratio[best])


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(math.log(min(ratio, 10.0)) for ratio in ratios) / len(ratios))
