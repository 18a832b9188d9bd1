"""What `nonneg consensus` and `nonneg signatures` write: records and tables of tab-separated values."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.consensus.certificate import are_stable
from nonneg.estimators.consensus_nmf import ConsensusNMF
from nonneg.report.records import run_record, table_facts

# Genes that are named for a program.
N_TOP = 20
# Components in the clustergram of the record, and in its histogram of densities.
_SHOWN, _DENSITIES = 120, 5000


def write_tsv(path: Path, heading: Iterable[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table of tab-separated values; numbers with six digits."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(heading)
        writer.writerows([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in rows)


def named_rows(names: Sequence[Any], values: Any) -> Iterable[list[Any]]:
    """Put a name before each row."""
    return ([name, *row] for name, row in zip(names, np.asarray(values).tolist(), strict=True))


def consensus_record(
    command: str,
    title: str,
    table: Any,
    model: ConsensusNMF,
    *,
    seconds: float | None,
    programs: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Any] | None,
    tables: Mapping[str, str],
    parameters: Mapping[str, Any],
    result: Mapping[str, Any],
) -> dict[str, Any]:
    """Build the record of a run."""
    found = next(each for each in model.ranks_ if each.n_components == model.n_components_)
    rows = model.restarts_.of(model.n_components_)
    shown = np.linspace(0, len(found.distances) - 1, min(_SHOWN, len(found.distances))).round().astype(int)
    thin = np.linspace(0, len(found.density) - 1, min(_DENSITIES, len(found.density))).round().astype(int)
    return run_record(
        command,
        title,
        data=table_facts(table),
        parameters=parameters,
        result={
            "n_components": model.n_components_,
            "reason": model.rank_reason_,
            "stability": found.silhouette,
            "n_stable": int(np.sum(are_stable(found))),
            "n_outliers": found.n_outliers,
            "n_restarts": len(model.restarts_),
            "error": found.error,
            "converged": float(np.mean(model.restarts_.converged[rows])),
            "seconds": seconds,
            **result,
        },
        estimator=model,
        ranks=[each.row() for each in model.ranks_],
        programs=list(programs),
        clustergram={
            "distances": np.round(found.distances[np.ix_(shown, shown)].astype(float), 3),
            "labels": found.distance_labels[shown],
        },
        density={
            "values": np.round(np.minimum(found.density[thin], 2.0), 4),
            "threshold": float(model.density_threshold),
        },
        groups=groups,
        tables=dict(tables),
    )


def program_facts(model: ConsensusNMF, at: int) -> dict[str, Any]:
    """Describe a program."""
    found = next(each for each in model.ranks_ if each.n_components == model.n_components_)
    return {
        "number": at,
        "stability": float(found.stability[at]),
        "stable": bool(are_stable(found)[at]),
        "recurrence": float(found.recurrence[at]),
        "usage": float(found.usage[at]),
    }


def scored_programs(model: ConsensusNMF, scores: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Describe all programs, each with the genes that have its largest scores."""
    top = np.argsort(-scores, axis=1, kind="stable")[:, :N_TOP]
    return [
        {**program_facts(model, at), "top": [(names[gene], float(scores[at, gene])) for gene in genes]}
        for at, genes in enumerate(top)
    ]


def signature_programs(model: Any, matches: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Describe all signatures, with the known ones that they match."""
    return [
        {
            **program_facts(model.consensus_, at),
            "spectrum": model.signatures_[at],
            "top": [],
            "match": None if matches is None else asdict(matches[at]),
        }
        for at in range(model.n_signatures_)
    ]


def usage_by_group(W: FloatArray, labels: Sequence[str] | None, by: str) -> dict[str, Any] | None:
    """Return the mean shares of the programs in every group of samples."""
    if labels is None:
        return None
    sums = W.sum(axis=1, keepdims=True)
    shares = W / np.where(sums > 0, sums, 1.0)
    names, places = np.unique(np.asarray([str(label) for label in labels]), return_inverse=True)
    entries = [
        {"name": str(name), "n": int(np.sum(places == at)), "usage": shares[places == at].mean(axis=0)}
        for at, name in enumerate(names)
    ]
    return {"by": by, "entries": entries}


def write_ranks(folder: Path, model: ConsensusNMF) -> None:
    """Write what was measured for every rank, and every restart."""
    rows = [each.row() for each in model.ranks_]
    write_tsv(folder / "ranks.tsv", rows[0], (row.values() for row in rows))
    table = model.restarts_
    columns = (table.n_components, table.number, table.seed, table.loss, table.n_iter, table.converged)
    write_tsv(
        folder / "restarts.tsv",
        ("n_components", "restart", "seed", "loss", "n_iter", "converged"),
        zip(*(column.tolist() for column in columns), strict=True),
    )
