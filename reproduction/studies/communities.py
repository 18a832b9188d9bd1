"""The default of `MixedMembership` beside its candidates and the published methods, family by family."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, SparseMatrix
from nonneg.applications import MixedMembership
from nonneg.exceptions import NonnegError, NonnegWarning
from nonneg.metrics import normalized_mutual_information
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES
from reproduction.scores import match_memberships
from reproduction.studies.communities_graphs import DATA_SETS, FAMILIES, graphs

NAME = "studies/communities"
PROPOSED = ("nmf", "regularized-spa", "poisson")
PUBLISHED = ("spa", "spoc")
METHODS = ("auto", *PROPOSED, *PUBLISHED)
"""The default, what it proposes, and methods as published."""
# How far the default may be behind the best of its candidates, in rank correlation.
ALLOWED = 0.03


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return the graphs."""
    if quick:
        return [{"family": "planted", "graph": "small"}]
    return [{"family": family, "graph": name} for family, names in FAMILIES.items() for name in names]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run all methods on the draws of a graph."""
    records = []
    for draw, (adjacency, truth) in enumerate(graphs(setting["graph"])):
        known = truth.sum(axis=1) > 0
        for method in METHODS:
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NonnegWarning)
                try:
                    model = MixedMembership(truth.shape[1], method=method, unreached="mean").fit(adjacency)
                except NonnegError:
                    continue
            seconds = time.perf_counter() - started
            record = {"draw": draw, "method": method, "s": round(seconds, 2)}
            record |= _agreement(truth[known], model.memberships_[known])
            if method == "auto":
                scores = {name: round(score, 5) for name, score in model.scores_.items()}
                record |= {"chosen": model.method_, "scores": scores}
            records.append(record)
        records.append({"draw": draw, **_number(adjacency, truth, known)})
    return records


def _agreement(truth: FloatArray, found: FloatArray) -> dict[str, Any]:
    matching = match_memberships(truth, found)
    return {"src": round(float(matching.correlations.mean()), 5), "nmi": _nmi(truth, found)}


def _nmi(truth: FloatArray, found: FloatArray) -> float:
    labels = np.where(np.isfinite(found).all(axis=1), np.nan_to_num(found).argmax(axis=1), -1)
    return round(normalized_mutual_information(truth.argmax(axis=1), labels), 4)


def _number(adjacency: SparseMatrix, truth: FloatArray, known: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonnegWarning)
        model = MixedMembership("auto", unreached="mean").fit(adjacency)
    return {
        "known": truth.shape[1],
        "estimates": model.number_["estimates"] if model.number_ is not None else {},
        "nmi": _nmi(truth[known], model.memberships_[known]),
    }


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return rank correlations beside the judge, numbers of communities, and the claim of each family."""
    fits = [record for record in records if "method" in record]
    numbers = [record for record in records if "estimates" in record]
    rows, verdicts = [], []
    for family, names in FAMILIES.items():
        behind, published = [], []
        for name in names:
            by_method = grouped([one for one in fits if one["graph"] == name], "method")
            if ("auto",) not in by_method:
                continue
            means = {method: _mean(by_method.get((method,), []), "src") for method in METHODS}
            defaults = by_method["auto",]
            row: dict[str, Any] = {"family": family, "graph": name, **means}
            for candidate in PROPOSED:
                row[f"score {candidate}"] = _mean([one["scores"] for one in defaults], candidate)
            row["chosen"] = ", ".join(sorted({one["chosen"] for one in defaults}))
            rows.append(row)
            best = max(means[candidate] or -1.0 for candidate in PROPOSED)
            behind.append((best - (means["auto"] or -1.0), name))
            best = max(means[method] or -1.0 for method in PUBLISHED)
            published.append((best - (means["auto"] or -1.0), name))
        rivals = {
            "the best of its candidates": behind,
            "the better of SPA and SPOC as published": published,
        }
        for words, differences in rivals.items():
            if differences:
                worst, where = max(differences)
                verdicts.append(
                    Verdict(
                        f"{family}: the default is at most {ALLOWED} behind {words}",
                        worst <= ALLOWED if len(differences) == len(names) else None,
                        f"{worst:.3f} on {where}",
                    )
                )
    columns = {"family": "family", "graph": "graph", **{method: method for method in METHODS}}
    columns |= {f"score {candidate}": f"judge: {candidate}" for candidate in PROPOSED} | {"chosen": "chosen"}
    counted = []
    for (family, name), group in grouped(numbers, "family", "graph").items():
        row = {"family": family, "graph": name, "known": group[0]["known"], "nmi": _mean(group, "nmi")}
        for estimate in ("eigengap", "non-backtracking"):
            row[estimate] = ", ".join(str(one["estimates"].get(estimate, "-")) for one in group)
        counted.append(row)
    headings = {
        "family": "family", "graph": "graph", "known": "known communities", "eigengap": "eigengap (decides)",
        "non-backtracking": "non-backtracking", "nmi": "NMI with the eigengap",
    }  # fmt: skip
    return [
        Table(
            "Mean rank correlation of the memberships with the known ones; log-likelihood per hidden edge "
            "of the candidates, by which the default chooses.",
            columns,
            rows,
            3,
        ),
        Table("Number of communities by draw.", headings, counted, 3),
        *verdicts,
    ]


def _mean(records: Sequence[Any], key: str) -> float | None:
    values = [record[key] for record in records if key in record]
    return float(np.mean(values)) if values else None


EXPERIMENT = Experiment(
    NAME, TITLES[NAME], trials=trials, run=run, summarize=summarize, data_sets=DATA_SETS, quick_data_sets=()
)
