"""Table VII: how well documents are clustered by factorizations from different initializations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction import data as datasets
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.cr1.algorithm_runs import ALGORITHMS, Fit, has_converged, run_from
from reproduction.cr1.clustering_artifacts import (
    agreement,
    best_init_counts,
    by_method,
    published_rows,
    scores_table,
)
from reproduction.cr1.clustering_methods import (
    ITERATIONS,
    MEASURES,
    clustering_trials,
    run_clusterings,
    scores,
)
from reproduction.cr1.initializations import Initialization, Samples, make_init, seeded
from reproduction.cr1.real_sets import DOCUMENTS, load_set
from reproduction.cr1.word_weights import WEIGHTINGS
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.published_values import published_values
from reproduction.registry import TITLES

NAME = "cr1/table-7"
RUNS = {"tr11": 20, "tr12": 10, "tr23": 10, "tr41": 10, "re0": 5, "fbis": 5, "classic": 5, "k1a": 3, "la1": 3}
"""Collection -> number of runs; the paper has ten on tr11."""
FIRST_POINT_STEP, FIRST_POINT_TRIALS = 4, 8
"""Stride between the documents that serve as first point of cr1-nmf, and number of trials."""
PAPER_SET, PAPER_RUNS = "tr11", 10


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
        return _run_preparation(setting)
    return _run_first_points(setting)


def _run_preparation(setting: Setting) -> list[dict[str, Any]]:
    """Score the deterministic rows under a weighting of the words."""
    found = datasets.load_cluto(setting["set"])
    samples = Samples.of(WEIGHTINGS[setting["weighting"]](found.X))
    init = make_init("nndsvd", samples, int(found.y.max()) + 1, seeded("nndsvd", 0))
    records = []
    for algorithm in ("nnlsb", "hals"):
        fit = _fit(algorithm, samples, init)
        records.append(
            {"method": f"nndsvd+{algorithm}", "n_iter": len(fit.errors)} | scores(found.y, fit.labels)
        )
    return records


def _run_first_points(setting: Setting) -> list[dict[str, Any]]:
    """Score cr1-nmf from fixed first points, in place of random ones."""
    real = load_set(setting["set"])
    samples = Samples.of(real.X)
    assert real.y is not None
    records = []
    for first in range(setting["offset"], len(real.y), setting["step"]):
        init = make_init("cr1-nmf", samples, real.k, seeded("cr1-nmf", 0), first=first)
        for algorithm in setting["algorithms"]:
            fit = _fit(algorithm, samples, init)
            records.append({"method": f"cr1-nmf+{algorithm}", "first": first} | scores(real.y, fit.labels))
    return records


def _fit(algorithm: str, samples: Samples, init: Initialization) -> Fit:
    return run_from(algorithm, samples, init, max_iter=ITERATIONS[algorithm], until=has_converged)


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the tables of all collections, and those that look into tr11."""
    published = published_rows(published_values("cr1_nmf")["table_7_clustering_tr11"])
    panels = {panel: group for (panel,), group in grouped(records, "panel").items()}
    sets = {name: group for (name,), group in grouped(panels.get("table", []), "set").items()}
    artifacts: list[Artifact] = []
    if PAPER_SET in sets:
        caption = "tr11: mean ± standard deviation over runs, with the published values."
        artifacts.append(scores_table(caption, sets[PAPER_SET], published))
        artifacts += agreement(sets[PAPER_SET], published)
    if "first points" in panels:
        artifacts += _first_points(panels["first points"], published)
    if "preparation" in panels:
        artifacts += _preparations(panels["preparation"], published)
    if PAPER_SET in sets:
        artifacts.append(_readings(sets[PAPER_SET], published))
    others = {name: group for name, group in sets.items() if name != PAPER_SET}
    artifacts += [
        scores_table(f"{name}: mean ± standard deviation over runs.", others[name]) for name in others
    ]
    artifacts.append(best_init_counts(sets))
    return artifacts


