"""Figures of the page, as inline SVG that takes the colors of the page it stands on.

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

from nonneg._html import Raw
from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.report.elements import side_by_side

# Colors that no figure uses otherwise; `drawing` writes the page's own in their place.
INK, FAINT, ACCENT = "#010203", "#040506", "#070809"
"""Stand for the page's own colors of text, of lines in the background, and of what matters."""
_PAGE_COLORS = {INK: "currentColor", FAINT: "var(--line)", ACCENT: "var(--accent)"}
# Okabe and Ito's colors, which people with any kind of color vision can tell apart; without black, which
# does not show on a dark page.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8a7f00")
_DECORATIVE_IDS = re.compile(r' id="(?:figure|patch|axes|text|line2d|matplotlib|xtick|ytick|LineColl)[^"]*"')
_N_BINS = 600  # maximum number of cells along the long side of a heat map
_N_NAMES = 30


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
    at, values = (np.array([np.nan if one is None else one for one in side], dtype=float) for side in (x, y))
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
) -> Raw | None:
    """Draw measures of candidates for a number side by side, the chosen one marked."""
    spreads = spreads or {}
    return side_by_side(
        [
            curve(candidates, values, (what, name), spread=spreads.get(name), mark=mark)
            for name, values in measures.items()
        ]
    )


def convergence(history: Mapping[str, Any]) -> Raw | None:
    """Draw the loss against iterations and against seconds."""
    losses = history.get("loss") or []
    if not losses or "n_iter" not in history:
        return None
    drawn = [curve(history["n_iter"], losses, ("iterations", "loss"))]
    if "seconds" in history:
        # Before the first loss is known, factors are initialized: that time is no part of the curve.
        passed = np.asarray(history["seconds"], dtype=float) - history["seconds"][0]
        drawn.append(curve(passed, losses, ("seconds", "loss")))
    return side_by_side(drawn)


def heat_map(
    factor: FloatArray,
    what: str,
    names: Sequence[str] | None = None,
    *,
    ordered: bool = False,
    line: str = "component",
    lines: Sequence[str] | None = None,
    largest: float | None = None,
    size: tuple[float, float] | None = None,
) -> Raw:
    """Draw a factor with one line per component, each scaled to its own maximum or all to one number."""
    n_components, length = factor.shape
    cells = averaged(factor)
    cells = scaled_rows(cells) if largest is None else cells / largest
    labels: list[str] = []
    if names is not None and length <= _N_NAMES:
        labels = [name if len(name) <= 16 else f"{name[:15]}…" for name in names]
    longest = max(map(len, labels), default=0)
    turned = longest * length > 60  # short labels, such as numbers, have room side by side
    # A turned label of ten-point letters takes this many inches below the map.
    room = 0.07 * longest if turned else 0.0
    height = float(np.clip(0.17 * n_components + 0.9, 1.8, 8.0)) + room
    figure, axes = panel(*(size or (10.4, height)))
    extent = (-0.5, length - 0.5, n_components - 0.5, -0.5)
    axes.imshow(cells, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="none", extent=extent)
    shown = np.arange(0, n_components, max(1, n_components // 20))
    axes.set_yticks(shown, [str(at) if lines is None else lines[at] for at in shown], parse_math=False)
    if labels:
        turn = {"rotation": 60, "ha": "right"} if turned else {}
        axes.set_xticks(range(length), labels, parse_math=False, **turn)
    elif ordered:
        axes.set_xticks([])
    else:
        whole_numbers(axes)
    axes.tick_params(length=0)
    label(axes, what, line, grid=False)
    return drawing(figure, f"Heat map by {what}")


def averaged(factor: FloatArray) -> FloatArray:
    """Average neighboring columns of a long factor."""
    factor, length = np.asarray(factor, dtype=np.float64), factor.shape[1]
    if length <= _N_BINS:
        return factor
    edges = np.linspace(0, length, _N_BINS + 1).astype(int)
    return np.asarray(np.add.reduceat(factor, edges[:-1], axis=1) / np.diff(edges))


def scaled_rows(factor: FloatArray) -> FloatArray:
    """Divide each row by its largest entry."""
    largest = factor.max(axis=1, keepdims=True)
    return factor / np.where(largest > 0, largest, 1.0)


def whole_numbers(axes: Any) -> None:
    """Keep fractions away from an axis that counts, also where it counts to one only."""
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
