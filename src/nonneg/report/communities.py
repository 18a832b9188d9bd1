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
_GRAPH = "The color of a node mixes those of its communities; pure nodes have a ring."
_COMMUNITIES = (
    "The pure node represents the community. The size is the sum of all memberships; nodes are those whose "
    "main community it is; the conductance is the fraction of the edge weight that leads out of it. In a "
    "directed graph, a membership is the mean of those by sending and by receiving."
)


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
        top_nodes=model.top_nodes(8),
        size=memberships.sum(axis=0).tolist(),
        n_nodes=[int(np.count_nonzero(model.labels_ == at)) for at in range(k)],
        conductance=conductance(graph.undirected, memberships).tolist(),
    )
    table, by_label = words.rows_of(communities, *communities[0]), compared and _by_label(compared)
    agreed = number and all(one.holds for one in model.certificate_ if one.name == "number-of-communities")
    curves = number and drawings.curves(number["candidates"], number["curves"], "communities", k)
    return Record(
        "communities",
        f"Communities of {source}",
        f"{words.counted(k, 'community')} in {words.counted(graph.n_nodes, 'node')}; "
        f"{words.counted(mostly, 'node')} {'has' if mostly == 1 else 'have'} a membership above "
        f"{_MOSTLY:.0%} in one of them.",
        ["n_communities", "n_nodes", "n_edges", "modularity", "seconds"],
        data,
        result,
        details={"communities": communities, **picked(model, "connectivity_", "eigenvalues_")},
        remarks=[agreed and f"{words.counted(k, 'community')}: {number['reason']}", by_label and by_label[1]],
        table=table,
        sections=[
            ["The communities", _COMMUNITIES, block("table", rows=table, colors=drawings.colors(k))],
            number and ["How many communities", number["reason"], curves],
            by_label,
            ["The graph", _graph(model)],
        ],
        **of_estimator(model),
    )


def _by_label(labels: Mapping[str, Any]) -> list[Any]:
    """Return the section of known labels."""
    rows = [
        {str(labels["name"]): name} | {f"community {at}": int(count) for at, count in enumerate(counts)}
        for name, counts in list(zip(labels["labels"], labels["counts"], strict=True))[:_N_LISTED]
    ]
    note = (
        f"Agreement of main communities with {labels['name']}: {words.percent(labels['accuracy'])} of the "
        f"nodes, normalized mutual information {labels['nmi']:.3f}, adjusted Rand index {labels['ari']:.3f}."
    )
    return [f"Communities and {labels['name']}", note, rows]


def _graph(model: Any) -> dict[str, Any] | None:
    """Return the block of the graph: nodes in the mixed colors of their communities, placed by networkx."""
    try:
        networkx = import_optional("networkx", extra="graphs", purpose="Drawing a graph")
    except MissingDependencyError:
        return None
    n, k = model.memberships_.shape
    # The strongest of each community, and the pure nodes.
    strength = np.nan_to_num(model.memberships_) * model.graph_.degrees[:, None]
    best = np.argsort(-strength, axis=0, kind="stable")[: max(1, _N_DRAWN // k)]
    shown = np.arange(n) if n <= _N_DRAWN else np.union1d(model.pure_nodes_, best)
    adjacency = csr_array(model.graph_.undirected[shown][:, shown])
    # Divided before they are added, so that sums of huge weights are finite.
    adjacency.data = adjacency.data / max(float(adjacency.data.max(initial=0.0)), 1e-300)
    graph = networkx.from_scipy_sparse_array(adjacency)
    layout = networkx.spring_layout(graph, iterations=80, seed=0)
    places = np.array([layout[at] for at in range(len(shown))])
    places = (places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-12)
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    areas = 0.1 + 0.9 * degrees / max(float(degrees.max(initial=0.0)), 1e-300)
    palette = np.array([list(bytes.fromhex(color[1:])) for color in drawings.colors(k)])
    mixed = np.clip(np.nan_to_num(model.memberships_[shown], nan=1.0 / k) @ palette, 0, 255).round()
    nodes = words.entries_of(
        name=[model.node_names_[node] for node in shown],
        x=(40 + 920 * places[:, 0]).round().tolist(),
        y=(30 + 620 * places[:, 1]).round().tolist(),
        size=(150 * np.sqrt(areas / (len(shown) + 50))).round(1).tolist(),
        color=["#" + bytes(one).hex() for one in mixed.astype(np.uint8)],
        ring=[drawings.INK if pure else "none" for pure in np.isin(shown, model.pure_nodes_)],
    )
    edges = sorted(graph.edges(data="weight"), key=lambda edge: -edge[2])[:_N_EDGES]
    caption = f"{len(shown)} of {words.number(n)} nodes. {_GRAPH}"
    return block("graph", nodes=nodes, edges=edges, caption=caption)
