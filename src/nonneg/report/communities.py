"""Record and page of overlapping communities: the communities, how many, labels, the graph."""

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
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import MODEL, Record, of_estimator, picked

_N_DRAWN, _N_EDGES, _N_NAMED = 160, 800, 40
_N_LISTED = 60  # maximum number of labels listed
_MOSTLY = 0.9
_COLUMNS = {
    "community": "community",
    "pure_node": "pure node",
    "top": (
        "strongest members",
        lambda top: html.Names((f"{name} {part:.0%}", 100 * part) for name, part in top),
    ),
    "size": ("size", "{:.1f}".format),
    "n_nodes": "main community of",
    "conductance": ("conductance", "{:.2g}".format),
}


def describe(
    model: Any, source: str, seconds: float, *, attribute: str | None = None, labels: Any = None
) -> Record:
    """Return the record of communities and, where there are labels, how they agree."""
    graph, memberships = model.graph_, np.nan_to_num(model.memberships_)
    sides = (model.sending_memberships_, model.receiving_memberships_)
    sending, receiving = map(np.nan_to_num, sides) if graph.directed else (memberships, memberships)
    top, outward = model.top_nodes(8), conductance(graph.undirected, memberships)
    mostly = int(np.count_nonzero(memberships.max(axis=1) > _MOSTLY))
    data = {
        "source": source,
        **picked(graph, "n_nodes", "n_edges", "kind", "n_self_loops"),
        "n_isolated": len(model.isolated_nodes_),
        "weighted": bool(np.ptp(graph.adjacency.data) > 0),
    }
    result = {
        **picked(model, "n_communities_", "method_", "scores_", "number_", "n_iter_"),
        "modularity": overlapping_modularity(graph.adjacency, sending, receiving=receiving),
        "labels": None if labels is None else model.compare(labels) | {"name": attribute},
        "n_mostly_one": mostly,
        "n_unreached": len(model.unreached_nodes_),
        "seconds": seconds,
    }
    communities = [
        {
            "community": at,
            "pure_node": model.node_names_[node],
            "size": float(memberships[:, at].sum()),
            "n_nodes": int(np.count_nonzero(model.labels_ == at)),
            "conductance": float(outward[at]),
            "top": top[at],
        }
        for at, node in enumerate(model.pure_nodes_.tolist())
    ]
    nodes, edges = html.counted(graph.n_nodes, "node"), html.counted(graph.n_edges, "edge")
    directed = " A membership is the mean of those by sending and by receiving." * graph.directed
    left_out = html.noted(
        (data["n_isolated"], "node", "without edges and without a membership"),
        (result["n_unreached"], "node", "not reached by the leading eigenvectors"),
    )
    numbers = data | result
    return Record(
        "communities",
        f"Communities of {source}",
        f"{html.counted(len(communities), 'community')} in {nodes}; {html.counted(mostly, 'node')} "
        f"{'has' if mostly == 1 else 'have'} a membership above {_MOSTLY:.0%} in one of them.",
        f"{nodes} and {edges} from {source} ({graph.kind}). Communities by {model.method_}, in "
        f"{html.seconds(seconds)}.{directed}{left_out}",
        {name: numbers[name] for name in ("n_communities", "n_nodes", "n_edges", "modularity", "seconds")},
        data,
        result,
        details={"communities": communities, **picked(model, "connectivity_", "eigenvalues_")},
        **of_estimator(model),
    )


def restore(record: Record, folder: Path) -> None:
    """Read the graph back: it is part of the model."""
    record.model = load(folder / MODEL)


def table(record: Record) -> list[dict[str, Any]]:
    """Return the communities, one per row."""
    return html.rows_of(record.as_dict()["communities"], _COLUMNS)


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    model, result = record.model, record.as_dict()["result"]
    labels, number, colors = result["labels"], result["number"], drawings.colors(result["n_communities"])
    rows = html.colored(table(record), colors)
    told = (
        "The pure node represents the community. The size is the sum of all memberships; the conductance is "
        "the fraction of the edge weight that leads out of the community."
    )
    parts = [html.section("The communities", told, rows)]
    if number:
        curves = drawings.curves(
            number["candidates"], number["curves"], "communities", number["n_communities"]
        )
        parts.append(html.section("How many communities", number["reason"], curves))
    if labels:
        parts.append(_labels(labels))
    n, n_drawn = record.data["n_nodes"], len(_drawn_nodes(model))
    which = "All nodes"
    if n_drawn < n:
        which = f"{n_drawn} of {html.number(n)} nodes, the strongest of each community"
    caption = f"{which}. The color of a node mixes those of its communities; pure nodes have a ring."
    return [*parts, html.section("The graph", html.figure(draw_graph(model), caption))]


