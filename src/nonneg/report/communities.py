"""Blocks of overlapping communities: the communities, how many, labels, the graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nonneg._html import Raw
from nonneg._optional import import_optional
from nonneg._typing import IntArray
from nonneg.applications.saved_models import load
from nonneg.metrics import conductance, overlapping_modularity
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_COLORS = (
    "#2f7ed8", "#e8743b", "#19a979", "#c64f9a", "#8d6cd1", "#d1a417", "#13a4b4", "#b0505a", "#6b8e23",
    "#7a7f87", "#4b5bb5", "#9a6b3f",
)  # fmt: skip
_N_DRAWN, _N_EDGES, _N_NAMED = 160, 800, 40
_N_LISTED = 60  # maximum number of labels listed
_MOSTLY = 0.9
_CURVES = {"eigengap": "gap of the eigenvalues", "held-out edges": "error on hidden pairs of nodes"}


def describe(
    model: Any, source: str, seconds: float, *, attribute: str | None = None, labels: Any = None
) -> Record:
    """Return the record of communities and, where there are labels, how they agree."""
    graph, memberships = model.graph_, np.nan_to_num(model.memberships_, nan=0.0)
    both = (memberships, memberships)
    if graph.directed:
        both = (np.nan_to_num(model.sending_memberships_), np.nan_to_num(model.receiving_memberships_))
    k, top, outward = memberships.shape[1], model.top_nodes(8), conductance(graph.undirected, memberships)
    mostly = int(np.count_nonzero(memberships.max(axis=1) > _MOSTLY))
    data = {
        "source": source,
        "n_nodes": graph.n_nodes,
        "n_edges": graph.n_edges,
        "n_isolated": len(model.isolated_nodes_),
        "kind": graph.kind,
        "n_self_loops": graph.n_self_loops,
        "weighted": bool(np.ptp(graph.adjacency.data) > 0),
    }
    result = {
        "method": model.method_,
        "scores": model.scores_,
        "number": None if model.number_ is None else model.number_.as_dict(),
        "labels": None if labels is None else model.compare(labels).as_dict() | {"name": attribute},
        "modularity": overlapping_modularity(graph.adjacency, both[0], receiving=both[1]),
        "n_communities": k,
        "n_mostly_one": mostly,
        "n_unreached": len(model.unreached_nodes_),
        "n_iter": model.n_iter_,
        "seconds": seconds,
    }
    communities = [
        {
            "community": at,
            "pure_node": model.node_names_[node],
            "size": memberships[:, at].sum(),
            "n_nodes": int(np.count_nonzero(model.labels_ == at)),
            "conductance": outward[at],
            "top": top[at],
        }
        for at, node in enumerate(model.pure_nodes_.tolist())
    ]
    noun = "1 community" if k == 1 else f"{wording.number(k)} communities"
    return Record(
        "communities",
        f"Communities of {source}",
        f"{noun} in {wording.counted(graph.n_nodes, 'node')}; {wording.counted(mostly, 'node')} "
        f"{'has' if mostly == 1 else 'have'} a membership above {_MOSTLY:.0%} in one of them.",
        _lead(data, result),
        {
            "communities": k,
            "nodes": graph.n_nodes,
            "edges": graph.n_edges,
            "modularity": f"{result['modularity']:.3f}",
            "time": seconds,
        },
        data,
        result,
        details={
            "communities": communities,
            "connectivity": model.connectivity_,
            "eigenvalues": model.eigenvalues_,
        },
        **records.of_estimator(model),
    )


def restore(record: Record, folder: Path) -> None:
    """Read the graph back: it is part of the model."""
    record.model = load(folder / records.MODEL)


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    scores, why = result["scores"] or {}, ""
    if len(scores) > 1:
        told = ", ".join(f"{wording.method(name)} {wording.number(score)}" for name, score in scores.items())
        close = "" if scores.get(result["method"]) == max(scores.values()) else "; within a standard error"
        why = f" (log-likelihood per hidden edge, relative to a single community: {told}{close})"
    words = (
        f"{wording.counted(data['n_nodes'], 'node')} and {wording.counted(data['n_edges'], 'edge')} from "
        f"{data['source']} ({data['kind']}). Communities by {wording.method(result['method'])}{why}, in "
        f"{wording.seconds(result['seconds'])}."
    )
    if data["kind"] == "directed":
        words += " A membership is the mean of those by sending and by receiving."
    if data["n_isolated"]:
        words += f" {wording.counted(data['n_isolated'], 'node')} without edges and without a membership."
    if result["n_unreached"]:
        words += f" {wording.counted(result['n_unreached'], 'node')} not reached by the leading eigenvectors."
    return words


def table(record: Record) -> list[dict[str, Any]]:
    """Return the communities, one per row."""
    return [
        {
            "community": entry["community"],
            "pure node": entry["pure_node"],
            "strongest members": html.Names(
                (f"{name} {share:.0%}", 100 * share) for name, share in entry["top"]
            ),
            "size": f"{entry['size']:.1f}",
            "nodes mainly in it": entry["n_nodes"],
            "conductance": wording.number(float(entry["conductance"]), digits=2),
        }
        for entry in record.as_dict()["communities"]
    ]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    model, details = record.model, record.as_dict()
    labels, number = details["result"]["labels"], details["result"]["number"]
    rows = [
        row | {"community": [html.swatch(_color(row["community"])), row["community"]]}
        for row in table(record)
    ]
    said = (
        "The pure node represents the community. The size is the sum of all memberships; the conductance is "
        "the fraction of the edge weight that leads out of the community."
    )
    parts = [html.section("The communities", said, rows)]
    if number:
        curves = [
            drawings.curve(
                number["candidates"], values, ("communities", _CURVES.get(name, name)),
                mark=number["estimates"].get(name),
            )
            for name, values in number["curves"].items()
        ]  # fmt: skip
        estimates = html.tiles((name, wording.number(k)) for name, k in number["estimates"].items())
        parts.append(
            html.section("How many communities", number["reason"], estimates, html.side_by_side(*curves))
        )
    if labels:
        parts.append(_labels(labels))
    n, n_drawn = details["data"]["n_nodes"], len(_drawn_nodes(model))
    which = "All nodes"
    if n_drawn < n:
        which = f"{n_drawn} of {wording.number(n)} nodes, the strongest of each community"
    caption = f"{which}. The color of a node mixes those of its communities; pure nodes have a ring."
    return [*parts, html.section("The graph", html.figure(draw_graph(model), caption))]


def _labels(labels: Mapping[str, Any]) -> Raw:
    largest = max(1, int(np.max(labels["counts"])))
    rows = [
        {str(labels["name"]): name}
        | {str(at): html.Names([(count, 100 * count / largest)]) for at, count in enumerate(counts)}
        for name, counts in list(zip(labels["labels"], labels["counts"], strict=True))[:_N_LISTED]
    ]
    said = f"Nodes by {labels['name']} and main community."
    if labels["n_left_out"]:
        said += f" {wording.counted(labels['n_left_out'], 'node')} without a label or a community left out."
    scores = [
        ("normalized mutual information", f"{labels['nmi']:.3f}"),
        ("adjusted Rand index", f"{labels['ari']:.3f}"),
        ("accuracy", wording.percent(labels["accuracy"])),
    ]
    return html.section(f"Communities and {labels['name']}", html.tiles(scores), said, rows)


def _color(community: int) -> str:
    return _COLORS[community % len(_COLORS)]


def _drawn_nodes(model: Any) -> IntArray:
    """Return the nodes of the picture: all of a small graph, otherwise the strongest of each community."""
    n, k = model.memberships_.shape
    if n <= _N_DRAWN:
        return np.arange(n)
    strength = np.nan_to_num(model.memberships_, nan=0.0) * model.graph_.degrees[:, None]
    best = np.argsort(-strength, axis=0, kind="stable")[: max(1, _N_DRAWN // k)]
    return np.unique(np.concatenate([model.pure_nodes_, best.ravel()])[: _N_DRAWN + k])


def draw_graph(model: Any) -> Raw:
    """Draw the graph: nodes in the mixed colors of their communities, placed by networkx."""
    networkx = import_optional("networkx", extra="graphs", purpose="Drawing a graph")
    matplotlib = import_optional("matplotlib", extra="report", purpose="The report")
    shown = _drawn_nodes(model)
    k = model.memberships_.shape[1]
    memberships = np.nan_to_num(model.memberships_[shown], nan=1.0 / k)
    adjacency = csr_array(model.graph_.undirected[shown][:, shown])
    # Divided before they are added, so that sums of huge weights are finite.
    adjacency.data = adjacency.data / max(float(adjacency.data.max(initial=0.0)), 1e-300)
    graph = networkx.from_scipy_sparse_array(adjacency)
    # Communities begin at corners of a polygon.
    angles = 2 * np.pi * np.arange(k) / k
    start = memberships @ np.column_stack([np.cos(angles), np.sin(angles)])
    start += 0.1 * np.random.default_rng(len(shown)).standard_normal(start.shape)
    layout = networkx.spring_layout(graph, pos=dict(enumerate(start)), iterations=80, seed=0)
    places = np.array([layout[at] for at in range(len(shown))])
    edges = sorted(graph.edges(data="weight"), key=lambda edge: -edge[2])[:_N_EDGES]
    whole, (axes,) = drawings.panels(10.4, 7.2)
    axes.set_axis_off()
    axes.add_collection(
        matplotlib.collections.LineCollection(
            [places[[one, other]] for one, other, _ in edges], colors="#8b95a1", alpha=0.35,
            linewidths=[0.4 + 1.6 * weight for _, _, weight in edges],
        )
    )  # fmt: skip
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    sizes = (0.1 + 0.9 * degrees / max(float(degrees.max(initial=0.0)), 1e-300)) * 40_000 / (len(shown) + 50)
    palette = np.array([matplotlib.colors.to_rgb(_color(at)) for at in range(k)])
    pure = np.isin(shown, model.pure_nodes_)
    rings = ["#16191d" if one else "none" for one in pure]
    axes.scatter(*places.T, s=sizes, c=memberships @ palette, edgecolors=rings, linewidths=1.5, zorder=3)
    named: list[Any] = []
    for at in np.lexsort((-degrees, ~pure))[:_N_NAMED].tolist():
        name = model.node_names_[shown[at]]
        text = name if len(name) <= 22 else f"{name[:21]}…"
        # The room of a name, as parts of the picture: none covers another.
        x, y = (places[at] - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-12)
        if all(abs(x - u) > 0.006 * (len(text) + n) or abs(y - v) > 0.04 for u, v, n in named):
            named.append((x, y, len(text)))
            below = (0, -2 - sizes[at] ** 0.5 / 2)
            axes.annotate(
                text, places[at], below, textcoords="offset points", ha="center", va="top", fontsize=9,
                color=drawings.INK, zorder=4, parse_math=False,
            )  # fmt: skip
    return drawings.drawing(whole, "The graph")
