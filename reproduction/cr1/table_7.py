"""Table VII: how well documents are clustered by factorizations from different starts."""

from __future__ import annotations

from typing import Any

from nonneg import datasets
from reproduction.cr1.clustering_methods import ITERATIONS, clustering_trials, run_clusterings, scores
from reproduction.cr1.four_starts import Initializer, Samples, make_start, seeded
from reproduction.cr1.real_sets import DOCUMENTS, load_set
from reproduction.cr1.runs_from_starts import ALGORITHMS, Fit, has_settled, run_from
from reproduction.cr1.table_7_exhibits import SHOWS, summarize
from reproduction.cr1.word_weights import WEIGHTINGS
from reproduction.experiment import Experiment, Setting
from reproduction.registry import TITLES

NAME = "cr1/table-7"
RUNS = {"tr11": 20, "tr12": 10, "tr23": 10, "tr41": 10, "re0": 5, "fbis": 5, "classic": 5, "k1a": 3, "la1": 3}
"""Collection -> how often all is repeated; the paper has ten runs on tr11."""
FIRST_POINT_STEP, FIRST_POINT_TRIALS = 4, 8
"""Every so many documents are taken as the first point of cr1-nmf, in so many trials."""


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the settings of the tables, of the preparations and of the first points."""
    if quick:
        return [
            *clustering_trials({"tr23": 1}, panel="table")[:1],
            {"panel": "table", "set": "tr23", "run": 0, "group": "hals"},
            {"panel": "preparation", "set": "tr23", "weighting": "log tf-idf"},
            {"panel": "preparation", "set": "tr23", "weighting": "counts"},
            {"panel": "first points", "set": "tr23", "offset": 0, "step": 100, "algorithms": ["hals"]},
        ]
    tables = clustering_trials(RUNS, panel="table")
    n_first = len(clustering_trials({"tr11": RUNS["tr11"]}))
    preparations = [
        {"panel": "preparation", "set": "tr11", "weighting": weighting} for weighting in WEIGHTINGS
    ]
    step = FIRST_POINT_STEP * FIRST_POINT_TRIALS
    first_points = [
        {
            "panel": "first points",
            "set": "tr11",
            "offset": FIRST_POINT_STEP * offset,
            "step": step,
            "algorithms": list(ALGORITHMS),
        }
        for offset in range(FIRST_POINT_TRIALS)
    ]
    return [*tables[:n_first], *preparations, *first_points, *tables[n_first:]]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    if setting["panel"] == "table":
        return run_clusterings(setting)
    if setting["panel"] == "preparation":
        return _preparation(setting)
    return _first_points(setting)


def _preparation(setting: Setting) -> list[dict[str, Any]]:
    """Score the deterministic rows under a weighting of the words."""
    found = datasets.load_cluto(setting["set"])
    samples = Samples.of(WEIGHTINGS[setting["weighting"]](found.X))
    start = make_start("nndsvd", samples, int(found.y.max()) + 1, seeded("nndsvd", 0))
    records = []
    for algorithm in ("nnlsb", "hals"):
        fit = _fit(algorithm, samples, start)
        records.append(
            {"method": f"nndsvd+{algorithm}", "n_iter": len(fit.errors)} | scores(found.y, fit.labels)
        )
    return records


def _first_points(setting: Setting) -> list[dict[str, Any]]:
    """Score cr1-nmf from fixed first points, in the place of random ones."""
    real = load_set(setting["set"])
    samples = Samples.of(real.X)
    assert real.y is not None
    records = []
    for first in range(setting["offset"], len(real.y), setting["step"]):
        start = make_start("cr1-nmf", samples, real.k, seeded("cr1-nmf", 0), first=first)
        for algorithm in setting["algorithms"]:
            fit = _fit(algorithm, samples, start)
            records.append({"method": f"cr1-nmf+{algorithm}", "first": first} | scores(real.y, fit.labels))
    return records


def _fit(algorithm: str, samples: Samples, start: Initializer) -> Fit:
    return run_from(algorithm, samples, start, max_iter=ITERATIONS[algorithm], until=has_settled)


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    SHOWS,
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=tuple(f"cluto_{name}" for name in DOCUMENTS),
    quick_data_sets=("cluto_tr23",),
)
