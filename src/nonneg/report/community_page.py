"""The report of overlapping communities: one self-contained HTML file."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._typing import FloatArray, IntArray
from nonneg.report import figures, wording
from nonneg.report.graph_drawing import color, community_picture, graph_picture, in_unit, nodes_to_draw
from nonneg.report.rendering import drawing, render

N_LISTED = 60
"""Maximum number of nodes listed."""
N_EMBEDDED = 5000
"""Maximum number of nodes whose memberships the page carries as a file to download."""
_MOSTLY = 0.9
_CURVES = {"eigengap": "gap of the eigenvalues", "held-out edges": "error on hidden pairs of nodes"}


def community_sentence(record: Mapping[str, Any]) -> str:
    """Describe the result in one sentence."""
    result, data = record["result"], record["data"]
    k = result["n_communities"]
    words = "1 community" if k == 1 else f"{wording.number(k)} communities"
    mostly = wording.counted(result["n_mostly_one"], "node")
    return (
        f"{words} in {wording.counted(data['n_nodes'], 'node')}; {mostly} "
        f"{'has' if result['n_mostly_one'] == 1 else 'have'} a membership above {_MOSTLY:.0%} in one of them."
    )


def method_sentence(record: Mapping[str, Any]) -> str:
    """Say which method found the communities, and why it was taken."""
    result = record["result"]
    scores = result.get("scores") or {}
    if len(scores) < 2:
        return f"The method is {wording.method(result['method'])}."
    told = ", ".join(f"{wording.method(name)} {wording.number(score)}" for name, score in scores.items())
    return (
        f"The method is {wording.method(result['method'])}. Log-likelihood per hidden edge, relative to a "
        f"single community: {told}."
    )


def mostly_one(memberships: FloatArray) -> int:
    """Count the nodes that belong to one community above all."""
    return int(np.count_nonzero(np.nan_to_num(memberships, nan=0.0).max(axis=1) > _MOSTLY))


def shared_weights(model: Any) -> FloatArray:
    """Share out the weight of every edge by the memberships of its ends."""
    sending, receiving = two_memberships(model)
    flows = sending.T @ (in_unit(model.graph_.adjacency) @ receiving)
    return 0.5 * (flows + flows.T)


def two_memberships(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return the memberships at the two ends of an edge: by sending and by receiving if it is directed."""
    if not model.graph_.directed:
        found = np.nan_to_num(model.memberships_, nan=0.0)
        return found, found
    return np.nan_to_num(model.sending_memberships_), np.nan_to_num(model.receiving_memberships_)


def drawn_nodes(model: Any) -> IntArray:
    """Return the nodes of the picture."""
    return nodes_to_draw(model.graph_.undirected, model.memberships_, model.pure_nodes_)


def draw_graph(model: Any, rings: Sequence[str] | None = None) -> str:
    """Draw the graph of a fit, or what lies around its pure nodes."""
    shown = drawn_nodes(model)
    place = {int(node): at for at, node in enumerate(shown)}
    pure = np.asarray([place[int(node)] for node in model.pure_nodes_ if int(node) in place], dtype=np.intp)
    adjacency = model.graph_.undirected[shown][:, shown]
    names = [model.node_names_[node] for node in shown]
    return graph_picture(adjacency, model.memberships_[shown], names, pure, rings=rings)


