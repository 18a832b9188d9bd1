"""Graphs as SVG: nodes are pies of their communities, ties are lines."""

from __future__ import annotations

import colorsys
import heapq
import math
from collections.abc import Collection, Sequence
from html import escape

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.report.graph_layout import placed_nodes

PALETTE = (
    "#2f7ed8", "#e8743b", "#19a979", "#c64f9a", "#8d6cd1", "#d1a417", "#13a4b4", "#b0505a", "#6b8e23",
    "#7a7f87",
)  # fmt: skip
N_DRAWN = 160
"""Maximum number of nodes drawn."""
_N_TIES, _TIES_PER_NODE, _N_LABELS = 800, 2, 40
_WIDTH, _HEIGHT, _MARGIN = 1000.0, 720.0, 50.0
_NO_COLOR = "#b9bfc7"


def color(community: int) -> str:
    """Return the color of a community."""
    if community < len(PALETTE):
        return PALETTE[community]
    return f"hsl({(47 + 137.5 * community) % 360:.0f} 55% 50%)"


def color_rgb(community: int) -> tuple[int, int, int]:
    """Return the color of a community as numbers from 0 to 255; gray without a community."""
    text = color(community) if community >= 0 else _NO_COLOR
    if text.startswith("#"):
        return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
    hue = float(text[4:].split()[0]) / 360.0
    red, green, blue = colorsys.hls_to_rgb(hue, 0.5, 0.55)
    return round(255 * red), round(255 * green), round(255 * blue)


