"""Figures that are files of their own: panels of curves as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg.report.drawings import drawing

# Okabe and Ito's colors, which people with any kind of color vision can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8a7f00")
MARKERS = "osD^vP*X"
_INK, _FAINT = "#222222", "#cccccc"


def curve_panels(panels: Sequence[Mapping[str, Any]], title: str, *, n_columns: int = 2) -> str:
    """Draw curves in one or several pairs of axes."""
    n_columns = max(1, min(n_columns, len(panels)))
    n_rows = -(-len(panels) // n_columns)
    figure = _figure(5.2 * n_columns, 3.6 * n_rows)
    grid = np.atleast_2d(figure.subplots(n_rows, n_columns, squeeze=False))
    for at, axes in enumerate(grid.ravel()):
        if at < len(panels):
            _draw(axes, panels[at])
        else:
            axes.set_axis_off()
    return '<?xml version="1.0" encoding="utf-8"?>\n' + drawing(figure, title)


def _figure(width: float, height: float) -> Any:
    module = import_optional("matplotlib.figure", extra="report", purpose="The report")
    return module.Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _draw(axes: Any, panel: Mapping[str, Any]) -> None:
    if panel.get("x_log"):
        axes.set_xscale("log")
    if panel.get("y_log"):
        axes.set_yscale("log")
    drawn = [
        _draw_series(axes, series, COLORS[at % len(COLORS)], MARKERS[at % len(MARKERS)])
        for at, series in enumerate(panel["series"])
    ]
    axes.set_title(panel["title"], fontsize=11, color=_INK, parse_math=False)
    axes.set_xlabel(panel["x_label"], color=_INK, parse_math=False)
    axes.set_ylabel(panel["y_label"], color=_INK, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(colors=_INK, which="both", labelsize=9)
    axes.grid(axis="y", color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    if drawn:
        # Named one by one: left alone, matplotlib puts curves with error bars last.
        legend = axes.legend(handles=drawn, fontsize=8, frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)


def _draw_series(axes: Any, series: Mapping[str, Any], color: str, marker: str) -> Any:
    x = np.asarray(series["x"], dtype=float)
    y = np.asarray([np.nan if value is None else value for value in series["y"]], dtype=float)
    styles: dict[str, dict[str, Any]] = {
        "points": {"marker": marker, "markersize": 5, "linewidth": 1.4},
        "line": {"linewidth": 1.8},
        "dashed": {"linewidth": 1.6, "linestyle": "--"},
    }
    looks = styles[series.get("style") or "points"]
    spread = series.get("spread")
    if spread is None:
        return axes.plot(x, y, color=color, label=series["label"], **looks)[0]
    bars = np.asarray([0.0 if value is None else value for value in spread], dtype=float)
    return axes.errorbar(x, y, yerr=bars, color=color, label=series["label"], capsize=3, **looks)
