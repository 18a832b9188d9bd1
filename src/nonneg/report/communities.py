"""Sections of overlapping communities: the communities, the graph, connections, the nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import block_array, csr_array

from nonneg._html import Raw
from nonneg._optional import import_optional
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.applications.saved_models import load
from nonneg.metrics import conductance, overlapping_modularity
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_COLORS = (
    "#2f7ed8", "#e8743b", "#19a979", "#c64f9a", "#8d6cd1", "#d1a417", "#13a4b4", "#b0505a", "#6b8e23",
    "#7a7f87", "#4b5bb5", "#9a6b3f",
)  # fmt: skip
_GRAY = "#b9bfc7"  # of nodes without a community
_N_DRAWN, _N_EDGES, _N_NAMED = 160, 800, 40
_N_LISTED = 60  # maximum number of nodes listed
_MOSTLY = 0.9
_CURVES = {"eigengap": "gap of the eigenvalues", "held-out edges": "error on hidden pairs of nodes"}


def describe(
    model: Any,
    source: str,
    seconds: float,
    *,
    attribute: str | None = None,
    labels: Any = None,
) -> Record:
    """Return the record of communities and, where there are labels, how they agree."""
    graph, memberships = model.graph_, np.nan_to_num(model.memberships_, nan=0.0)
    sending, receiving = _two_memberships(model)
    outward = conductance(graph.adjacency, memberships)
    if graph.directed:
        # Senders and receivers are two kinds of nodes.
        whole = block_array([[None, graph.adjacency], [graph.adjacency.T, None]])
        outward = conductance(whole, np.concatenate([sending, receiving]))
    compared = None
    if labels is not None:
        by_name = labels if isinstance(labels, dict) else dict(enumerate(labels))
        keys = model.node_names_ if isinstance(labels, dict) else range(graph.n_nodes)
        drawn = [str(by_name.get(keys[at]) or "") for at in _drawn_nodes(model)]
        compared = model.compare(labels).as_dict() | {"name": attribute, "drawn": drawn}
    k, top = memberships.shape[1], model.top_nodes(8)
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
        "labels": compared,
        "modularity": overlapping_modularity(graph.adjacency, sending, receiving=receiving),
        "n_communities": k,
        "n_mostly_one": mostly,
        "n_unreached": len(model.unreached_nodes_),
        "n_iter": model.n_iter_,
        "duality_gap": model.result_.gap,
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


def _two_memberships(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return the memberships at the two ends of an edge: by sending and by receiving if it is directed."""
    if not model.graph_.directed:
        both = np.nan_to_num(model.memberships_, nan=0.0)
        return both, both
    return np.nan_to_num(model.sending_memberships_), np.nan_to_num(model.receiving_memberships_)


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    scores, why = result["scores"] or {}, ""
    if len(scores) > 1:
        told = ", ".join(f"{wording.method(name)} {wording.number(score)}" for name, score in scores.items())
        close = "" if scores.get(result["method"]) == max(scores.values()) else "; within a standard error"
        why = f" (log-likelihood per hidden edge, relative to a single community: {told}{close})"
    words = (
        f"{wording.counted(data['n_nodes'], 'node')} and {wording.counted(data['n_edges'], 'edge')} from "
        f"{data['source']}. Communities by {wording.method(result['method'])}{why}, in "
        f"{wording.seconds(result['seconds'])}."
    )
    if data["kind"] == "directed":
        words += (
            " The graph is directed: a membership is the mean of those by sending and by receiving, which "
            "memberships.csv has as well."
        )
    elif data["kind"] == "bipartite":
        words += " The graph is bipartite: communities span both sides."
    if data["n_isolated"]:
        words += f" {wording.counted(data['n_isolated'], 'node')} without edges and without a membership."
    if result["n_unreached"]:
        words += f" {wording.counted(result['n_unreached'], 'node')} not reached by the leading eigenvectors."
    return words


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    model, details = record.model, record.as_dict()
    labels = details["result"]["labels"]
    n, n_drawn = details["data"]["n_nodes"], len(_drawn_nodes(model))
    headings = [
        "community",
        "pure node",
        "*strongest members",
        ">size",
        ">nodes mainly in it",
        ">conductance",
    ]
    rows = [
        [
            [html.swatch(color(entry["community"])), entry["community"]],
            entry["pure_node"],
            html.chips((f"{name} {share:.0%}", round(100 * share)) for name, share in entry["top"]),
            f"{entry['size']:.1f}",
            wording.number(entry["n_nodes"]),
            wording.number(entry["conductance"], digits=2),
        ]
        for entry in details["communities"]
    ]
    picture = "All nodes."
    if n_drawn < n:
        picture = (
            f"{n_drawn} of {wording.number(n)} nodes: of every community, those with the largest memberships "
            "and degrees."
        )
    ring = f"the ring has the color of its {labels['name']}" if labels else "pure nodes have a ring"
    return [
        html.section(
            "The communities",
            html.paragraph(
                "The pure node represents the community. The size is the sum of all memberships; the "
                "conductance is the fraction of the edge weight that leads out of the community."
            ),
            html.table(headings, rows),
        ),
        _number(details["result"]["number"]) if details["result"]["number"] else None,
        _labels(labels) if labels else None,
        html.section(
            "The graph",
            html.paragraph(picture),
            html.figure(
                Raw(draw_graph(model, labels)),
                f"Each node is a pie chart of its memberships; {ring}. Hover to see names and memberships.",
            ),
        ),
        _connections(model),
        _nodes(model),
    ]


