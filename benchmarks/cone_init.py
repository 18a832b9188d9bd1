"""Claims: the start from cones is quicker than other starts, and a fit from it is soon where `cd` gets to.

The first race is between starts alone, on the same data: `nonneg`'s, scikit-learn's nndsvd, and ten passes of
spherical k-means, `nonneg`'s own and one written here as plainly as it can be. The second is judged as all
races of fits (`race.py`), but `nonneg` starts from its cones and the reference from its random start.
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
TITLE = "The start from cones beside other starts, and to the loss of scikit-learn `cd` after 100 passes"
PASSES = 10
LAND, GOAL = 2.5, 3.0

CLAIM = RaceClaim(
    name=NAME,
    title="A fit from cones: time to the loss of scikit-learn `cd` after 100 passes from a random start",
    loss="frobenius",
    cases=(cases.CONES,),
    reference="scikit-learn cd",
    passes=100,
    bars=(Bar("worst", "dense", 12.0, 12.0),),
)


def cone_init(X: Any, n_components: int, threads: int) -> Any:
    """Run `nonneg`'s start.

    Parameters
    ----------
    X : array
        The data.
    n_components : int
        The rank.
    threads : int
        For its kernels.

    Returns
    -------
    tuple of arrays
        W and H.
    """
    from nonneg._threads import threads as limit
    from nonneg.data import as_data_matrix
    from nonneg.initializers import INITS

    with limit(threads):
        W, Ht = INITS["cone"](as_data_matrix(X), n_components)
    return W, Ht.T


def scikit_learn_nndsvd(X: Any, n_components: int, threads: int) -> Any:
    """Run scikit-learn's nndsvd.

    Parameters
    ----------
    X : array
        The data.
    n_components : int
        The rank.
    threads : int
        Held by the caller.

    Returns
    -------
    tuple of arrays
        W and H.
    """
    from sklearn.decomposition._nmf import _initialize_nmf

    return _initialize_nmf(X, n_components, init="nndsvd", random_state=0)


def nonneg_spherical_kmeans(X: Any, n_components: int, threads: int) -> Any:
    """Run ten passes of `nonneg`'s spherical k-means.

    Parameters
    ----------
    X : array
        The data.
    n_components : int
        The rank.
    threads : int
        For its products.

    Returns
    -------
    array
        The centres.
    """
    from nonneg._threads import threads as limit
    from nonneg.data import as_data_matrix
    from nonneg.initializers.spherical_kmeans import spherical_kmeans

    with limit(threads):
        return spherical_kmeans(as_data_matrix(X), n_components, rng=0, max_passes=PASSES, tol=-np.inf)


def plain_spherical_kmeans(X: Any, n_components: int, threads: int) -> Any:
    """Run ten passes of Lloyd's algorithm on unit rows: one product, and one sparse one for the sums.

    Parameters
    ----------
    X : array
        The data.
    n_components : int
        The rank.
    threads : int
        Held by the caller.

    Returns
    -------
    array
        The centres.
    """
    rng = np.random.default_rng(0)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    centres = units[rng.choice(len(X), n_components, replace=False)]
    everyone = np.arange(len(X))
    for _ in range(PASSES):
        labels = np.argmax(units @ centres.T, axis=1)
        members = scipy.sparse.csr_array(
            (np.ones(len(X), dtype=X.dtype), (labels, everyone)), shape=(n_components, len(X))
        )
        sums = members @ units
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(norms > 0, sums / np.where(norms > 0, norms, 1.0), centres)
    return centres


OURS = "nonneg cone"
CONTENDERS: dict[str, Callable[[Any, int, int], Any]] = {
    OURS: cone_init,
    "scikit-learn nndsvd": scikit_learn_nndsvd,
    "spherical k-means, 10 passes, nonneg": nonneg_spherical_kmeans,
    "spherical k-means, 10 passes, plain": plain_spherical_kmeans,
}


def from_cones(task: Task, target: float, max_seconds: float) -> Outcome:
    """Run `nonneg.factorize` from its start from cones to the target; the start counts.

    Parameters
    ----------
    task : Task
        Data; its start is left alone.
    target : float
        The loss to reach.
    max_seconds : float
        When to give up.

    Returns
    -------
    Outcome
        As `benchmarks.ours.nonneg_factorize`.
    """
    return nonneg_factorize(task, target, max_seconds, init="cone")


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Race the starts, taking turns, then the fits.

    Parameters
    ----------
    settings : Settings
        How.

    Yields
    ------
    dict
        A record a contender.
    """
    claim = replace(CLAIM, cases=(cases.SMALL_CONES,)) if settings.quick else CLAIM
    with machine.limited(settings.threads) as told:
        for case in settings.chosen(claim.cases):
            for dtype in settings.dtypes:
                for record in _race_of_starts(case, dtype, settings):
                    yield record | {"libraries": told}
        for record in run_claim(claim, settings, ours=from_cones):
            yield record | {"race": "fits", "libraries": told}


def _race_of_starts(case: cases.Case, dtype: str, settings: Settings) -> Iterator[dict[str, Any]]:
    X, source = case.load(np.dtype(dtype))
    taken: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for turn in range(settings.repeats + 1):
        for name, start in CONTENDERS.items():
            with quiet(), stopwatch() as seconds:
                start(X, case.n_components, settings.threads)
                if turn > 0:  # the first turn compiles and loads
                    taken[name].append(seconds())
    own = statistics.median(taken[OURS])
    for name, times in taken.items():
        median = statistics.median(times)
        yield {
            "claim": NAME,
            "race": "starts",
            "case": case.name,
            "kind": case.kind,
            "source": source,
            "dtype": dtype,
            "threads": settings.threads,
            "contender": f"start: {name}",
            "repeats": settings.repeats,
            "seconds": median,
            "all": times,
            "ratio": median / own,
        }


def table(records: list[dict[str, Any]]) -> str:
    """Return the tables of both races.

    Parameters
    ----------
    records : list of dict
        Oldest first.

    Returns
    -------
    str
        Markdown.
    """
    newest = latest(records, "case", "dtype", "threads", "contender")
    rows = []
    for record in newest:
        if record["race"] != "starts":
            continue
        name = record["contender"].removeprefix("start: ")
        bar = "-"
        if name != OURS and record["case"] == cases.CONES.name:
            bar = f"{LAND:g} {verdict(record['ratio'], LAND)}, {GOAL:g} {verdict(record['ratio'], GOAL)}"
        cells = [record["case"], record["dtype"], str(record["threads"]), name]
        rows.append([*cells, number(record["seconds"]), number(record["ratio"]), bar])
    starts = markdown(("data", "type", "threads", "start", "s", "over nonneg's", "bars"), rows)
    fits = race_table(CLAIM, [record for record in newest if record["race"] == "fits"])
    return f"## Starts alone\n\n{starts}\n\n## {CLAIM.title}\n\n{fits}"
