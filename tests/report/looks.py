"""What can be read off a drawing: what the code asks for, not where matplotlib puts it."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import numpy as np

NUMBER = re.compile(r"(?<![#\w])-?\d+(?:\.\d+)?(?:e-?\d+)?")


def numbers_of(values: Any) -> list[Any]:
    """Return an array as a list; of a large one its shape and two sums."""
    array = np.nan_to_num(np.asarray(np.ma.filled(values, np.nan), dtype=float), nan=-1e6)
    if array.size <= 24:
        return array.tolist()
    flat = array.ravel()
    return [*array.shape, float(flat.sum()), float(flat @ np.cos(np.arange(len(flat))))]


def short(found: Any) -> Any:
    """Return a record with numbers of nine digits."""
    if isinstance(found, dict):
        return {name: short(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [short(value) for value in found]
    return float(f"{found:.9g}") if isinstance(found, float) else found


def color_of(color: Any) -> Any:
    from matplotlib.colors import to_hex

    return to_hex(color, keep_alpha=True) if np.asarray(color).size else "none"


def colors_of(artists: Any) -> list[Any]:
    """Return the colors of patches, each as often as it changes."""
    return [
        [color for color, _ in groupby(color_of(getattr(patch, name)()) for patch in artists)]
        for name in ("get_facecolor", "get_edgecolor")
    ]


def text_of(text: Any) -> list[Any]:
    place = [*numbers_of(text.get_position()), text.get_ha(), text.get_va()]
    return [text.get_text(), *place, text.get_fontsize(), text.get_rotation(), color_of(text.get_color())]


def axis_of(axis: Any) -> dict[str, Any]:
    params = [axis.get_tick_params(which) for which in ("major", "minor")]
    found: dict[str, Any] = {
        "label": axis.label.get_text(),
        "scale": axis.get_scale(),
        "ticks": [[each.get(name) for name in ("length", "labelsize", "labelcolor")] for each in params],
        "grid": [line.get_linewidth() for line in axis.get_gridlines()[:1] if line.get_visible()],
    }
    for name, locator in (("major", axis.get_major_locator()), ("minor", axis.get_minor_locator())):
        if hasattr(locator, "locs"):  # the others depend on the size of the drawing
            found[name] = numbers_of(locator.locs)
            texts = axis.get_ticklabels(minor=name == "minor")
            found[f"{name}_texts"] = [
                list(word) for word, _ in groupby((t.get_text(), t.get_rotation(), t.get_ha()) for t in texts)
            ]
        elif hasattr(locator, "_integer"):
            found[f"{name}_whole"] = bool(locator._integer)
    return found


def legend_of(legend: Any) -> list[Any]:
    if legend is None:
        return []
    texts = [[text.get_text(), text.get_fontsize(), text.get_parse_math()] for text in legend.get_texts()]
    return [texts, legend.get_title().get_text(), legend.get_frame_on(), legend._ncols]


def line_of(line: Any) -> list[Any]:
    places, color, alpha = numbers_of(line.get_xydata()), color_of(line.get_color()), line.get_alpha() or 1.0
    marker = [line.get_marker(), line.get_markersize()]
    return [places, color, alpha, line.get_linewidth(), line.get_linestyle(), *marker, line.get_zorder()]


def collection_of(each: Any) -> list[Any]:
    sizes = numbers_of(each.get_sizes() if hasattr(each, "get_sizes") else [])
    paths = [numbers_of(path.vertices) for path in each.get_paths()] if not sizes else []  # not of markers
    return [paths, numbers_of(each.get_offsets()), sizes, numbers_of(each.get_linewidth())]


def axes_of(axes: Any) -> dict[str, Any]:
    boxes = [patch.get_bbox().bounds for patch in axes.patches if hasattr(patch, "get_bbox")]
    spines = list(axes.spines.values())
    return {
        "limits": numbers_of([axes.get_xlim(), axes.get_ylim()]),
        "axis": [axis_of(axes.xaxis), axis_of(axes.yaxis)],
        "title": text_of(axes.title),
        "shown": [axes.axison, axes.get_axisbelow(), *(spine.get_visible() for spine in spines)],
        "colors": [color_of(spine.get_edgecolor()) for spine in spines],
        "lines": [line_of(line) for line in axes.lines],
        "patches": [numbers_of(boxes), numbers_of([patch.get_linewidth() for patch in axes.patches])],
        "patch_colors": colors_of(axes.patches),
        "collections": [collection_of(each) for each in axes.collections],
        "images": [
            [numbers_of(each.get_array()), numbers_of(each.get_extent()), numbers_of(each.get_clim())]
            for each in axes.images
        ],
        "texts": [text_of(text) for text in axes.texts],
        "legend": legend_of(axes.get_legend()),
    }


def looks_of(drawn: Any) -> Any:
    """Return what can be read off a figure; of SVG, the words and the numbers in it."""
    if isinstance(drawn, str):
        return [NUMBER.sub("N", drawn), NUMBER.findall(drawn)]
    title, figure = drawn
    return short([title, numbers_of(figure.get_size_inches()), [axes_of(axes) for axes in figure.axes]])