def build_community_page(record: Mapping[str, Any], model: Any) -> str:
    """Write the report."""
    n = record["data"]["n_nodes"]
    n_drawn = len(drawn_nodes(model))
    labels = record["result"].get("labels")
    flows = shared_weights(model)
    total = float(flows.sum())
    names = [f"{entry['community']}: {entry['pure_node']}" for entry in record["communities"]]
    sizes = np.asarray([entry["size"] for entry in record["communities"]])
    listed = _listed(model)
    pure = set(model.pure_nodes_.tolist())
    context = {
        "title": record["title"],
        "answer": community_sentence(record),
        "outcome": _outcome(record),
        "tiles": _tiles(record),
        "communities": [_community(entry) for entry in record["communities"]],
        "with_conductance": "conductance" in record["communities"][0],
        "picture": drawing(draw_graph(model, _rings(labels))),
        "number": _number(record["result"].get("number")),
        "labels": _labels(labels),
        "method": method_sentence(record),
        "picture_text": "All nodes."
        if n_drawn == n
        else f"{n_drawn} of {wording.number(n)} nodes: for every community, its pure node and the nodes "
        "connected to it, directly or through others, largest degree first.",
        "overview": drawing(community_picture(flows, sizes, names)),
        "within": wording.percent(float(np.trace(flows)) / total) if total > 0 else "None",
        "numbers": list(range(len(sizes))),
        "nodes": [_node(model, at, pure) for at in listed],
        "nodes_text": "By community, largest membership first."
        if len(listed) == n
        else f"The {len(listed)} nodes with the largest degrees, by community. memberships.csv has all.",
        "download": _download(model) if n <= N_EMBEDDED else None,
        "certificate": [wording.statement(entry) for entry in record["certificate"]],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("communities.html", context)


def _rings(labels: Mapping[str, Any] | None) -> list[str] | None:
    if labels is None:
        return None
    known = {label: color(at) for at, label in enumerate(labels["labels"])}
    # Labels have the color of the community that they are matched with.
    known |= {labels["labels"][row]: color(column) for row, column in _matched(labels)}
    return [known.get(label, "") for label in labels["drawn"]]


def _matched(labels: Mapping[str, Any]) -> list[tuple[int, int]]:
    rows, columns = linear_sum_assignment(np.asarray(labels["counts"]), maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _labels(labels: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if labels is None:
        return None
    matched = set(_matched(labels))
    largest = max(1, int(np.max(labels["counts"])))
    return {
        "name": labels["name"],
        "scores": [
            ("normalized mutual information", f"{labels['nmi']:.3f}"),
            ("adjusted Rand index", f"{labels['ari']:.3f}"),
            ("accuracy", wording.percent(labels["accuracy"])),
        ],
        "rows": [
            {
                "label": label,
                "cells": [
                    (count, round(100 * count / largest), (at, column) in matched)
                    for column, count in enumerate(labels["counts"][at])
                ],
            }
            for at, label in enumerate(labels["labels"][:N_LISTED])
        ],
        "n_left_out": labels["n_left_out"],
    }


def _number(number: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if number is None:
        return None
    curves = [
        drawing(
            figures.candidate_curve(
                number["candidates"],
                values,
                [0.0] * len(values),
                number["estimates"][name],
                _CURVES[name],
                what="communities",
            )
        )
        for name, values in number["curves"].items()
    ]
    estimates = list(number["estimates"].items())
    return {
        "reason": number["reason"],
        "k": number["n_communities"],
        "estimates": estimates,
        "curves": curves,
    }


def _download(model: Any) -> str:
    """Return the table of all nodes as a data URL."""
    columns = model.node_table()
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    cells = [_rounded(c).tolist() if c.dtype.kind == "f" else c.tolist() for c in columns.values()]
    writer.writerows(zip(*cells, strict=True))
    return "data:text/csv;base64," + base64.b64encode(stream.getvalue().encode()).decode()


def _rounded(column: FloatArray) -> FloatArray:
    """Round to six decimals, which huge numbers do not have: they would overflow."""
    small = np.abs(column) < 1e9
    return np.where(small, np.round(np.where(small, column, 0.0), 6), column)


def _listed(model: Any) -> list[int]:
    degrees = model.graph_.degrees
    shown = np.argsort(-degrees, kind="stable")[:N_LISTED]
    largest = np.nan_to_num(model.memberships_[shown], nan=0.0).max(axis=1)
    labels = np.where(model.labels_[shown] < 0, len(degrees), model.labels_[shown])
    return shown[np.lexsort((-degrees[shown], -np.round(largest, 3), labels))].tolist()


def _node(model: Any, at: int, pure: set[int]) -> dict[str, Any]:
    memberships = model.memberships_[at]
    known = bool(np.isfinite(memberships).all())
    return {
        "name": model.node_names_[at],
        "pure": at in pure,
        "degree": wording.number(float(model.graph_.degrees[at])),
        "parts": [
            (round(100 * float(value), 1), color(j)) for j, value in enumerate(memberships) if value >= 0.005
        ]
        if known
        else [],
        "memberships": [f"{value:.2f}" if known else "\N{EN DASH}" for value in memberships],
    }


def _community(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "community": entry["community"],
        "color": color(entry["community"]),
        "pure": entry["pure_node"],
        "size": f"{entry['size']:.1f}",
        "conductance": "\N{EN DASH}" if entry.get("conductance") is None else f"{entry['conductance']:.2f}",
        "n_nodes": wording.number(entry["n_nodes"]),
        "top": [(name, round(100 * value)) for name, value in entry["top"]],
    }


def _outcome(record: Mapping[str, Any]) -> str:
    data, result = record["data"], record["result"]
    words = (
        f"{wording.counted(data['n_nodes'], 'node')} and {wording.counted(data['n_edges'], 'edge')} from "
        f"{data['source']}. Communities by {wording.method(result['method'])}"
    )
    if result["n_kept"] < data["n_nodes"] - data["n_isolated"]:
        words += f", pure nodes among the {wording.number(result['n_kept'])} with the largest rows"
    words += f"; it took {wording.seconds(result['seconds'])} in all."
    kind = data.get("kind", "undirected")
    if kind == "directed":
        words += (
            " The graph is directed: a membership is the mean of those by sending and by receiving, which "
            "memberships.csv has as well."
        )
    elif kind == "bipartite":
        words += " The graph is bipartite: communities span both sides."
    if data["n_isolated"]:
        words += f" {wording.number(data['n_isolated'])} nodes have no edges and no membership."
    if result["n_unreached"]:
        words += (
            f" {wording.number(result['n_unreached'])} nodes are not reached by the leading eigenvectors."
        )
    return words


def _tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    data, result = record["data"], record["result"]
    return [
        ("communities", wording.number(result["n_communities"])),
        ("nodes", wording.number(data["n_nodes"])),
        ("edges", wording.number(data["n_edges"])),
        *([("modularity", f"{result['modularity']:.3f}")] if "modularity" in result else []),
        ("time", wording.seconds(result["seconds"])),
    ]


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    groups = []
    for heading, key in (("Data", "data"), ("Result", "result"), ("Parameters", "parameters")):
        entries = [
            wording.fact(name, value) if key != "parameters" else (name, wording.number(value, digits=8))
            for name, value in record[key].items()
            if not isinstance(value, list | dict)
        ]
        groups.append((heading, entries))
    values = ", ".join(f"{value:.5g}" for value in record["eigenvalues"])
    groups[1][1].append(("eigenvalues", values))
    return groups
