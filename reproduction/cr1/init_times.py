"""Time of initializations and iterations on the real data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reproduction.cr1.algorithm_runs import run_from
from reproduction.cr1.initializations import INITS, Samples, make_init, seeded
from reproduction.cr1.real_sets import ADDED, FILMS, QUICK, RealSet, load_set, timed_sets
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread

TIMED_INITS = tuple(kind for kind in INITS if kind != "rand")
SHIFTED = ("mult", "hals")
"""The algorithms whose iterations all take about the same time."""
SET_NAMES = {
    "olivetti_64x64": "Olivetti",
    "ckplus48": "CK+",
    "yaleB_32x32": "Yale B",
    "coil20": "COIL-20",
    "indian_pines": "Indian Pines",
    "paviaU_sub50": "PaviaU crop",
    FILMS: "ORL videos",
    QUICK: "made-up cones",
} | {name: title for name, (title, _) in ADDED.items()}


def timed_inits(samples: Samples, k: int, n_repeats: int) -> dict[str, list[float]]:
    """Time the initializations."""
    return {
        kind: [make_init(kind, samples, k, seeded(kind, i)).seconds for i in (0, *range(n_repeats))][1:]
        for kind in TIMED_INITS
    }


def timed_iterations(samples: Samples, k: int, n_iter: int) -> dict[str, float]:
    """Time an iteration, from a random initialization."""
    found = {}
    for algorithm in SHIFTED:
        init = make_init("rand", samples, k, seeded("rand", 0))
        run_from(algorithm, samples, init, max_iter=1)
        found[algorithm] = run_from(algorithm, samples, init, max_iter=n_iter).seconds[-1] / n_iter
    return found


def shift(init_seconds: float, iteration_seconds: float) -> int:
    """Return how many iterations fit into the time of the initialization."""
    return math.floor(init_seconds / iteration_seconds)


def shape_columns(name: str, records: Sequence[Record]) -> dict[str, Any]:
    """Return the columns that say what a set is."""
    record = records[0]
    return {"set": SET_NAMES[name], "F": record["n_features"], "N": record["n_samples"], "K": record["k"]}


def shape_record(real: RealSet) -> dict[str, int]:
    """Return what `shape_columns` needs."""
    return {"n_samples": real.X.shape[0], "n_features": real.X.shape[1], "k": real.k}


def set_trials(quick: bool, **more: Any) -> list[dict[str, Any]]:
    """Return one setting per data set; one thread, so that times are comparable."""
    return [{"set": name, "threads": 1} | more for name in ((QUICK,) if quick else timed_sets())]


def mean_times(records: Sequence[Record]) -> dict[str, float]:
    """Return the mean seconds of each initialization in the records of a set."""
    found = {}
    for (kind,), group in grouped(records, "init").items():
        values = [value for record in group for value in as_list(record["init seconds"])]
        mean, _ = mean_and_spread(values)
        found[kind] = mean or 0.0
    return found


def as_list(value: Any) -> list[float]:
    """Return a number, or a list of numbers, as a list."""
    return list(value) if isinstance(value, list) else [float(value)]


def loaded(setting: Mapping[str, Any]) -> tuple[RealSet, Samples]:
    """Load the set of a setting in both orientations."""
    real = load_set(setting["set"])
    return real, Samples.of(real.X)