def _number(number: Mapping[str, Any]) -> Raw:
    curves = [
        html.figure(
            drawings.candidate_curve(
                number["candidates"], values, None, number["estimates"].get(name), _CURVES.get(name, name),
                "communities",
            ),
            wide=False,
        )
        for name, values in number["curves"].items()
    ]  # fmt: skip
    estimates = html.tiles((name, wording.number(k)) for name, k in number["estimates"].items())
    return html.section(
        "How many communities", html.paragraph(number["reason"]), estimates, html.side_by_side(*curves)
    )


def _matched(labels: Mapping[str, Any]) -> set[tuple[int, int]]:
    rows, columns = linear_sum_assignment(np.asarray(labels["counts"]), maximize=True)
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


def _labels(labels: Mapping[str, Any]) -> Raw:
    matched, counts = _matched(labels), labels["counts"]
    largest = max(1, int(np.max(counts)))
    rows = []
    for at, name in enumerate(labels["labels"][:_N_LISTED]):
        cells = [
            html.chips(
                [
                    (
                        html.element("b", count) if (at, column) in matched else count,
                        round(100 * count / largest),
                    )
                ]
            )
            for column, count in enumerate(counts[at])
        ]
        rows.append([name, *cells])
    skipped = ""
    if labels["n_left_out"]:
        skipped = f" {wording.counted(labels['n_left_out'], 'node')} without a label or a community left out."
    scores = [
        ("normalized mutual information", f"{labels['nmi']:.3f}"),
        ("adjusted Rand index", f"{labels['ari']:.3f}"),
        ("accuracy", wording.percent(labels["accuracy"])),
    ]
    said = f"Nodes by {labels['name']} and main community; the best matching is in bold.{skipped}"
    headings = [str(labels["name"]), *(f">{at}" for at in range(len(counts[0])))]
    return html.section(
        f"Communities and {labels['name']}",
        html.tiles(scores),
        html.paragraph(said),
        html.table(headings, rows),
    )


def _connections(model: Any) -> Raw:
    """Share out the weight of every edge by the memberships of its ends."""
    sending, receiving = _two_memberships(model)
    flows = sending.T @ (_in_unit(model.graph_.adjacency) @ receiving)
    flows = 0.5 * (flows + flows.T) / max(float(flows.sum()), 1e-300)
    most = float(flows.max()) or 1.0
    names = [str(at) for at in range(len(flows))]
    return html.section(
        "Connections between communities",
        html.legend(f"0 to {wording.percent(most)} of the weight"),
        html.figure(
            drawings.heat_map(flows, "community", names, line="community", largest=most),
            "The weight of the edges between two communities, where every edge is divided according to the "
            f"memberships of its ends. {wording.percent(float(np.trace(flows)))} of the weight lies within "
            "communities.",
        ),
    )