def nodes_to_draw(adjacency: SparseMatrix, memberships: FloatArray, pure: IntArray) -> IntArray:
    """Choose the nodes of a picture: all of a small graph, otherwise a part that hangs together."""
    n, k = memberships.shape
    if n <= N_DRAWN:
        return np.arange(n)
    degrees = np.asarray(in_unit(adjacency).sum(axis=1), dtype=np.float64).ravel()
    chosen = dict.fromkeys(int(at) for at in pure[:N_DRAWN])
    starts = list(chosen)
    each = max(1, (N_DRAWN - len(chosen)) // k)
    for community, start in enumerate(starts):
        ranks = np.nan_to_num(memberships[:, community], nan=0.0) * degrees
        for at in _around(adjacency, ranks, start, chosen, each):
            if len(chosen) < N_DRAWN:
                chosen.setdefault(at)
    return np.sort(np.fromiter(chosen, dtype=np.intp))


def _around(
    adjacency: SparseMatrix, ranks: FloatArray, start: int, taken: Collection[int], count: int
) -> list[int]:
    """Return nodes around a first one, each tied to an earlier one and of those the highest in rank."""
    found: list[int] = []
    seen = {start}
    waiting = [(0.0, start)]
    while waiting and len(found) < count:
        _, at = heapq.heappop(waiting)
        if at not in taken:
            found.append(at)
        for other in adjacency.indices[adjacency.indptr[at] : adjacency.indptr[at + 1]].tolist():
            if other not in seen and ranks[other] > 0:
                seen.add(other)
                heapq.heappush(waiting, (-float(ranks[other]), other))
    return found


def graph_picture(
    adjacency: SparseMatrix,
    memberships: FloatArray,
    names: Sequence[str],
    pure: IntArray,
    *,
    title: str = "The graph",
    rings: Sequence[str] | None = None,
) -> str:
    """Draw a graph of a few hundred nodes; `rings` are colors around the nodes, those of a known label."""
    adjacency = in_unit(adjacency)
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    places = placed_nodes(adjacency, memberships)
    places = _MARGIN + places * [_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN]
    largest = max(float(degrees.max(initial=0.0)), 1e-300)
    base = 150.0 / math.sqrt(len(names) + 50.0)
    radii = base * (0.35 + 0.65 * np.sqrt(degrees / largest))
    shown = set(np.argsort(-degrees, kind="stable")[:_N_LABELS].tolist()) | set(map(int, pure))
    ties, words = _ties(adjacency, places)
    parts = [_head(title, _WIDTH, _HEIGHT), *ties]
    stand_out = set(map(int, pure))
    for at, name in enumerate(names):
        ring = rings[at] if rings is not None else ""
        if not ring and rings is None and at in stand_out:
            ring = color(int(memberships[at].argmax()))
        parts.append(_node(places[at], radii[at], memberships[at], name, ring=ring))
    order = sorted(shown, key=lambda at: (at not in stand_out, -degrees[at]))
    parts += _labels([(places[at], radii[at], _short(names[at]), at in stand_out) for at in order])
    if words:
        parts.append(_label(_WIDTH / 2, _HEIGHT - 6, words, 12))
    return "".join(parts) + "</svg>"


def in_unit(adjacency: SparseMatrix) -> SparseMatrix:
    """Divide the weights by the largest, so that sums of huge ones are finite and small ones can be seen."""
    largest = float(adjacency.data.max(initial=0.0))
    if not largest > 0:
        return adjacency
    # SciPy multiplies by 1 / largest, which is infinite for the smallest numbers.
    parts = adjacency.data / largest, adjacency.indices, adjacency.indptr
    return sp.csr_array(parts, shape=adjacency.shape)


def community_picture(flows: FloatArray, sizes: FloatArray, names: Sequence[str]) -> str:
    """Draw communities as discs, tied as strongly as their nodes are."""
    k = len(sizes)
    width, height = 700.0, 420.0
    flows = flows / max(float(flows.max(initial=0.0)), 1e-300)
    angles = 2 * np.pi * np.arange(k) / k - np.pi / 2
    spread = [0.0, 0.0] if k == 1 else [width / 2 - 120, height / 2 - 75]
    places = np.column_stack([np.cos(angles), np.sin(angles)]) * spread + [width / 2, height / 2 - 8]
    radii = (62.0 if k < 8 else 36.0) * np.sqrt(sizes / max(float(sizes.max()), 1e-300))
    parts = [_head("The communities and the ties between them", width, height)]
    strongest = max(float(np.max(flows - np.diag(np.diag(flows)), initial=0.0)), 1e-300)
    total = max(float(flows.sum()), 1e-300)
    for i in range(k):
        for j in range(i):
            share = flows[i, j] / strongest
            if share > 1e-3:
                (x1, y1), (x2, y2) = places[i], places[j]
                parts.append(
                    f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#8b95a1" '
                    f'stroke-opacity="0.65" stroke-width="{1 + 13 * share:.1f}"><title>'
                    f"{2 * flows[i, j] / total:.1%} of the weight</title></line>"
                )
    for at, name in enumerate(names):
        x, y = places[at]
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{max(radii[at], 4):.1f}" fill="{color(at)}"><title>'
            f"{escape(name)}: {flows[at, at] / total:.1%} of the weight within</title></circle>"
        )
        parts.append(_label(x, y + max(radii[at], 4) + 16, _short(name), 14))
    return "".join(parts) + "</svg>"


def _head(title: str, width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif">'
    )


def _ties(adjacency: SparseMatrix, places: FloatArray) -> tuple[list[str], str]:
    """Return the lines, and words for the picture where some edges are left out."""
    parts = adjacency.tocoo()
    upper = parts.row < parts.col
    rows, columns, weights = parts.row[upper], parts.col[upper], parts.data[upper]
    n_edges = len(weights)
    drawn = _sample_of_ties(rows, columns, weights, adjacency.shape[0])
    words = ""
    if len(drawn) < n_edges:
        words = f"{len(drawn)} of {n_edges} edges are drawn: the strongest of every node, then the strongest"
        if weights[drawn].min() == weights.max():
            words = f"{len(drawn)} of {n_edges} edges are drawn: some of every node, then an even sample"
    # The more lines, the fainter: together they cover about the same.
    faint = min(1.0, math.sqrt(250.0 / max(len(drawn), 1)))
    strongest = float(weights.max(initial=0.0)) or 1.0
    lines = []
    for at in drawn[np.argsort(weights[drawn], kind="stable")]:
        share = math.sqrt(weights[at] / strongest)
        (x1, y1), (x2, y2) = places[rows[at]], places[columns[at]]
        lines.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#8b95a1" '
            f'stroke-opacity="{0.08 + (0.07 + 0.55 * share) * faint:.2f}" '
            f'stroke-width="{0.5 + (0.1 + 2.4 * share) * faint:.1f}"/>'
        )
    return lines, words


