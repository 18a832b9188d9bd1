"""Figures of a consensus: stability and error by rank, distances of components, outliers, signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg.applications.signatures.catalog import SUBSTITUTION_COLORS
from nonneg.report.curves import COLORS
from nonneg.report.figures import ACCENT, FAINT, INK, page_figure, svg_text

_ERROR = "#d55e00"


def rank_plot(
    rows: Sequence[Mapping[str, Any]], chosen: int, what: str = "components", *, narrow: bool = False
) -> str:
    """Draw stability and error by rank, as Alexandrov et al. (2013) do; `narrow` for small screens."""
    ranks = [row["n_components"] for row in rows]
    figure, axes = page_figure(5.2 if narrow else 10.4, 3.4)
    axes.axvline(chosen, color=FAINT, linewidth=6, zorder=0)
    (mean,) = axes.plot(ranks, [row["stability"] for row in rows], "o-", color=ACCENT, label="mean stability")
    (least,) = axes.plot(
        ranks, [row["least_stable"] for row in rows], "o--", color=ACCENT, alpha=0.6, label="least stable"
    )
    axes.set_ylim(min(0.0, *(row["least_stable"] for row in rows)) - 0.03, 1.05)
    axes.set_ylabel("stability (silhouette)", color=INK)
    axes.set_xlabel(what, color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    other = axes.twinx()
    (error,) = other.plot(ranks, [row["error"] for row in rows], "s-", color=_ERROR, label="error")
    other.set_ylabel("error", color=_ERROR)
    other.tick_params(colors=_ERROR, labelsize=10)
    other.spines[["top", "left", "bottom"]].set_visible(False)
    other.spines["right"].set_color(FAINT)
    _ink(
        axes.legend(
            handles=[mean, least, error], loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3,
            frameon=False, fontsize=9 if narrow else 10, columnspacing=1.0, handlelength=1.6,
        )
    )  # fmt: skip
    return svg_text(figure, f"Stability and error by number of {what}")


def density_plot(density: Sequence[float], threshold: float, n_outliers: int) -> str:
    """Draw how far components are from their neighbors, with the threshold that makes outliers."""
    values = np.asarray(density, dtype=float)
    top = max(1.0, min(1.42, threshold * 1.1))
    figure, axes = page_figure(5.2, 3.2)
    axes.hist(np.clip(values, 0.0, top), bins=np.linspace(0.0, top, 51), color=ACCENT)
    if threshold <= top:
        axes.axvline(threshold, color=INK, linestyle="--", linewidth=1.2)
    share = 100 * n_outliers / max(len(values), 1)
    axes.set_title(
        f"{n_outliers} of {len(values)} components ({share:.0f}%) are outliers", color=INK, fontsize=11
    )
    axes.set_xlabel("mean distance to the nearest components", color=INK)
    axes.set_ylabel("components", color=INK)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:.0f}")
    return svg_text(figure, "Distances of components to their nearest neighbors")


def clustergram(distances: Any, labels: Sequence[int]) -> str:
    """Draw the distances between components, in the order of their clusters."""
    D, marks = np.asarray(distances, dtype=float), np.asarray(labels)
    n = len(D)
    figure, axes = page_figure(5.2, 4.6)
    picture = axes.imshow(
        D, cmap="Blues_r", vmin=0.0, vmax=1.4142, interpolation="none", extent=(0, n, n, 0), aspect="equal"
    )
    edges = np.flatnonzero(np.diff(marks)) + 1
    middles = [part.mean() for part in np.split(np.arange(n) + 0.5, edges)]
    names = [str(marks[int(middle)]) for middle in middles]
    axes.set_xticks(middles, names)
    axes.set_yticks(middles, names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("components of all restarts, by cluster", color=INK)
    bar = figure.colorbar(picture, ax=axes, shrink=0.8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=9)
    bar.set_label("distance", color=INK)
    return svg_text(figure, "Distances between the components of all restarts")


def usage_bars(groups: Sequence[Mapping[str, Any]], what: str) -> str:
    """Draw the mean share of each program, one bar per group."""
    names = [str(group["name"]) for group in groups]
    shares = np.array([group["usage"] for group in groups], dtype=float)
    figure, axes = page_figure(10.4, 0.9 + 0.32 * len(groups))
    left = np.zeros(len(groups))
    drawn = []
    for at in range(shares.shape[1]):
        color = COLORS[at % len(COLORS)]
        drawn.append(
            axes.barh(
                np.arange(len(groups)), 100 * shares[:, at], left=100 * left, color=color, height=0.72,
                edgecolor="white", linewidth=0.6, alpha=1.0 if at < len(COLORS) else 0.55, label=str(at),
            )
        )  # fmt: skip
        left += shares[:, at]
    axes.set_yticks(np.arange(len(groups)), [name[:24] for name in names], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of usage, %", color=INK)
    legend = axes.legend(
        handles=drawn, title=what, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9,
        ncols=1 + shares.shape[1] // 12,
    )  # fmt: skip
    _ink(legend)
    return svg_text(figure, f"Mean usage of each {what}")


def signature_bars(
    signature: Sequence[float], channels: Sequence[str], title: str, *, narrow: bool = False
) -> str:
    """Draw the 96 channels of a signature in the usual six colors; `narrow` in two rows."""
    values = 100 * np.asarray(signature, dtype=float)
    top = max(float(values.max()), 1e-9) * 1.3
    figure, first = page_figure(5.2 if narrow else 10.4, 3.6 if narrow else 2.3)
    rows = [first]
    if narrow:
        first.set_subplotspec(figure.add_gridspec(2, 1)[0])
        rows.append(figure.add_subplot(2, 1, 2, facecolor="none"))
        rows[1].spines[["top", "right"]].set_visible(False)
        rows[1].spines[["left", "bottom"]].set_color(FAINT)
        rows[1].tick_params(colors=INK, labelsize=10)
    each = len(values) // len(rows)
    for at, axes in enumerate(rows):
        _channel_bars(axes, values[at * each : (at + 1) * each], channels[at * each : (at + 1) * each], top)
    return svg_text(figure, title)


def _channel_bars(axes: Any, values: Any, channels: Sequence[str], top: float) -> None:
    kinds = [name[2:5] for name in channels]
    axes.bar(np.arange(len(values)), values, width=0.75, color=[SUBSTITUTION_COLORS[kind] for kind in kinds])
    for at, kind in enumerate(dict.fromkeys(kinds)):
        axes.add_patch(_rectangle(16 * at - 0.4, 0.91 * top, 15.8, 0.06 * top, SUBSTITUTION_COLORS[kind]))
        axes.text(16 * at + 7.5, 1.0 * top, kind, ha="center", va="bottom", fontsize=10, color=INK)
    axes.set_ylim(0, top)
    axes.set_xlim(-0.8, len(values) - 0.2)
    axes.set_xticks([])
    axes.set_ylabel("mutations, %", color=INK)


def _rectangle(x: float, y: float, width: float, height: float, color: str) -> Any:
    from matplotlib.patches import Rectangle  # `page_figure` has found matplotlib

    return Rectangle((x, y), width, height, color=color, linewidth=0)


def _ink(legend: Any) -> None:
    legend.get_title().set_color(INK)
    for text in legend.get_texts():
        text.set_color(INK)
