"""Record of overlapping communities: the communities, how many, labels, the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nonneg._optional import import_optional
from nonneg.exceptions import MissingDependencyError
from nonneg.metrics import conductance, overlapping_modularity
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked

_N_DRAWN, _N_EDGES = 160, 800  # maximum number of nodes and edges in the picture
_N_LISTED = 60  # maximum number of labels listed
_MOSTLY = 0.9
_COLUMNS = {
    "community": "community",
    "pure_node": "pure node",
    "top": ("strongest members", lambda top: [(f"{name} {part:.0%}", 100 * part) for name, part in top]),
    "size": ("size", "{:.1f}".format),
    "n_nodes": "main community of",
    "conductance": ("conductance", "{:.2g}".format),
}


def describe(
    model: Any, source: str, seconds: float, *, attribute: str | None = None, labels: Any = None
) -> Record:
    """Return the record of communities and, where there are labels, how they agree."""
    graph, memberships, k = model.graph_, np.nan_to_num(model.memberships_), model.n_communities_
    sides = (model.sending_memberships_, model.receiving_memberships_)
    sending, receiving = map(np.nan_to_num, sides) if graph.directed else (memberships, memberships)
    mostly, number = int(np.count_nonzero(memberships.max(axis=1) > _MOSTLY)), model.number_
    compared = None if labels is None else model.compare(labels) | {"name": attribute}
    data = {
        "source": source,
        **picked(graph, "n_nodes", "n_edges", "kind", "n_self_loops"),
        "n_isolated": len(model.isolated_nodes_),
        "weighted": bool(np.ptp(graph.adjacency.data) > 0),
    }
    result = {
        **picked(model, "n_communities_", "method_", "scores_", "number_", "n_iter_"),
        "modularity": overlapping_modularity(graph.adjacency, sending, receiving=receiving),
        "labels": compared,
        "n_mostly_one": mostly,
        "n_unreached": len(model.unreached_nodes_),
        "seconds": seconds,
    }
    communities = words.entries_of(
        community=range(k),
        pure_node=[model.node_names_[node] for node in model.pure_nodes_],
        size=memberships.sum(axis=0).tolist(),
        n_nodes=[int(np.count_nonzero(model.labels_ == at)) for at in range(k)],
        conductance=conductance(graph.undirected, memberships).tolist(),
        top=model.top_nodes(8),
    )
    nodes, edges = words.counted(graph.n_nodes, "node"), words.counted(graph.n_edges, "edge")
    numbers, by_label = data | result, None if compared is None else _by_label(compared)
    sections = [
        [
            "The communities",
            "The pure node represents the community. The size is the sum of all memberships; the "
            "conductance is the fraction of the edge weight that leads out of the community."
            + " A membership is the mean of those by sending and by receiving."
            * graph.directed,
            block("table", colors=drawings.colors(k)),
        ]
    ]
    if number:
        curves = drawings.curves(number["candidates"], number["curves"], "communities", k)
        sections.append(["How many communities", number["reason"], curves])
    sections += [by_label] if by_label else []
    return Record(
        "communities",
        f"Communities of {source}",
        f"{words.counted(k, 'community')} in {nodes}; {words.counted(mostly, 'node')} "
        f"{'has' if mostly == 1 else 'have'} a membership above {_MOSTLY:.0%} in one of them.",
        words.lead(f"{nodes} and {edges} ({graph.kind})", data, model.method_, result),
        {name: numbers[name] for name in ("n_communities", "n_nodes", "n_edges", "modularity", "seconds")},
        data,
        result,
        details={"communities": communities, **picked(model, "connectivity_", "eigenvalues_")},
        remarks=[*([f"{k} communities: {number['reason']}"] if number else ()), *(by_label or ())[1:2]],
        table=words.rows_of(communities, _COLUMNS),
        sections=[*sections, ["The graph", graph_block(model)]],
        **of_estimator(model),
    )


def _by_label(labels: Mapping[str, Any]) -> list[Any]:
    """Return the section of known labels."""
    largest = max(1, int(np.max(labels["counts"])))
    rows = [
        {str(labels["name"]): name}
        | {str(at): [(int(count), 100 * count / largest)] for at, count in enumerate(counts)}
        for name, counts in list(zip(labels["labels"], labels["counts"], strict=True))[:_N_LISTED]
    ]
    told = (
        f"Agreement of main communities with {labels['name']}: {words.percent(labels['accuracy'])} of the "
        f"nodes, normalized mutual information {labels['nmi']:.3f}, adjusted Rand index {labels['ari']:.3f}."
    )
    return [f"Communities and {labels['name']}", told, rows]


def graph_block(model: Any) -> dict[str, Any] | None:
    """Return the block of the graph: nodes in the mixed colors of their communities, placed by networkx."""
    try:
        networkx = import_optional("networkx", extra="graphs", purpose="Drawing a graph")
    except MissingDependencyError:
        return None
    (n, k), pure = model.memberships_.shape, model.pure_nodes_
    shown, caption = np.arange(n), "All nodes"
    if n > _N_DRAWN:
        # The strongest of each community.
        strength = np.nan_to_num(model.memberships_) * model.graph_.degrees[:, None]
        best = np.argsort(-strength, axis=0, kind="stable")[: max(1, _N_DRAWN // k)]
        shown = np.unique(np.concatenate([pure, best.ravel()])[: _N_DRAWN + k])
        caption = f"{len(shown)} of {words.number(n)} nodes, the strongest of each community"
    memberships = np.nan_to_num(model.memberships_[shown], nan=1.0 / k)
    adjacency = csr_array(model.graph_.undirected[shown][:, shown])
    # Divided before they are added, so that sums of huge weights are finite.
    adjacency.data = adjacency.data / max(float(adjacency.data.max(initial=0.0)), 1e-300)
    graph = networkx.from_scipy_sparse_array(adjacency)
    layout = networkx.spring_layout(graph, iterations=80, seed=0)
    places = np.array([layout[at] for at in range(len(shown))])
    places = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-12)
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    areas = (0.1 + 0.9 * degrees / max(float(degrees.max(initial=0.0)), 1e-300)) * 40_000 / (len(shown) + 50)
    palette = np.array([[int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in drawings.colors(k)])
    mixed = np.rint(memberships @ palette).astype(int).tolist()
    nodes = words.entries_of(
        name=[model.node_names_[node] for node in shown],
        x=places[:, 0].round(4).tolist(),
        y=places[:, 1].round(4).tolist(),
        size=(0.75 * np.sqrt(areas)).round(1).tolist(),
        color=["#" + "".join(f"{min(level, 255):02x}" for level in one) for one in mixed],
        pure=np.isin(shown, pure).tolist(),
    )
    edges = sorted(graph.edges(data="weight"), key=lambda edge: -edge[2])[:_N_EDGES]
    caption += ". The color of a node mixes those of its communities; pure nodes have a ring."
    return block("graph", nodes=nodes, edges=[(a, b, round(w, 3)) for a, b, w in edges], caption=caption)