def _sample_of_ties(rows: IntArray, columns: IntArray, weights: FloatArray, n_nodes: int) -> IntArray:
    """Choose the edges of a picture: of every node its strongest ones, then the strongest of all."""
    if len(weights) <= _N_TIES:
        return np.arange(len(weights))
    # Equal weights are drawn in an order that depends on nothing but their number.
    ties = np.random.default_rng(len(weights)).random(len(weights))
    order = np.lexsort((ties, -weights))
    rank = np.zeros(len(weights), dtype=np.int64)
    seen = np.zeros(n_nodes, dtype=np.int64)
    for place, at in enumerate(order):
        ends = rows[at], columns[at]
        rank[at] = place if min(seen[ends[0]], seen[ends[1]]) >= _TIES_PER_NODE else place - len(weights)
        seen[list(ends)] += 1
    return np.argsort(rank, kind="stable")[:_N_TIES]


def _node(place: FloatArray, radius: float, shares: FloatArray, name: str, *, ring: str) -> str:
    x, y = place
    known = bool(np.isfinite(shares).all()) and float(shares.sum()) > 0
    words = ", ".join(f"{share:.0%} of {at}" for at, share in enumerate(shares) if known and share >= 0.005)
    parts = [f"<g><title>{escape(name)}: {words or 'no membership'}</title>"]
    if ring:
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius + 4:.1f}" fill="none" '
            f'stroke="{ring}" stroke-width="2.5"/>'
        )
    largest = int(shares.argmax()) if known else 0
    if not known or shares[largest] > 0.985 * shares.sum():
        fill = color(largest) if known else _NO_COLOR
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}"/>')
    else:
        parts += _sectors(x, y, radius, shares / shares.sum())
    return "".join(parts) + "</g>"


def _sectors(x: float, y: float, radius: float, shares: FloatArray) -> list[str]:
    ends = -np.pi / 2 + 2 * np.pi * np.concatenate([[0.0], np.cumsum(shares)])
    parts = []
    for at, share in enumerate(shares):
        if share < 0.005:
            continue
        first, last = ends[at], ends[at + 1]
        x1, y1 = x + radius * math.cos(first), y + radius * math.sin(first)
        x2, y2 = x + radius * math.cos(last), y + radius * math.sin(last)
        parts.append(
            f'<path d="M{x:.1f} {y:.1f}L{x1:.1f} {y1:.1f}A{radius:.1f} {radius:.1f} 0 {int(share > 0.5)} 1 '
            f'{x2:.1f} {y2:.1f}Z" fill="{color(at)}"/>'
        )
    return parts


def _labels(wanted: Sequence[tuple[FloatArray, float, str, bool]]) -> list[str]:
    """Write names below their nodes, the first ones first, as long as none covers another."""
    taken: list[tuple[float, float, float, float]] = []
    parts = []
    for (x, y), radius, text, ring in wanted:
        size = 14 if ring else 11
        half, low = 0.29 * size * len(text), y + radius + (5 if ring else 1)
        box = (x - half, low, x + half, low + size)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            continue
        taken.append(box)
        parts.append(_label(x, low + 0.85 * size, text, size))
    return parts


def _label(x: float, y: float, text: str, size: int) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{size}" fill="var(--ink, #16191d)" '
        f'stroke="var(--card, #ffffff)" stroke-width="3" paint-order="stroke" stroke-linejoin="round">'
        f"{escape(text)}</text>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "\N{HORIZONTAL ELLIPSIS}"
