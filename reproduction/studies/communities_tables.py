"""Tables and verdicts of the study of communities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction.artifacts import Artifact, Measured, Table, Verdict
from reproduction.experiment import Record
from reproduction.grouping import grouped, mean_and_spread
from reproduction.studies.communities_peers import TAKES_K

ALLOWED = 0.03
TITLES = {
    "choosing": "Planted graphs used to choose the default",
    "networks": "Networks used to choose the default",
    "reporting": "Planted test graphs",
    "fresh": "Degree-corrected test graphs",
    "new networks": "Test networks",
    "quick": "Quick setting",
}


def spectrum_sentence(records: Sequence[Record]) -> str:
    parts = []
    for group in TITLES:
        some = [record for record in records if record["group"] == group]
        noise = [record["noise"] for record in some if "noise" in record]
        signal = [record["signal"] for record in some if "signal" in record]
        if noise:
            parts.append(f"{group}: up to {max(noise):.2f}" + (f", from {min(signal):.2f}" if signal else ""))
    return (
        "The largest eigenvalue below zero over the K-th one above, on assortative graphs, and the last one "
        f"of a community below zero over the largest of noise, on disassortative ones: {'; '.join(parts)}."
    )


def _means(records: Sequence[Record], measure: str) -> dict[str, dict[str, float]]:
    """Return candidate -> graph -> mean."""
    found: dict[str, dict[str, float]] = {}
    for (candidate, graph), some in grouped(records, "candidate", "graph").items():
        mean, _ = mean_and_spread([record[measure] for record in some])
        found.setdefault(str(candidate), {})[str(graph)] = float(mean or 0.0)
    return found


def _behind(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return candidate -> graph -> how far it is behind the best candidate."""
    means = _means(records, "src")
    graphs = dict.fromkeys(graph for row in means.values() for graph in row)
    best = {graph: max(row[graph] for row in means.values() if graph in row) for graph in graphs}
    return {name: {graph: best[graph] - value for graph, value in row.items()} for name, row in means.items()}


def overview(records: Sequence[Record], title: str) -> Table:
    behind, means = _behind(records), _means(records, "src")
    n_graphs = max(len(row) for row in behind.values())
    rows: list[dict[str, Any]] = [
        {
            "candidate": name,
            "mean": float(np.mean(list(means[name].values()))),
            "average": float(np.mean(list(row.values()))),
            "worst": max(row.values()),
            "where": max(row, key=lambda graph: row[graph]),
            "graphs": len(row),
        }
        for name, row in behind.items()
    ]
    # Candidates that ran on all graphs first.
    rows.sort(key=lambda row: (row["graphs"] < n_graphs, row["worst"]))
    columns = {
        "candidate": "candidate",
        "worst": "furthest behind the best",
        "where": "where",
        "average": "behind on average",
        "mean": "mean rank correlation",
        "graphs": "kinds of graph",
    }
    return Table(f"{title}: how far a candidate is behind the best one, means over draws.", columns, rows, 3)


def table(records: Sequence[Record], title: str, measure: str, words: str) -> Table:
    graphs = list(dict.fromkeys(record["graph"] for record in records))
    groups = grouped(records, "candidate", "graph")
    rows = []
    for name in dict.fromkeys(record["candidate"] for record in records):
        row: dict[str, Any] = {"candidate": name}
        for graph in graphs:
            mean, spread = mean_and_spread(
                [r[measure] for r in groups.get((name, graph), []) if measure in r]
            )
            row[graph] = None if mean is None else Measured(mean, spread)
        if any(row[graph] is not None for graph in graphs):
            rows.append(row)
    return Table(f"{title}: {words}.", {"candidate": "candidate"} | {g: g for g in graphs}, rows, 3)


def verdicts(records: Sequence[Record], group: str, default: str, whole: bool) -> list[Verdict]:
    """Say whether the default is near the best candidate everywhere."""
    behind = _behind(records)
    claims = {
        "choosing": "every kind of planted graph used to choose it",
        "networks": "every network used to choose it",
        "reporting": "every kind of planted test graph",
        "fresh": "every kind of degree-corrected test graph",
        "new networks": "every test network",
    }
    if default not in behind or group not in claims:
        return []
    row = behind[default]
    worst = max(row, key=lambda graph: row[graph])
    far = [f"{graph} {value:.3f}" for graph, value in row.items() if value > ALLOWED]
    detail = f"{row[worst]:.3f} behind at most ({worst})"
    if len(far) > 1:
        detail += "; further behind than allowed: " + ", ".join(far)
    found = [
        Verdict(
            f"The default is within {ALLOWED} of the best candidate on {claims[group]}",
            row[worst] <= ALLOWED if whole else None,
            detail,
        )
    ]
    for other in ("smoothed-spa", "merit"):
        if other in behind:
            old = max(behind[other].values())
            found.append(
                Verdict(
                    f"It is never further behind than {other} ({TITLES[group].lower()})",
                    row[worst] <= old if whole else None,
                    f"{row[worst]:.3f} against {old:.3f}",
                )
            )
    return found


