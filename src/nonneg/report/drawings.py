"""Figures of the page, as inline SVG that takes the colors of the page it stands on, and their data.

Only matplotlib's object interface is used: no window, no global figure, no global setting is touched.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from nonneg._html import Raw, element
from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.applications.signatures import CHANNELS
from nonneg.applications.signatures.catalog import SUBSTITUTION_COLORS
from nonneg.report.record import block

# Colors that no figure uses otherwise; `drawing` writes the page's own in their place.
INK, FAINT, ACCENT = "#010203", "#040506", "#070809"
"""Stand for the page's own colors of text, of lines in the background, and of what matters."""
_PAGE_COLORS = {INK: "currentColor", FAINT: "var(--line)", ACCENT: "var(--accent)"}
# Okabe and Ito's colors, which people with any kind of color vision can tell apart; without black, which
# does not show on a dark page.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8a7f00")
_DECORATIVE_IDS = re.compile(r' id="(?:figure|patch|axes|text|line2d|matplotlib|xtick|ytick|LineColl)[^"]*"')
_N_BINS = 600  # maximum number of cells along the long side of a heat map
_N_NAMES = 40  # maximum number of nodes of a graph that are named


def colors(count: int) -> list[str]:
    """Return colors of components; they begin again after the last."""
    return [_COLORS[at % len(_COLORS)] for at in range(count)]


def panel(width: float, height: float) -> tuple[Any, Any]:
    """Return a figure with empty axes in the colors of the page."""
    module = import_optional("matplotlib.figure", extra="report", purpose="The report")
    figure = module.Figure(figsize=(width, height), layout="constrained", facecolor="none")
    axes = figure.subplots()
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, which="both", labelsize=10)
    axes.set_axisbelow(True)
    return figure, axes


def label(axes: Any, x: str = "", y: str = "", *, grid: bool = True) -> None:
    """Name the axes; names of the data are not mathematics."""
    axes.set_xlabel(x, color=INK, parse_math=False)
    axes.set_ylabel(y, color=INK, parse_math=False)
    if grid:
        axes.grid(axis="y", color=FAINT, linewidth=0.8)


def drawing(figure: Any, title: str) -> Raw:
    """Return a figure as an SVG element that is the same in every run."""
    matplotlib = import_optional("matplotlib", extra="report", purpose="The report")
    backend = import_optional("matplotlib.backends.backend_svg", extra="report", purpose="The report")
    stream = io.StringIO()
    # The salt makes the names of clip paths the same in every run, and different between figures.
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        # Text stays text: a character that matplotlib's own font lacks is drawn by the browser.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        backend.FigureCanvasSVG(figure).print_svg(
            stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = stream.getvalue()
    text = _DECORATIVE_IDS.sub("", text[text.index("<svg") :])
    for placeholder, color in _PAGE_COLORS.items():
        text = text.replace(placeholder, color)
    return Raw(text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1))


def curve(
    x: Sequence[float],
    y: Sequence[float | None],
    names: tuple[str, str],
    *,
    spread: Sequence[float] | None = None,
    mark: float | None = None,
) -> Raw:
    """Draw a measure against something that counts or passes, with its spread, and mark one place."""
    figure, axes = panel(5.2, 3.0)
    at, values = (np.array(side, dtype=float) for side in (x, y))  # None becomes NaN
    if spread is not None:
        bars = np.nan_to_num(np.array(spread, dtype=float))
        axes.fill_between(at, values - bars, values + bars, color=FAINT, linewidth=0)
    axes.plot(at, values, color=ACCENT, linewidth=2, solid_capstyle="round")
    for place in np.flatnonzero(at == mark):
        point = (at[place], values[place])
        axes.plot(*point, "o", color=ACCENT, markersize=7)
        axes.annotate(f"{mark:g}", point, (0, 9), textcoords="offset points", ha="center", color=INK)
    if np.isfinite(values).any() and np.nanmin(values) > 0 and np.nanmax(values) > 10 * np.nanmin(values):
        axes.set_yscale("log")
    if np.array_equal(at, np.round(at)):
        whole_numbers(axes)
    if len(at) and at[0] == 0:
        axes.set_xlim(left=0.0)
    label(axes, *names)
    return drawing(figure, f"{names[1][:1].upper()}{names[1][1:]} against {names[0]}")


