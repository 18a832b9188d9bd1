"""The report of overlapping communities: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.report import wording
from nonneg.report.graph_drawing import color, community_picture, graph_picture, nodes_to_draw
from nonneg.report.rendering import drawing, render

N_LISTED = 400
"""Maximum number of nodes listed."""
_MOSTLY = 0.9


def community_sentence(record: Mapping[str, Any]) -> str:
    """Say in one sentence what came out."""
    result, data = record["result"], record["data"]
    k = result["n_communities"]
    words = "1 community" if k == 1 else f"{wording.number(k)} communities"
    return (
        f"{words} in {wording.number(data['n_nodes'])} nodes; {wording.number(result['n_mostly_one'])} nodes "
        f"have a membership above {_MOSTLY:.0%} in one of them."
    )


def mostly_one(memberships: FloatArray) -> int:
    """Count the nodes that belong to one community above all."""
    return int(np.count_nonzero(np.nan_to_num(memberships, nan=0.0).max(axis=1) > _MOSTLY))


def shared_weights(model: Any) -> FloatArray:
    """Share out the weight of every edge by the memberships of its ends."""
    memberships = np.nan_to_num(model.memberships_, nan=0.0)
    flows = memberships.T @ (model.graph_.adjacency @ memberships)
    return 0.5 * (flows + flows.T)


def draw_graph(model: Any) -> str:
    """Draw the graph of a fit, or what lies around its pure nodes."""
    shown = nodes_to_draw(model.graph_.adjacency, model.memberships_, model.pure_nodes_)
    place = {int(node): at for at, node in enumerate(shown)}
    pure = np.asarray([place[int(node)] for node in model.pure_nodes_ if int(node) in place], dtype=np.intp)
    adjacency = model.graph_.adjacency[shown][:, shown]
    names = [model.node_names_[node] for node in shown]
    return graph_picture(adjacency, model.memberships_[shown], names, pure)


def build_community_page(record: Mapping[str, Any], model: Any) -> str:
    """Write the report."""
    n = record["data"]["n_nodes"]
    n_drawn = len(nodes_to_draw(model.graph_.adjacency, model.memberships_, model.pure_nodes_))
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
        "picture": drawing(draw_graph(model)),
        "picture_text": "All nodes."
        if n_drawn == n
        else f"{n_drawn} of {wording.number(n)} nodes: around the pure node of every community those that "
        "are connected to it, directly or through others, largest degree first.",
        "overview": drawing(community_picture(flows, sizes, names)),
        "within": wording.percent(float(np.trace(flows)) / total) if total > 0 else "None",
        "numbers": list(range(len(sizes))),
        "nodes": [_node(model, at, pure) for at in listed],
        "nodes_text": "By community, largest membership first."
        if len(listed) == n
        else f"The {len(listed)} nodes with the largest degrees, by community; memberships.csv lists all.",
        "certificate": [wording.statement(entry) for entry in record["certificate"]],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("communities.html", context)


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
        "n_nodes": wording.number(entry["n_nodes"]),
        "top": [(name, round(100 * value)) for name, value in entry["top"]],
    }


def _outcome(record: Mapping[str, Any]) -> str:
    data, result = record["data"], record["result"]
    words = (
        f"{wording.counted(data['n_nodes'], 'node')} and {wording.counted(data['n_edges'], 'edge')} from "
        f"{data['source']}. Pure nodes by {result['method']}"
    )
    if result["n_kept"] < data["n_nodes"] - data["n_isolated"]:
        words += f" among the {wording.number(result['n_kept'])} nodes with the longest rows"
    words += f"; it took {wording.seconds(result['seconds'])} in all."
    if data["n_isolated"]:
        words += f" {wording.number(data['n_isolated'])} nodes have no edge and no membership."
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