def cost_sentence(records: Sequence[Record]) -> str:
    """Say how long the candidates take."""
    parts = []
    for (name,), some in grouped(records, "candidate").items():
        mean, _ = mean_and_spread([record["s"] for record in some if record["s"] is not None])
        if mean is not None:
            parts.append(f"{name} {mean:.2g} s")
    return "Mean time of a fit, eigenvectors included: " + ", ".join(parts) + "."


def numbers(records: Sequence[Record]) -> Table:
    """Return how often the number of communities was found, by kind of graph and estimate."""
    rows = []
    for (group, graph), some in grouped(records, "group", "graph").items():
        row: dict[str, Any] = {"group": group, "graph": graph, "true": some[0]["true"], "draws": len(some)}
        for name in some[0]["estimates"]:
            row[name] = _hits([record["estimates"][name] for record in some], some[0]["true"])
        row["recommended"] = _hits([record["recommended"] for record in some], some[0]["true"])
        rows.append(row)
    columns = {"group": "group", "graph": "graph", "true": "communities", "draws": "draws"}
    columns |= {name: name for name in records[0]["estimates"]} | {"recommended": "recommended"}
    words = "of one draw the number itself, of several the fraction of draws in which it is the true one"
    return Table(
        f'`n_communities="auto"`: the number of communities that was found; {words}.', columns, rows, 3
    )


def modularities(records: Sequence[Record]) -> Table:
    """Return the overlapping modularity of every candidate on graphs without known communities."""
    graphs = {record["graph"]: f"{record['graph']} (K = {record['communities']})" for record in records}
    rows: list[dict[str, Any]] = [
        {"candidate": name, **{record["graph"]: record["modularity"] for record in some}}
        for (name,), some in grouped(records, "judged").items()
    ]
    title = "Graphs without known communities: overlapping modularity (Shen), with the recommended number."
    return Table(title, {"candidate": "candidate", **graphs}, rows, 3)


def modularity_verdict(records: Sequence[Record], default: str) -> Verdict:
    """Say whether the default is near the best candidate by modularity."""
    best: dict[str, float] = {}
    for record in records:
        best[record["graph"]] = max(best.get(record["graph"], -1.0), record["modularity"])
    behind = {r["graph"]: best[r["graph"]] - r["modularity"] for r in records if r["judged"] == default}
    worst = max(behind, key=lambda graph: behind[graph])
    return Verdict(
        f"The default is within {ALLOWED} of the largest modularity on every graph without known communities",
        behind[worst] <= ALLOWED,
        f"{behind[worst]:.3f} behind at most ({worst})",
    )


def _hits(found: Sequence[int], true: int) -> Any:
    return found[0] if len(found) == 1 else float(np.mean([k == true for k in found]))


def peers(
    records: Sequence[Record], candidates: Sequence[Record], counted: Sequence[Record], default: str
) -> list[Artifact]:
    """Return the tables of peers, one per measure."""
    ours = f"nonneg, {default}"
    rows_of: list[dict[str, Any]] = [dict(record) for record in records if "s" in record]
    networks = dict.fromkeys(record["graph"] for record in rows_of)
    for record in candidates:
        if record["candidate"] == default and record["graph"] in networks:
            rows_of.append({**record, "peer": ours})
    rows_of += [{**r, "peer": f"{ours}, K found"} for r in counted if r["graph"] in networks]
    found: list[Artifact] = []
    for group in ("networks", "new networks"):
        some = [record for record in rows_of if record["group"] == group]
        for measure, words in (
            ("nmi", "normalized mutual information of the main communities"),
            ("src", "averaged rank correlation of the memberships"),
        ):
            title = f"{TITLES[group]}, with peers: {words}."
            if any(measure in record for record in some):
                found.append(_peer_table(some, measure, title, ours))
    absent = {record["absent"] for record in records if "absent" in record}
    failed = {f"{r['peer']} on {r['graph']}: {r['failed']}" for r in records if r.get("failed")}
    if absent or failed:
        from reproduction.artifacts import Paragraph

        found.append(Paragraph("Peers that did not run: " + "; ".join(sorted(absent | failed)) + "."))
    return found


def _peer_table(records: Sequence[Record], measure: str, title: str, ours: str) -> Table:
    graphs = list(dict.fromkeys(record["graph"] for record in records if "s" in record))
    rows = []
    for (name,), some in grouped(records, "peer").items():
        values = {record["graph"]: record[measure] for record in some if measure in record}
        seconds = [record["s"] for record in some if "s" in record]
        rows.append(
            {
                "peer": name,
                "K": "given"
                if name in TAKES_K or (name.startswith("nonneg") and "found" not in name)
                else "found",
                **values,
                "mean": float(np.mean([values[graph] for graph in graphs]))
                if len(values) == len(graphs)
                else None,
                "s": float(np.mean(seconds)) if seconds else None,
            }
        )
    rows.sort(key=lambda row: (not row["peer"].startswith("nonneg"), -(row["mean"] or 0.0)))
    columns = {"peer": "method", "K": "K"} | {graph: graph for graph in graphs}
    return Table(title, columns | {"mean": "mean", "s": "mean time (s)"}, rows, 3)