def _first_points(records: Sequence[Record], published: Any) -> list[Artifact]:
    """Average cr1-nmf over first points, beyond the chance of ten runs."""
    groups = by_method(records)
    n_points = len({record["first"] for record in records})
    name = records[0]["set"]
    beside = published if name == PAPER_SET else {}
    rows = []
    for method, group in groups.items():
        row: dict[str, Any] = {"method": method, "points": len(group)}
        for measure in MEASURES:
            mean, spread = mean_and_spread([record[measure] for record in group])
            target = beside.get(method, {})
            row[measure] = Measured(
                mean, spread, target.get(measure), target.get(f"{measure}_std"), n_draws=len(group)
            )
        rows.append(row)
    columns = {"method": "method", "points": "first points"} | {measure: measure for measure in MEASURES}
    caption = f"{name}: cr1-nmf from {n_points} first documents, evenly spread over the collection."
    artifacts: list[Artifact] = [Table(caption, columns, rows, digits=3)]
    if beside:
        artifacts.append(_luck(rows))
    return artifacts


def _luck(rows: Sequence[Any]) -> Verdict:
    """Say whether the published means could be those of ten of these first points."""
    apart = {
        f"{row['method']} {measure}": abs(cell.value - cell.published) / (cell.spread / PAPER_RUNS**0.5)
        for row in rows
        for measure in MEASURES
        if (cell := row[measure]).spread
    }
    largest = max(apart, key=lambda name: apart[name], default="")
    return Verdict(
        "the published means of cr1-nmf are within two standard errors of ten random first points",
        apart[largest] <= 2 if apart else None,
        f"the largest difference is {apart[largest]:.2f} standard errors: {largest}" if apart else "",
    )


def _preparations(records: Sequence[Record], published: Any) -> list[Artifact]:
    name = records[0]["set"]
    rows = []
    for (weighting,), group in grouped(records, "weighting").items():
        row: dict[str, Any] = {"weighting": weighting}
        for method, members in by_method(group).items():
            row |= {f"{method} {measure}": members[0][measure] for measure in MEASURES}
        rows.append(row)
    methods = list(by_method(records))
    columns = {"weighting": "weighting"}
    columns |= {f"{method} {measure}": f"{method}: {measure}" for method in methods for measure in MEASURES}
    if name == PAPER_SET:
        top: dict[str, Any] = {"weighting": "published"}
        top |= {
            f"{method} {measure}": published[method][measure] for method in methods for measure in MEASURES
        }
        rows.insert(0, top)
    caption = f"{name}: the deterministic rows under several weightings of the counts."
    artifacts: list[Artifact] = [Table(caption, columns, rows, digits=3)]
    if name == PAPER_SET:
        artifacts.append(_nearest(rows[0], rows[1:], [key for key in columns if key != "weighting"]))
    return artifacts


def _nearest(published: Any, rows: Sequence[Any], keys: Sequence[str]) -> Verdict:
    distances = {row["weighting"]: max(abs(row[key] - published[key]) for key in keys) for row in rows}
    nearest = min(distances, key=lambda weighting: distances[weighting])
    claim = "of these weightings log tf-idf with unit length is closest to the published rows"
    order = sorted(distances, key=lambda weighting: distances[weighting])
    detail = ", ".join(f"{weighting} {distances[weighting]:.3f}" for weighting in order[:3])
    return Verdict(claim, nearest == "log tf-idf", f"largest difference of a score: {detail}")


def _readings(records: Sequence[Record], published: Any) -> Artifact:
    """Show what the scale of the components and the choice of a Dice coefficient change."""
    rows = []
    for method, group in by_method(records).items():
        if "without lengths" not in group[0]:
            continue
        rows.append(
            {
                "method": method,
                "published": published[method]["nmi"],
                "nmi": mean_and_spread([record["nmi"] for record in group])[0],
                "raw": mean_and_spread([record["without lengths"]["nmi"] for record in group])[0],
                "published dice": published[method]["dice"],
                "dice": mean_and_spread([record["dice"] for record in group])[0],
                "pairs": mean_and_spread([record["pair dice"] for record in group])[0],
            }
        )
    columns = {
        "method": "method",
        "published": "nmi (published)",
        "nmi": "nmi",
        "raw": "nmi, unscaled coefficients",
        "published dice": "Dice (published)",
        "dice": "Dice, best cluster of each class",
        "pairs": "Dice of pairs",
    }
    caption = "tr11: other readings of the scores."
    return Table(caption, columns, rows, digits=3) if rows else Paragraph("")


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=tuple(f"cluto_{name}" for name in DOCUMENTS),
    quick_data_sets=("cluto_tr23",),
)
