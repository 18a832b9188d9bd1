"""Tables of the scores of fourteen clustering methods, and the claims about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reproduction.artifacts import Measured, Table, Verdict
from reproduction.cr1.algorithm_runs import ALGORITHMS
from reproduction.cr1.clustering_methods import DEFAULT, MEASURES, METHODS
from reproduction.cr1.initializations import DETERMINISTIC, INITS
from reproduction.cr1.real_sets import QUICK
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread

Published = Mapping[str, Mapping[str, float]]
HEADINGS = {"nmi": "nmi", "dice": "Dice", "purity": "purity"}
WITHIN_DETERMINISTIC = 0.02
"""Absolute difference that is allowed for the scores of deterministic rows."""


def published_rows(table: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Arrange a published table by method and column."""
    columns = table["columns"][1:]
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in table["rows"]}


def by_method(records: Sequence[Record]) -> dict[str, list[dict[str, Any]]]:
    """Gather records by method."""
    groups = {method: group for (method,), group in grouped(records, "method").items()}
    return {method: groups[method] for method in METHODS if method in groups}


def scores_table(caption: str, records: Sequence[Record], published: Published | None = None) -> Table:
    """Lay out the scores of one set."""
    rows = []
    for method, group in by_method(records).items():
        row: dict[str, Any] = {"method": method, "runs": len(group)}
        beside = (published or {}).get(method, {})
        for measure in MEASURES:
            mean, spread = mean_and_spread([record[measure] for record in group])
            row[measure] = Measured(
                mean, spread, beside.get(measure), beside.get(f"{measure}_std"), n_draws=len(group)
            )
        if "n_iter" in group[0]:
            row["n_iter"] = round(mean_and_spread([record["n_iter"] for record in group])[0] or 0)
            row["error"] = mean_and_spread([record["error"] for record in group])[0]
        rows.append(row)
    columns = {"method": "method", "runs": "runs"} | HEADINGS
    columns |= {"n_iter": "iterations", "error": "relative error"}
    return Table(caption, columns, rows, digits=3)


def agreement(records: Sequence[Record], published: Published) -> list[Verdict]:
    """Compare the scores of a set with the published ones."""
    drawn, fixed, n_drawn, n_fixed = [], [], 0, 0
    for method, group in by_method(records).items():
        if method == DEFAULT:
            continue
        for measure in MEASURES:
            found, spread = mean_and_spread([record[measure] for record in group])
            mean, target = found or 0.0, published[method][measure]
            cell = Measured(mean, spread, target, n_draws=len(group))
            what = f"{method} {measure} {mean:.3f} against {target:.3f}"
            if method.split("+")[0] in DETERMINISTIC:
                n_fixed += 1
                fixed += [what] if abs(mean - target) > WITHIN_DETERMINISTIC else []
            else:
                n_drawn += 1
                drawn += [] if cell.is_met() else [what]
    return [
        Verdict(
            f"the {n_drawn} means of the randomized rows are as published within 5% or two standard errors",
            None if n_drawn == 0 else not drawn,
            "; ".join(drawn),
        ),
        Verdict(
            f"the {n_fixed} scores of the deterministic rows (nndsvd) lie within 0.02",
            None if n_fixed == 0 else not fixed,
            "; ".join(fixed),
        ),
    ]


def best_inits(records: Sequence[Record], measure: str = "nmi") -> dict[str, str]:
    """Return the initialization with the best mean score for each algorithm."""
    groups = by_method(records)
    found = {}
    for algorithm in ALGORITHMS:
        means = {
            init: mean_and_spread([record[measure] for record in groups[f"{init}+{algorithm}"]])[0] or 0.0
            for init in INITS
            if f"{init}+{algorithm}" in groups
        }
        if len(means) == len(INITS):
            found[algorithm] = max(means, key=lambda init: means[init])
    return found


def _is_near(records: Sequence[Record], algorithm: str, best: str, measure: str = "nmi") -> bool:
    """Tell whether the mean from cr1-nmf is within its own spread of that from the best initialization."""
    groups = by_method(records)
    ours, spread = mean_and_spread([record[measure] for record in groups[f"cr1-nmf+{algorithm}"]])
    theirs, _ = mean_and_spread([record[measure] for record in groups[f"{best}+{algorithm}"]])
    assert ours is not None
    assert theirs is not None
    return theirs - ours <= (spread or 0.0)


def best_init_counts(sets: Mapping[str, Sequence[Record]]) -> Verdict:
    """Say on how many sets and algorithms each initialization has the best nmi."""
    winners = [best for records in sets.values() for best in best_inits(records).values()]
    counts = {init: winners.count(init) for init in INITS}
    claim = "cr1-nmf is the best initialization by nmi for most data sets and algorithms, as in the paper"
    detail = f"of {len(winners)}: " + ", ".join(f"{init} {count}" for init, count in counts.items())
    near = sum(
        _is_near(records, algorithm, best)
        for records in sets.values()
        for algorithm, best in best_inits(records).items()
    )
    detail += f"; in {near} cr1-nmf is the best or within one of its standard deviations of the best"
    decided = bool(winners) and QUICK not in sets
    return Verdict(claim, counts["cr1-nmf"] > len(winners) / 2 if decided else None, detail)
