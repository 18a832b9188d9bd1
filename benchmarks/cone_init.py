"""Claims: initialization by cones is faster than other initializations, and so is a fit from it.

The first race is between initializations alone, on the same data: `nonneg`'s, scikit-learn's nndsvd, and ten
passes of spherical k-means, on `nonneg`'s containers and in plain NumPy. The second is judged like all races
of fits (`race.py`), but `nonneg` is initialized by cones and the reference at random.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import cases, machine
from benchmarks.contender import Outcome, Task, quiet, stopwatch
from benchmarks.ours import nonneg_factorize
from benchmarks.race import Bar, RaceClaim, Settings, run_claim
from benchmarks.records import latest
from benchmarks.tables import markdown, number, race_table, verdict

NAME = "cone_init"
TITLE = "Initialization by cones against other initializations, and fits from it against scikit-learn `cd`"
PASSES = 10
LAND, GOAL = 2.5, 3.0

CLAIM = RaceClaim(
    name=NAME,
    title="A fit from cones: time to the loss of randomly initialized scikit-learn `cd` after 100 passes",
    loss="frobenius",
    cases=(cases.CONES,),
    reference="scikit-learn cd",
    passes=100,
    bars=(Bar("worst", "dense", 12.0, 12.0),),
)


def cone_init(X: Any, n_components: int, threads: int) -> Any:
    """Run `nonneg`'s initialization by cones."""
    from nonneg._threads import threads as limit
    from nonneg.data import as_data_matrix
    from nonneg.initializers.registry import INITS

    with limit(threads):
        W, Ht = INITS["cr1"](as_data_matrix(X), n_components)
    return W, Ht.T


def scikit_learn_nndsvd(X: Any, n_components: int, threads: int) -> Any:
    """Run scikit-learn's nndsvd."""
    from sklearn.decomposition._nmf import _initialize_nmf

    return _initialize_nmf(X, n_components, init="nndsvd", random_state=0)


def nonneg_spherical_kmeans(X: Any, n_components: int, threads: int) -> Any:
    """Run ten passes of spherical k-means on `nonneg`'s containers."""
    from reproduction.cr1.spherical_kmeans import spherical_kmeans

    from nonneg._threads import threads as limit
    from nonneg.data import as_data_matrix

    with limit(threads):
        return spherical_kmeans(as_data_matrix(X), n_components, rng=0, max_passes=PASSES, tol=-np.inf)


def plain_spherical_kmeans(X: Any, n_components: int, threads: int) -> Any:
    """Run ten passes of Lloyd's algorithm on unit rows: one product, and one sparse one for the sums."""
    rng = np.random.default_rng(0)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    centers = units[rng.choice(len(X), n_components, replace=False)]
    everyone = np.arange(len(X))
    for _ in range(PASSES):
        labels = np.argmax(units @ centers.T, axis=1)
        members = scipy.sparse.csr_array(
            (np.ones(len(X), dtype=X.dtype), (labels, everyone)), shape=(n_components, len(X))
        )
        sums = members @ units
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centers = np.where(norms > 0, sums / np.where(norms > 0, norms, 1.0), centers)
    return centers


OURS = "nonneg cone"
CONTENDERS: dict[str, Callable[[Any, int, int], Any]] = {
    OURS: cone_init,
    "scikit-learn nndsvd": scikit_learn_nndsvd,
    "spherical k-means, 10 passes, nonneg": nonneg_spherical_kmeans,
    "spherical k-means, 10 passes, plain": plain_spherical_kmeans,
}


def from_cones(task: Task, target: float, max_seconds: float) -> Outcome:
    """Run `nonneg.factorize`, initialized by cones, to the target; the initialization time counts."""
    return nonneg_factorize(task, target, max_seconds, init="cr1")


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Race the initializations in turns, then the fits."""
    claim = replace(CLAIM, cases=(cases.SMALL_CONES,)) if settings.quick else CLAIM
    with machine.limited(settings.threads) as told:
        for case in settings.chosen(claim.cases):
            for dtype in settings.dtypes:
                for record in _race_of_inits(case, dtype, settings):
                    yield record | {"libraries": told}
        for record in run_claim(claim, settings, ours=from_cones):
            yield record | {"race": "fits", "libraries": told}


def _race_of_inits(case: cases.Case, dtype: str, settings: Settings) -> Iterator[dict[str, Any]]:
    X, source = case.load(np.dtype(dtype))
    taken: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for turn in range(settings.repeats + 1):
        for name, initialize in CONTENDERS.items():
            with quiet(), stopwatch() as seconds:
                initialize(X, case.n_components, settings.threads)
                if turn > 0:  # the first turn compiles and loads
                    taken[name].append(seconds())
    own = statistics.median(taken[OURS])
    for name, times in taken.items():
        median = statistics.median(times)
        yield {
            "claim": NAME,
            "race": "initializations",
            "case": case.name,
            "kind": case.kind,
            "source": source,
            "dtype": dtype,
            "threads": settings.threads,
            "contender": f"init: {name}",
            "repeats": settings.repeats,
            "seconds": median,
            "all": times,
            "ratio": median / own,
        }


def table(records: list[dict[str, Any]]) -> str:
    """Return the tables of both races."""
    newest = latest(records, "case", "dtype", "threads", "contender")
    rows = []
    for record in newest:
        if record["race"] != "initializations":
            continue
        name = record["contender"].removeprefix("init: ")
        bar = "-"
        if name != OURS and record["case"] == cases.CONES.name:
            bar = f"{LAND:g} {verdict(record['ratio'], LAND)}, {GOAL:g} {verdict(record['ratio'], GOAL)}"
        cells = [record["case"], record["dtype"], str(record["threads"]), name]
        rows.append([*cells, number(record["seconds"]), number(record["ratio"]), bar])
    alone = markdown(("data", "type", "threads", "initialization", "s", "over nonneg's", "targets"), rows)
    fits = race_table(CLAIM, [record for record in newest if record["race"] == "fits"])
    return f"## Initializations alone\n\n{alone}\n\n## {CLAIM.title}\n\n{fits}"
