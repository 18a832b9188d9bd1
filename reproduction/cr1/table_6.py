"""Table VI: how well images are clustered by factorizations from different initializations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import WHOLE, Artifact, Table
from reproduction.cr1.clustering_artifacts import best_init_counts, published_rows, scores_table
from reproduction.cr1.clustering_methods import clustering_trials, run_clusterings
from reproduction.cr1.real_sets import FILMS, QUICK
from reproduction.experiment import Experiment, Record
from reproduction.grouping import grouped
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "cr1/table-6"
RUNS = {"orl_32x32": 10, FILMS: 10, "coil20": 10}
"""Set -> number of runs, as many as in the paper."""
NAMES = {
    "orl_32x32": "ORL faces (400 images of 32 x 32 pixels, 40 people)",
    "coil20": "COIL-20 (1440 images of 32 x 32 pixels, 20 objects)",
    FILMS: "Films of the ORL faces (800 frames of 32 x 32 pixels, 40 people)",
    QUICK: "points in four cones (90 of 64 dimensions)",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per run, data set and group of methods."""
    return clustering_trials({QUICK: 2} if quick else RUNS)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables, and the published one."""
    sets = {name: group for (name,), group in grouped(records, "set").items()}
    artifacts: list[Artifact] = [
        scores_table(f"{NAMES[name]}: mean ± standard deviation over runs.", group)
        for name, group in sets.items()
    ]
    published = published_rows(published_values("cr1_nmf")["table_6_clustering_CK"])
    rows = [{"method": method} | row for method, row in published.items()]
    columns = {"method": "method", "nmi": "nmi", "dice": "Dice", "purity": "purity"}
    why = {WHOLE: "the CK data set is not available here"}
    artifacts.append(Table("Published Table VI, for the CK data set.", columns, rows, 3, why))
    artifacts.append(best_init_counts(sets))
    return artifacts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run_clusterings,
    summarize=summarize,
    data_sets=("orl_32x32", "coil20"),
    quick_data_sets=(),
)