def _nodes(model: Any) -> Raw:
    degrees, memberships = model.graph_.degrees, model.memberships_
    shown = np.argsort(-degrees, kind="stable")[:_N_LISTED]
    largest = np.nan_to_num(memberships[shown], nan=0.0).max(axis=1)
    labels = np.where(model.labels_[shown] < 0, len(degrees), model.labels_[shown])
    pure, rows = set(model.pure_nodes_.tolist()), []
    for at in shown[np.lexsort((-degrees[shown], -np.round(largest, 3), labels))].tolist():
        known = bool(np.isfinite(memberships[at]).all())
        bar: Any = html.element("span", "no edge", class_="note")
        if known:
            parts = [
                html.element("i", style=f"width: {100 * value:.1f}%; background: {color(j)}")
                for j, value in enumerate(memberships[at])
                if value >= 0.005
            ]
            bar = html.element("span", parts, class_="mix")
        name = [
            model.node_names_[at],
            [" ", html.element("span", "pure", class_="note")] if at in pure else None,
        ]
        cells = [f"{value:.2f}" if known else wording.number(None) for value in memberships[at]]
        rows.append([name, wording.number(float(degrees[at])), bar, *cells])
    said = "By community, largest membership first."
    if len(rows) < len(degrees):
        said = f"The {len(rows)} nodes with the largest degrees, by community. memberships.csv has all."
    headings = ["node", ">degree", "membership", *(f">{at}" for at in range(memberships.shape[1]))]
    return html.section("The nodes", html.paragraph(said), html.table(headings, rows))


def color(community: int) -> str:
    """Return the color of a community; gray without one."""
    return _COLORS[community % len(_COLORS)] if community >= 0 else _GRAY


def _in_unit(adjacency: SparseMatrix) -> SparseMatrix:
    """Divide the weights by the largest, so that sums of huge ones are finite and small ones can be seen."""
    largest = float(adjacency.data.max(initial=0.0))
    if not largest > 0:
        return adjacency
    # SciPy multiplies by 1 / largest, which is infinite for the smallest numbers.
    parts = adjacency.data / largest, adjacency.indices, adjacency.indptr
    return csr_array(parts, shape=adjacency.shape)