def _labels(labels: Mapping[str, Any]) -> Raw:
    largest = max(1, int(np.max(labels["counts"])))
    rows = [
        {str(labels["name"]): name}
        | {str(at): html.Names([(count, 100 * count / largest)]) for at, count in enumerate(counts)}
        for name, counts in list(zip(labels["labels"], labels["counts"], strict=True))[:_N_LISTED]
    ]
    left_out = html.noted((labels["n_left_out"], "node", "without a label or a community left out"))
    told = (
        f"Nodes by {labels['name']} and main community: accuracy {html.percent(labels['accuracy'])}, "
        f"normalized mutual information {labels['nmi']:.3f}, adjusted Rand index {labels['ari']:.3f}."
        f"{left_out}"
    )
    return html.section(f"Communities and {labels['name']}", told, rows)


def _drawn_nodes(model: Any) -> IntArray:
    """Return the nodes of the picture: all of a small graph, otherwise the strongest of each community."""
    n, k = model.memberships_.shape
    if n <= _N_DRAWN:
        return np.arange(n)
    strength = np.nan_to_num(model.memberships_) * model.graph_.degrees[:, None]
    best = np.argsort(-strength, axis=0, kind="stable")[: max(1, _N_DRAWN // k)]
    return np.unique(np.concatenate([model.pure_nodes_, best.ravel()])[: _N_DRAWN + k])


def draw_graph(model: Any) -> Raw:
    """Draw the graph: nodes in the mixed colors of their communities, placed by networkx."""
    networkx = import_optional("networkx", extra="graphs", purpose="Drawing a graph")
    colors = import_optional("matplotlib.colors", extra="report", purpose="The report")
    shown, k = _drawn_nodes(model), model.n_communities_
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
    edges = sorted(graph.edges(data="weight"), key=lambda edge: -edge[2])[:_N_EDGES]
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    sizes = (0.1 + 0.9 * degrees / max(float(degrees.max(initial=0.0)), 1e-300)) * 40_000 / (len(shown) + 50)
    palette = np.array([colors.to_rgb(color) for color in drawings.colors(k)])
    figure, axes = drawings.panel(10.4, 7.2)
    axes.set_axis_off()
    networkx.draw_networkx_edges(
        graph, layout, edgelist=[edge[:2] for edge in edges], width=[0.4 + 1.6 * edge[2] for edge in edges],
        edge_color="#8b95a1", alpha=0.35, ax=axes,
    )  # fmt: skip
    networkx.draw_networkx_nodes(
        graph, layout, node_size=sizes, node_color=memberships @ palette, linewidths=1.5, ax=axes,
        edgecolors=["#16191d" if node in model.pure_nodes_ else "none" for node in shown],
    )  # fmt: skip
    places = np.array([layout[at] for at in range(len(shown))])
    named: list[Any] = []
    for at in np.argsort(-degrees, kind="stable")[:_N_NAMED].tolist():
        name = model.node_names_[shown[at]]
        text = name if len(name) <= 22 else f"{name[:21]}…"
        # The room of a name, as parts of the picture: none covers another.
        x, y = (places[at] - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-12)
        if all(abs(x - u) > 0.006 * (len(text) + n) or abs(y - v) > 0.04 for u, v, n in named):
            named.append((x, y, len(text)))
            below = (0, -2 - sizes[at] ** 0.5 / 2)
            axes.annotate(
                text, places[at], below, textcoords="offset points", ha="center", va="top", fontsize=9,
                color=drawings.INK, parse_math=False,
            )  # fmt: skip
    return drawings.drawing(figure, "The graph")
