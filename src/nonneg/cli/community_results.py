"""The files of a search for communities."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nonneg.cli.result_files import MODEL, REPORT, RESULT, versions, write_answer
from nonneg.report.community_page import build_community_page, draw_graph, mostly_one
from nonneg.report.folder import replaced_folder
from nonneg.report.records import plain
from nonneg.report.tables import markdown_table

MEMBERSHIPS, GRAPH = "memberships.csv", "graph.svg"
FILES = frozenset({MEMBERSHIPS, GRAPH, RESULT, MODEL, REPORT})
"""All names a search may write."""

_N_TOP = 8


def write_community_results(
    folder: Path, model: Any, *, source: str, seconds: float, title: str
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files at once, or none."""
    record = _record(model, source=source, seconds=seconds, title=title)
    with replaced_folder(folder, FILES) as fresh:
        with (fresh / MEMBERSHIPS).open("w", newline="", encoding="utf-8") as stream:
            table = model.node_table()
            writer = csv.writer(stream)
            writer.writerow(table)
            columns = [_plain_column(column) for column in table.values()]
            writer.writerows(zip(*columns, strict=True))
        (fresh / GRAPH).write_text(draw_graph(model), encoding="utf-8")
        written = write_answer(
            folder, fresh, record, lambda: build_community_page(record, model), model=model
        )
    return record, written


def community_table(record: dict[str, Any]) -> str:
    """Lay the communities out as a table for the terminal."""
    rows = [
        entry | {"top": ", ".join(f"{name} {share:.0%}" for name, share in entry["top"][:4])}
        for entry in record["communities"]
    ]
    headings = {
        "community": "community",
        "pure_node": "pure node",
        "size": "size",
        "top": "belong most to it",
    }
    return markdown_table(rows, headings).rstrip("\n")


def _plain_column(column: Any) -> list[Any]:
    values = np.asarray(column)
    if values.dtype.kind == "b":
        return values.astype(int).tolist()
    if values.dtype.kind == "f":
        # An empty cell where there is no membership.
        return ["" if np.isnan(value) else repr(value) for value in values.tolist()]
    return values.tolist()


def _record(model: Any, *, source: str, seconds: float, title: str) -> dict[str, Any]:
    graph, shares = model.graph_, np.nan_to_num(model.memberships_, nan=0.0)
    labels = model.labels_
    top = model.top_nodes(_N_TOP)
    result = model.result_
    record = {
        "format": 1,
        "title": title,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "source": source,
            "n_nodes": graph.n_nodes,
            "n_edges": graph.n_edges,
            "n_isolated": len(model.isolated_nodes_),
            "n_self_loops": graph.n_self_loops,
            "weighted": bool(np.ptp(graph.adjacency.data) > 0),
        },
        "parameters": {name: value for name, value in model.get_params().items() if name != "callback"},
        "communities": [
            {
                "community": at,
                "pure_node": model.node_names_[node],
                "size": float(shares[:, at].sum()),
                "n_nodes": int(np.count_nonzero(labels == at)),
                "top": top[at],
            }
            for at, node in enumerate(model.pure_nodes_.tolist())
        ],
        "connectivity": model.connectivity_.tolist(),
        "eigenvalues": model.eigenvalues_.tolist(),
        "result": {
            "method": model.method,
            "n_communities": shares.shape[1],
            "n_mostly_one": mostly_one(model.memberships_),
            "n_kept": len(model.kept_nodes_),
            "n_seen": model.facts_["n_seen"],
            "n_unreached": len(model.unreached_nodes_),
            "n_iter": model.n_iter_,
            "duality_gap": result.gap,
            "seconds": seconds,
        },
        "certificate": [statement.as_dict() for statement in model.certificate_],
        "versions": versions(),
    }
    return dict(plain(record))
