"""Figures of the page, as inline SVG, and their data.

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

# Of text, of lines in the background, and of what matters; a dark page turns drawings over.
INK, FAINT, ACCENT = "#16191d", "#d9dde2", "#2563b8"
# Okabe and Ito's colors, which people with any kind of color vision can tell apart; without black, which
# does not show on a dark page.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8a7f00")
_DECORATIVE_IDS = re.compile(r' id="(?:figure|patch|axes|text|line2d|matplotlib|xtick|ytick|LineColl)[^"]*"')
_N_BINS = 600  # maximum number of cells along the long side of a heat map
_N_NAMES = 40  # maximum number of nodes of a graph that are named


def colors(count: int) -> list[str]:
    """Return colors of components; they begin again after the last."""
    return [_COLORS[at % len(_COLORS)] for at in range(count)]


def panel(width: float, height: float, x: str = "", y: str = "", *, grid: bool = True) -> tuple[Any, Any]:
    """Return a figure with empty axes in the colors of the page; names of the data are not mathematics."""
    module = import_optional("matplotlib.figure", extra="report", purpose="The report")
    figure = module.Figure(figsize=(width, height), layout="constrained", facecolor="none")
    axes = figure.subplots()
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, which="both", labelsize=10)
    axes.set_xlabel(x, color=INK, parse_math=False)
    axes.set_ylabel(y, color=INK, parse_math=False)
    if grid:
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return figure, axes


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
    return Raw(text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1))


def curve(x: Any, y: Any, names: Sequence[str], spread: Any = None, mark: float | None = None) -> Raw:
    """Draw a measure against something that counts or passes, with its spread, and mark one place."""
    figure, axes = panel(5.2, 3.0, *names)
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
        axes.set_yscale("log", subs=(2, 5))  # labels of more places would overlap
    if np.array_equal(at, np.round(at)):  # no fractions on an axis that counts, also where it counts to one
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    return drawing(figure, f"{names[1][:1].upper()}{names[1][1:]} against {names[0]}")


def curves(x: Any, measures: Mapping[str, Any], what: str, mark: Any = None, spread: Any = None) -> Any:
    """Return the block of measures of candidates, the chosen one marked; the spread is that of the first."""
    drawn = [
        {"x": x, "y": values, "names": (what, name), "mark": mark, "spread": None if at else spread}
        for at, (name, values) in enumerate(measures.items())
    ]
    return block("row", kind="curve", drawings=drawn) if len(x) > 1 else None


def shades(cells: Any, largest: Any = None) -> Any:
    """Return numbers as shades from 0 to 254, relative to the maximum of their line or to `largest`.

    255 stands for what is missing.
    """
    values = np.asarray(cells, dtype=np.float64)
    if largest is None:
        largest = np.nanmax(values, axis=1, keepdims=True, initial=0.0)
    parts = np.clip(values / np.where(np.asarray(largest) > 0, largest, 1.0), 0.0, 1.0)
    return np.where(np.isnan(parts), 255, np.rint(254 * parts)).astype(np.uint8)


def factor_map(
    factor: FloatArray, line: str, columns: str, *, sort: bool = True, lines: Any = None
) -> list[dict[str, Any]]:
    """Return the rows of a table that shows a factor as a heat map: a strip for each component.

    Unless the order means something, what belongs to the same component stands together. Neighbors are
    averaged where there are more than fit on the page.
    """
    cells, length = np.asarray(factor, dtype=np.float64), factor.shape[1]
    if sort:
        own = shades(cells)
        cells = cells[:, np.lexsort((-own.max(axis=0), own.argmax(axis=0)))]
        columns = f"{columns}, sorted by the strongest {line}"
    if length > _N_BINS:
        edges = np.linspace(0, length, _N_BINS + 1).astype(int)
        cells = np.add.reduceat(cells, edges[:-1], axis=1) / np.diff(edges)
    named = range(len(cells)) if lines is None else lines
    return [{line: name, columns: strip} for name, strip in zip(named, shades(cells), strict=True)]


def lines(x: Sequence[float], curves: Any, colors: Sequence[str], names: tuple[str, str]) -> Raw:
    """Draw a curve in each color, then dashed ones in the same; what is missing is a gap."""
    figure, axes = panel(10.4, 3.8, *names)
    for at, values in enumerate(np.array(curves, dtype=float)):
        style = "-" if at < len(colors) else "--"
        axes.plot(x, values, color=colors[at % len(colors)], linewidth=1.8, linestyle=style)
    axes.set_ylim(bottom=0)
    return drawing(figure, f"{names[1].capitalize()} by {names[0]}")


def signature(spectrum: Sequence[float], title: str) -> Raw:
    """Draw the 96 channels of a mutational signature in the usual six colors."""
    figure, axes = panel(5.2, 1.9, y="mutations, %", grid=False)
    channel_colors = [SUBSTITUTION_COLORS[name[2:5]] for name in CHANNELS]
    axes.bar(np.arange(96), 100 * np.asarray(spectrum, dtype=float), width=0.75, color=channel_colors)
    axes.set_xticks(np.arange(6) * 16 + 7.5, list(SUBSTITUTION_COLORS))
    axes.set_title(title, color=INK, fontsize=11)
    return drawing(figure, title)


def tree(merges: Any, names: Sequence[str]) -> Raw:
    """Draw a tree: leaves on the left, joined at their distance."""
    figure, axes = panel(10.4, 0.27 * len(names) + 0.8, "distance", grid=False)
    short = [name if len(name) <= 44 else f"{name[:43]}…" for name in names]
    links = np.asarray(merges, dtype=float)
    dendrogram(
        links, orientation="right", ax=axes, labels=short, leaf_font_size=10, link_color_func=lambda _: ACCENT
    )
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    return drawing(figure, "Tree")


def graph(nodes: Sequence[Mapping[str, Any]], edges: Sequence[tuple[int, int, float]]) -> Raw:
    """Draw nodes in their colors, edges as wide as their weights, and the names that have room."""
    links = []
    for one, other, weight in edges:
        a, b, width = nodes[one], nodes[other], f"{0.8 + 2 * weight:.2f}"
        links.append(element("line", x1=a["x"], y1=a["y"], x2=b["x"], y2=b["y"], stroke_width=width))
    circles, texts = [], []
    boxes: list[tuple[float, float, int]] = []
    for node in sorted(nodes, key=lambda node: -node["size"]):
        (x, y, size), name = (node[key] for key in ("x", "y", "size")), node["name"][:22]
        hint = element("title", node["name"])
        circles.append(element("circle", hint, cx=x, cy=y, r=size, fill=node["color"], stroke=node["ring"]))
        low, wide = y + size + 13, 4 * len(name)
        # The largest nodes are named, as far as no name covers another or leaves the picture.
        free = all(abs(x - u) > wide + w or abs(low - v) > 18 for u, v, w in boxes)
        if free and len(boxes) < _N_NAMES and wide < x < 1000 - wide:
            boxes.append((x, low, wide))
            texts.append(element("text", name, x=x, y=low))
    return element(
        "svg", element("g", links, stroke="#8b95a1", stroke_opacity=0.35),
        element("g", circles, stroke_width=2),
        element("g", texts, font_size=13, text_anchor="middle", fill=INK),
        xmlns="http://www.w3.org/2000/svg", viewBox="0 0 1000 700", role="img", aria_label="The graph",
    )  # fmt: skip


DRAWINGS = {one.__name__: one for one in (curve, lines, signature, tree, graph)}
"""Drawings, by the kind of block that has their data."""
