"""Table III: how many nodes of the networks hold 99% of the energy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from nonneg.applications.communities import leading_eigenvectors
from nonneg.applications.communities.methods import energetic_nodes
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.merit.coauthor_networks import (
    ENERGY,
    GENERATED,
    NEEDED,
    NETWORKS,
    lacking_sentence,
    load_network,
    networks_at_hand,
    published_row,
)
from reproduction.registry import TITLES

NAME = "merit/table-3"


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per network."""
    return [{"network": name} for name in networks_at_hand(quick)]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Count the nodes of a network."""
    network = load_network(setting["network"])
    started = time.perf_counter()
    pairs = leading_eigenvectors(network.adjacency, network.k)
    seconds = time.perf_counter() - started
    return [
        {
            "nodes": network.adjacency.shape[0],
            "edges": network.adjacency.nnz // 2,
            "components": int(connected_components(network.adjacency, directed=False)[0]),
            "communities": network.k,
            "kept": len(energetic_nodes(pairs.vectors, ENERGY)),
            "zero_rows": int(np.count_nonzero(np.abs(pairs.vectors).max(axis=1) < 1e-14)),
            "residual": float(f"{pairs.residual:.2g}"),
            "s": round(seconds, 3),
        }
    ]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the table, and whether it agrees with the published one."""
    rows, apart = [], []
    for record in records:
        published = published_row("table_3_networks", record["network"])
        rows.append(
            {
                "network": NETWORKS.get(record["network"], record["network"]),
                **{key: record[key] for key in ("nodes", "edges", "components", "communities", "zero_rows")},
                "kept": Measured(record["kept"], published=published.get("nodes")),
                "residual": record["residual"],
            }
        )
        if published and (record["kept"], record["communities"]) != (
            published["nodes"],
            published["communities"],
        ):
            apart.append(f"{published['network']}: {record['kept']} against {published['nodes']}")
    columns = {
        "network": "network",
        "nodes": "nodes",
        "edges": "edges",
        "components": "components",
        "communities": "communities",
        "kept": "nodes kept",
        "zero_rows": "zero rows (below 1e-14)",
        "residual": "residual of the eigenvectors",
    }
    names = [record["network"] for record in records]
    real = [name for name in names if name != GENERATED]
    artifacts: list[Artifact] = [
        Table("Networks, and the nodes that hold 99% of the energy.", columns, rows, 6),
        Verdict(
            "the nodes kept are as many as published, on DBLP1, DBLP2 and DBLP4",
            not apart if set(NEEDED) <= set(real) else None,
            "; ".join(apart) or f"{len(real)} networks compared",
        ),
    ]
    missing = lacking_sentence(names)
    return [*artifacts, Paragraph(missing)] if missing else artifacts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=NEEDED,
    quick_data_sets=(),
)
