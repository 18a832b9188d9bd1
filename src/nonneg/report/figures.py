"""Figures of the page, as inline SVG that takes the colors of the page it stands on.

Only matplotlib's object interface is used: no window, no global figure, no global setting is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.report.svg import svg_element

# Colors that no figure uses otherwise; `svg_text` writes the page's own in their place.
INK, FAINT, ACCENT = "#010203", "#040506", "#070809"
"""Stand for the page's own colors of text, of lines in the background, and of what matters."""
_PAGE_COLORS = {INK: "currentColor", FAINT: "var(--line)", ACCENT: "var(--accent)"}

N_BINS = 600
"""Maximum number of cells along the long side of a heat map."""
_N_NAMES = 30


def convergence(values: Sequence[float | None], position: Sequence[float], label: str) -> str:
    """Draw the loss against iterations or seconds."""
    points = [(at, loss) for at, loss in zip(position, values, strict=True) if loss is not None]
    x, y = (np.array(side, dtype=float) for side in (zip(*points, strict=True) if points else ((), ())))
    if label == "seconds" and len(x) and x[-1] < 0.5:
        x, label = 1e3 * x, "milliseconds"
    figure, axes = page_figure(5.2, 3.0)
    axes.plot(x, y, color=ACCENT, linewidth=2, solid_capstyle="round")
    if len(x):
        axes.plot(x[-1], y[-1], "o", color=ACCENT, markersize=6)
        if y.min() > 0 and y.max() > 10 * y.min():
            axes.set_yscale("log")
        else:
            _leave_room(axes, y)
    if label == "iteration":
        _whole_numbers(axes)
    else:
        axes.set_xlim(left=0.0)
        axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(label, color=INK)
    axes.set_ylabel("loss", color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return svg_text(figure, f"Loss against {label}")


def strengths(shares: FloatArray, label: str = "component") -> str:
    """Draw the share of each component, strongest first."""
    order = np.argsort(-shares, kind="stable")
    figure, axes = page_figure(10.4, 2.5)
    axes.bar(np.arange(len(order)), 100 * shares[order], width=0.78, color=ACCENT)
    shown = np.arange(0, len(order), max(1, len(order) // 40))
    axes.set_xticks(shown, [str(order[at]) for at in shown])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, max(len(order), 8) - 0.4)  # few bars stay slim
    axes.set_xlabel(label, color=INK)
    axes.set_ylabel("share, %", color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return svg_text(figure, f"Share of each {label}")


def ranked_bars(values: Any, n_chosen: int, label: str, *, order: str = "largest first") -> str:
    """Draw values as bars, those that were chosen in color."""
    shown = np.asarray(values, dtype=float)[: 2 * n_chosen + 10]
    figure, axes = page_figure(10.4, 2.5)
    places = np.arange(1, len(shown) + 1)
    axes.bar(places[:n_chosen], shown[:n_chosen], width=0.78, color=ACCENT)
    axes.bar(places[n_chosen:], shown[n_chosen:], width=0.78, color=INK)
    axes.axvline(n_chosen + 0.5, color=FAINT, linewidth=1.2)
    axes.set_xlim(0.4, max(len(shown), 8) + 0.6)  # few bars stay slim
    _whole_numbers(axes)
    axes.set_xlabel(f"data points, {order}", color=INK)
    axes.set_ylabel(label, color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return svg_text(figure, f"{label.capitalize()} of the data points, {order}")


def candidate_curve(
    candidates: Sequence[int],
    mean: Sequence[float],
    spread: Sequence[float],
    chosen: int,
    label: str,
    *,
    what: str = "components",
) -> str:
    """Draw a measure of every candidate, with its spread, and mark one."""
    x, y, bars = (np.asarray(values, dtype=float) for values in (candidates, mean, spread))
    figure, axes = page_figure(5.2, 3.0)
    if np.any(bars > 0):
        axes.fill_between(x, y - bars, y + bars, color=FAINT, linewidth=0)
    axes.plot(x, y, color=ACCENT, linewidth=2, solid_capstyle="round")
    for at in np.flatnonzero(x == chosen):
        axes.plot(x[at], y[at], "o", color=ACCENT, markersize=7)
        axes.annotate(str(chosen), (x[at], y[at]), (0, 9), textcoords="offset points", ha="center", color=INK)
    if y.size and y.min() > 0 and y.max() > 100 * y.min():
        axes.set_yscale("log")
    _whole_numbers(axes)
    axes.set_xlabel(what, color=INK)
    axes.set_ylabel(label, color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return svg_text(figure, f"{label[:1].upper()}{label[1:]} by number of {what}")


def heat_map(
    factor: FloatArray,
    what: str,
    names: Sequence[str] | None = None,
    *,
    ordered: bool = False,
    line: str = "component",
    largest: float | None = None,
) -> str:
    """Draw a factor with one line per component, each scaled to its own maximum or all to one number."""
    n_components, length = factor.shape
    cells = averaged(factor, N_BINS)
    cells = scaled_rows(cells) if largest is None else cells / largest
    labels: list[str] = []
    if names is not None and length <= _N_NAMES:
        labels = [name if len(name) <= 16 else f"{name[:15]}…" for name in names]
    longest = max(map(len, labels), default=0)
    turned = longest * length > 60  # short labels, such as numbers, have room side by side
    # A turned label of ten-point letters takes this many inches below the map.
    room = 0.07 * longest if turned else 0.0
    figure, axes = page_figure(10.4, float(np.clip(0.17 * n_components + 0.9, 1.8, 8.0)) + room)
    axes.imshow(
        cells,
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        interpolation="none",
        extent=(-0.5, length - 0.5, n_components - 0.5, -0.5),
    )
    shown = np.arange(0, n_components, max(1, n_components // 20))
    axes.set_yticks(shown, [str(at) for at in shown])
    if labels:
        turn = {"rotation": 60, "ha": "right"} if turned else {}
        axes.set_xticks(range(length), labels, parse_math=False, **turn)
    elif not ordered:
        _whole_numbers(axes)
    if ordered:
        axes.set_xticks([])
    axes.tick_params(length=0)
    axes.set_xlabel(what, color=INK)
    axes.set_ylabel(line, color=INK)
    return svg_text(figure, f"Heat map by {what}")


def averaged(factor: FloatArray, n_bins: int) -> FloatArray:
    """Average neighboring columns, so that at most `n_bins` are left."""
    length = factor.shape[1]
    if length <= n_bins:
        return np.asarray(factor, dtype=np.float64)
    edges = np.linspace(0, length, n_bins + 1).astype(int)
    sums = np.add.reduceat(np.asarray(factor, dtype=np.float64), edges[:-1], axis=1)
    return sums / np.diff(edges)


def scaled_rows(factor: FloatArray) -> FloatArray:
    """Divide each row by its largest entry."""
    largest = factor.max(axis=1, keepdims=True)
    return factor / np.where(largest > 0, largest, 1.0)


def page_figure(width: float, height: float) -> tuple[Any, Any]:
    """Return an empty figure in the colors of the page."""
    module = import_optional("matplotlib.figure", extra="report", purpose="The report")
    figure = module.Figure(figsize=(width, height), layout="constrained", facecolor="none")
    axes = figure.add_subplot(facecolor="none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, which="both", labelsize=10)
    axes.set_axisbelow(True)
    return figure, axes


def _whole_numbers(axes: Any) -> None:
    """Keep fractions away from an axis that counts, also where it counts to one only."""
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def _leave_room(axes: Any, y: FloatArray) -> None:
    room = 0.08 * (y.max() - y.min()) or 0.05 * abs(y[-1]) or 1.0
    axes.set_ylim(y.min() - room, y.max() + room)


def svg_text(figure: Any, title: str) -> str:
    """Draw a figure that takes the colors of the page it stands on."""
    text = svg_element(figure, title)
    for placeholder, color in _PAGE_COLORS.items():
        text = text.replace(placeholder, color)
    return text
