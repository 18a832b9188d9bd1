"""Figures of topics: their course over time, and the tree over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from nonneg.report.figures import ACCENT, FAINT, INK, page_figure, svg_text

_N_LETTERS = 44
"""Longer labels of a tree are shortened."""


def documents_per_period(periods: Sequence[str], counts: Sequence[int], unit: str) -> str:
    """Draw how many documents there are of each period."""
    figure, axes = page_figure(10.4, 2.0)
    axes.bar(np.arange(len(periods)), counts, width=0.85, color=ACCENT)
    axes.set_xlim(-0.6, max(len(periods), 8) - 0.4)  # few bars stay slim
    _period_axis(axes, periods, 10)
    axes.set_ylabel("documents", color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return svg_text(figure, f"Documents per {unit}")


def course(
    periods: Sequence[str],
    counts: Sequence[int],
    values: Sequence[float | None],
    smoothed: Sequence[float | None],
    label: str,
) -> str:
    """Draw the share of a topic by period: dots in the size of the number of documents, and a smooth line."""
    figure, axes = page_figure(5.2, 2.3)
    places = np.arange(len(periods))
    raw, line = (
        100 * np.array([np.nan if one is None else one for one in row]) for row in (values, smoothed)
    )
    most = max(max(counts, default=1), 1)
    axes.scatter(places, raw, s=4 + 26 * np.asarray(counts) / most, color=INK, alpha=0.35, linewidths=0)
    axes.plot(places, line, color=ACCENT, linewidth=2, solid_capstyle="round")
    axes.set_ylim(bottom=0.0)
    _period_axis(axes, periods, 5)
    axes.set_ylabel("share, %", color=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    return svg_text(figure, f"Share of {label} by period")


def tree(merges: Sequence[Sequence[float]], labels: Sequence[str]) -> str:
    """Draw a tree over topics: leaves on the left, joined at their distance."""
    found = dendrogram(np.asarray(merges, dtype=float), no_plot=True)
    figure, axes = page_figure(10.4, 0.27 * len(labels) + 0.8)
    for places, distances in zip(found["icoord"], found["dcoord"], strict=True):
        axes.plot(distances, places, color=ACCENT, linewidth=1.6, solid_joinstyle="round")
    named = [labels[at] for at in found["leaves"]]
    named = [name if len(name) <= _N_LETTERS else f"{name[: _N_LETTERS - 1]}…" for name in named]
    # SciPy puts the leaves at 5, 15, 25, ...
    axes.set_yticks(10 * np.arange(len(named)) + 5, named, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(10 * len(named), 0)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("distance", color=INK)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    return svg_text(figure, "Tree over the topics")


def _period_axis(axes: Any, periods: Sequence[str], n_labels: int) -> None:
    # Periods have no gaps, so that their numbers are a scale of time.
    step = -(-len(periods) // n_labels)
    shown = range(0, len(periods), step)
    axes.set_xticks(list(shown), [periods[at] for at in shown], parse_math=False)