def curves(
    candidates: Sequence[int],
    measures: Mapping[str, Any],
    what: str,
    mark: int,
    spreads: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the block of measures of candidates for a number, the chosen one marked."""
    drawn = [
        block(
            "curve", x=candidates, y=values, names=(what, name), spread=(spreads or {}).get(name), mark=mark
        )
        for name, values in measures.items()
    ]
    return block("row", drawings=drawn)


def convergence(history: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the block of the loss against iterations and against seconds."""
    losses = history.get("loss") or []
    if not losses or "n_iter" not in history:
        return None
    drawn = [block("curve", x=history["n_iter"], y=losses, names=("iterations", "loss"))]
    if "seconds" in history:
        # Before the first loss is known, factors are initialized: that time is no part of the curve.
        passed = np.asarray(history["seconds"], dtype=float) - history["seconds"][0]
        drawn.append(block("curve", x=passed, y=losses, names=("seconds", "loss")))
    return block("row", drawings=drawn)


def shades(cells: Any, largest: Any = None) -> Any:
    """Return numbers as shades from 0 to 254, relative to the maximum of their line or to `largest`.

    255 stands for what is missing.
    """
    values = np.asarray(cells, dtype=np.float64)
    if largest is None:
        largest = np.nanmax(values, axis=1, keepdims=True, initial=0.0)
    parts = np.clip(values / np.where(np.asarray(largest) > 0, largest, 1.0), 0.0, 1.0)
    return np.where(np.isnan(parts), 255, np.rint(254 * parts)).astype(np.uint8)


def levels(shades: Any) -> FloatArray:
    """Return shades as numbers from 0 to 1, and NaN where they are missing."""
    return np.where(shades == 255, np.nan, shades / 254)


def factor_map(
    factor: FloatArray, what: str, names: Any, caption: str, *, sort: bool = True, lines: Any = None
) -> dict[str, Any]:
    """Return the block of a factor: a line for each component, with what its ends are.

    Unless the order means something, what belongs to the same component stands together. Neighbors are
    averaged where there are more than fit on the page.
    """
    cells, length = np.asarray(factor, dtype=np.float64), factor.shape[1]
    ends = (f"{what} 0", f"{length - 1}") if names is None else (names[0], names[-1])
    if sort:
        own = shades(cells)
        cells = cells[:, np.lexsort((-own.max(axis=0), own.argmax(axis=0)))]
        caption, ends = f"{caption}, sorted by the strongest component", (f"{what}s", "")
    if length > _N_BINS:
        edges = np.linspace(0, length, _N_BINS + 1).astype(int)
        cells = np.add.reduceat(cells, edges[:-1], axis=1) / np.diff(edges)
    lines = [str(at) for at in range(len(cells))] if lines is None else lines
    return block("strips", cells=shades(cells), lines=lines, ends=ends, caption=f"{caption}.")


def lines(x: Sequence[float], curves: Sequence[tuple[Any, str, bool]], names: tuple[str, str]) -> Raw:
    """Draw curves, each in its color, dashed or not; what is missing is a gap."""
    figure, axes = panel(10.4, 3.8)
    for values, color, dashed in curves:
        style = (0, (4, 3)) if dashed else "-"
        axes.plot(x, np.array(values, dtype=float), color=color, linewidth=2 - 0.6 * dashed, linestyle=style)
    label(axes, *names)
    axes.set_ylim(bottom=0)
    return drawing(figure, f"{names[1].capitalize()} by {names[0]}")


def signature(shares: Sequence[float], title: str) -> Raw:
    """Draw the 96 channels of a mutational signature in the usual six colors."""
    figure, axes = panel(5.2, 1.9)
    colors = [SUBSTITUTION_COLORS[name[2:5]] for name in CHANNELS]
    axes.bar(np.arange(96), 100 * np.asarray(shares, dtype=float), width=0.75, color=colors)
    axes.set_xticks(np.arange(6) * 16 + 7.5, list(SUBSTITUTION_COLORS))
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-1, 96)
    label(axes, y="mutations, %", grid=False)
    axes.set_title(title, color=INK, fontsize=11)
    return drawing(figure, title)


def tree(merges: Any, names: Sequence[str]) -> Raw:
    """Draw a tree: leaves on the left, joined at their distance."""
    figure, axes = panel(10.4, 0.27 * len(names) + 0.8)
    dendrogram(
        np.asarray(merges, dtype=float), orientation="right", ax=axes, leaf_font_size=10,
        labels=[name if len(name) <= 44 else f"{name[:43]}…" for name in names],
        link_color_func=lambda _: ACCENT,
    )  # fmt: skip
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.spines["right"].set_visible(False)
    label(axes, "distance", grid=False)
    return drawing(figure, "Tree")


def graph(nodes: Sequence[Mapping[str, Any]], edges: Sequence[tuple[int, int, float]]) -> Raw:
    """Draw nodes at places between 0 and 1 in their colors, and edges as wide as their weights."""
    places = [(40 + 920 * node["x"], 30 + 620 * node["y"]) for node in nodes]
    drawn = []
    for one, other, weight in edges:
        (x1, y1), (x2, y2) = places[one], places[other]
        ends = {"x1": round(x1), "y1": round(y1), "x2": round(x2), "y2": round(y2)}
        drawn.append(element("line", **ends, stroke_width=f"{0.8 + 2 * weight:.2f}"))
    lines = element("g", drawn, stroke="#8b95a1", stroke_opacity=0.35)
    circles, texts = [], []
    boxes: list[tuple[float, float, int]] = []
    for node, (x, y) in sorted(zip(nodes, places, strict=True), key=lambda entry: -entry[0]["size"]):
        ring = {"stroke": "#16191d", "stroke_width": 2} if node["pure"] else {}
        circles.append(
            element("circle", cx=round(x), cy=round(y), r=node["size"], fill=node["color"], **ring)
        )
        name = node["name"] if len(node["name"]) <= 22 else f"{node['name'][:21]}…"
        low, wide = y + node["size"] + 13, 4 * len(name)
        # The largest nodes are named, as far as no name covers another or leaves the picture.
        free = all(abs(x - u) > wide + w or abs(low - v) > 18 for u, v, w in boxes)
        if free and len(boxes) < _N_NAMES and wide < x < 1000 - wide:
            boxes.append((x, low, wide))
            texts.append(element("text", name, x=round(x), y=round(low)))
    names = element("g", texts, font_size=13, text_anchor="middle", fill="currentColor")
    return element(
        "svg", lines, circles, names, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 1000 700", role="img",
        aria_label="The graph",
    )  # fmt: skip


def whole_numbers(axes: Any) -> None:
    """Keep fractions away from an axis that counts, also where it counts to one only."""
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


DRAWINGS = {one.__name__: one for one in (curve, lines, signature, tree, graph)}
"""Drawings, by the kind of block that has their data."""