def _drawn_nodes(model: Any) -> IntArray:
    """Return the nodes of the picture: all of a small graph, otherwise the strongest of each community."""
    n, k = model.memberships_.shape
    if n <= _N_DRAWN:
        return np.arange(n)
    strength = np.nan_to_num(model.memberships_, nan=0.0) * model.graph_.degrees[:, None]
    best = np.argsort(-strength, axis=0, kind="stable")[: max(1, _N_DRAWN // k)]
    return np.unique(np.concatenate([model.pure_nodes_, best.ravel()])[: _N_DRAWN + k])


def places_of(adjacency: SparseMatrix, memberships: FloatArray) -> FloatArray:
    """Place nodes near those they are tied to, by networkx; communities begin at corners of a polygon."""
    networkx = import_optional("networkx", extra="graphs", purpose="Drawing a graph")
    n, k = memberships.shape
    angles = 2 * np.pi * np.arange(k) / k
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    start = np.nan_to_num(memberships, nan=1.0 / k) @ corners
    start += 0.1 * np.random.default_rng(n).standard_normal((n, 2))
    if n > 2000:  # the layout compares all pairs of nodes
        return start
    graph = networkx.from_scipy_sparse_array(adjacency)
    layout = networkx.spring_layout(graph, pos=dict(enumerate(start)), iterations=80, seed=0)
    return np.array([layout[at] for at in range(n)])


def draw_graph(model: Any, labels: Mapping[str, Any] | None = None) -> str:
    """Draw nodes as pies of their communities; rings mark pure nodes, or known labels."""
    shown = _drawn_nodes(model)
    memberships, names = model.memberships_[shown], [model.node_names_[at] for at in shown]
    adjacency = _in_unit(csr_array(model.graph_.undirected[shown][:, shown]))
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    places = places_of(adjacency, memberships)
    low, high = places.min(axis=0), places.max(axis=0)
    places = [50.0, 50.0] + (places - low) / np.maximum(high - low, 1e-12) * [900.0, 610.0]
    sizes = np.sqrt(degrees / max(float(degrees.max(initial=0.0)), 1e-300))
    radii = 150.0 / math.sqrt(len(shown) + 50.0) * (0.35 + 0.65 * sizes)
    pure = np.isin(shown, model.pure_nodes_)
    rings = [
        color(int(np.nan_to_num(row).argmax())) if one else ""
        for one, row in zip(pure, memberships, strict=True)
    ]
    if labels is not None:
        # Labels have the color of the community that they are matched with.
        known = {name: color(at) for at, name in enumerate(labels["labels"])}
        known |= {labels["labels"][row]: color(column) for row, column in _matched(labels)}
        rings = [known.get(name, "") for name in labels["drawn"]]
    drawn = zip(places.tolist(), radii, memberships, names, rings, strict=True)
    nodes = [_node(x, y, radius, row, name, ring) for (x, y), radius, row, name, ring in drawn]
    order = np.lexsort((-degrees, ~pure))[: _N_NAMED + int(pure.sum())]
    return str(
        html.element(
            "svg", _edges(adjacency, places), nodes, _names(order, places, radii, names, pure),
            xmlns="http://www.w3.org/2000/svg", role="img", aria_label="The graph", viewBox="0 0 1000 720",
            font_family="sans-serif",
        )
    )  # fmt: skip


def _edges(adjacency: SparseMatrix, places: FloatArray) -> list[Raw]:
    parts = adjacency.tocoo()
    upper = np.flatnonzero(parts.row < parts.col)
    drawn = upper[np.argsort(-parts.data[upper], kind="stable")[:_N_EDGES]][::-1]
    # The more lines, the fainter: together they cover about the same.
    faint = min(1.0, math.sqrt(250.0 / max(len(drawn), 1)))
    lines = []
    for at in drawn:
        share = math.sqrt(parts.data[at])
        (x1, y1), (x2, y2) = places[parts.row[at]], places[parts.col[at]]
        lines.append(
            html.element(
                "line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", stroke="#8b95a1",
                stroke_opacity=f"{0.08 + (0.07 + 0.55 * share) * faint:.2f}",
                stroke_width=f"{0.5 + (0.1 + 2.4 * share) * faint:.1f}",
            )
        )  # fmt: skip
    return lines


def _node(x: float, y: float, radius: float, shares: FloatArray, name: str, ring: str) -> Raw:
    known = bool(np.isfinite(shares).all()) and float(shares.sum()) > 0
    listed = [(at, share) for at, share in enumerate(shares) if known and share >= 0.005]
    words = ", ".join(f"{share:.0%} of {at}" for at, share in listed)
    circle = {"cx": f"{x:.1f}", "cy": f"{y:.1f}"}
    parts = [html.element("title", f"{name}: {words or 'no membership'}")]
    if ring:
        parts.append(
            html.element(
                "circle", **circle, r=f"{radius + 4:.1f}", fill="none", stroke=ring, stroke_width=2.5
            )
        )
    if len(listed) < 2:
        fill = color(listed[0][0]) if listed else _GRAY
        return html.element("g", parts, html.element("circle", **circle, r=f"{radius:.1f}", fill=fill))
    angle = -math.pi / 2
    for at, share in listed:
        share = share / sum(one for _, one in listed)
        x1, y1 = x + radius * math.cos(angle), y + radius * math.sin(angle)
        angle += 2 * math.pi * share
        x2, y2 = x + radius * math.cos(angle), y + radius * math.sin(angle)
        arc = f"A{radius:.1f} {radius:.1f} 0 {int(share > 0.5)} 1 {x2:.1f} {y2:.1f}Z"
        parts.append(html.element("path", d=f"M{x:.1f} {y:.1f}L{x1:.1f} {y1:.1f}{arc}", fill=color(at)))
    return html.element("g", parts)


def _names(
    order: IntArray, places: FloatArray, radii: FloatArray, names: Sequence[str], pure: Any
) -> list[Raw]:
    """Write names below their nodes, the first ones first, as long as none covers another."""
    taken: list[tuple[float, float, float, float]] = []
    parts = []
    for at in order.tolist():
        text = names[at] if len(names[at]) <= 22 else f"{names[at][:21]}…"
        size, (x, y) = (14 if pure[at] else 11), places[at]
        half, top = 0.29 * size * len(text), y + radii[at] + (5 if pure[at] else 1)
        box = (x - half, top, x + half, top + size)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            continue
        taken.append(box)
        parts.append(
            html.element(
                "text", text, x=f"{x:.1f}", y=f"{top + 0.85 * size:.1f}", text_anchor="middle",
                font_size=size, fill="var(--ink, #16191d)", stroke="var(--card, #ffffff)",
                stroke_width=3, paint_order="stroke", stroke_linejoin="round",
            )
        )  # fmt: skip
    return parts
