"""Figures of a hyperspectral scene."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.report.figures import FAINT, INK, page_figure, svg_text


def spectrum_lines(
    spectra: FloatArray,
    wavelengths: FloatArray | None,
    names: Sequence[str],
    colors: Sequence[str],
    known: FloatArray | None = None,
) -> str:
    """Draw spectra as lines."""
    places = np.arange(spectra.shape[1]) if wavelengths is None else np.asarray(wavelengths)
    order = np.argsort(places, kind="stable")
    places, lines = places[order], np.asarray(spectra, dtype=np.float64)[:, order]
    # Bands that were taken out, such as those of water, leave a gap in the line.
    if len(places) > 2:
        steps = np.diff(places)
        gaps = np.flatnonzero(steps > 5 * np.median(steps)) + 1
        places, lines = np.insert(places.astype(float), gaps, np.nan), np.insert(lines, gaps, np.nan, axis=1)
        order = np.insert(order, gaps, -1)
    figure, axes = page_figure(10.4, 3.8)
    for at, line in enumerate(lines):
        axes.plot(places, line, color=colors[at], linewidth=2, label=names[at])
        if known is not None and np.isfinite(known[at]).any():
            beside = _scaled_like(np.where(order >= 0, np.asarray(known)[at, order], np.nan), line)
            axes.plot(places, beside, color=colors[at], linewidth=1.4, linestyle=(0, (4, 3)))
    axes.set_xlabel("band" if wavelengths is None else "wavelength, nm", color=INK)
    axes.set_ylabel("value", color=INK)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    legend = axes.legend(fontsize=9, frameon=False, ncols=max(1, min(4, -(-len(names) // 6))), labelcolor=INK)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return svg_text(figure, "Spectra of the endmembers")


def marked_scene(
    address: str, shape: Sequence[int], pixels: Sequence[Sequence[int]], colors: Sequence[str]
) -> str:
    """Draw a picture of the scene with rings around pixels."""
    rows, columns = shape[0], shape[1]
    size = max(rows, columns) / 45
    parts = [
        f'<svg role="img" aria-label="The scene with its pure pixels" viewBox="0 0 {columns} {rows}" '
        f'preserveAspectRatio="xMidYMid meet"><image href="{address}" width="{columns}" height="{rows}" '
        'preserveAspectRatio="none"/>'
    ]
    centers = [(column + 0.5, row + 0.5) for row, column in pixels]
    labels = _label_places(centers, size, columns, rows)
    for number, ((x, y), (left, low), color) in enumerate(zip(centers, labels, colors, strict=True)):
        ring = f'cx="{x:g}" cy="{y:g}" r="{size:g}" fill="none"'
        parts.append(
            f'<circle {ring} stroke="#ffffff" stroke-width="{0.75 * size:g}"/>'
            f'<circle {ring} stroke="{color}" stroke-width="{0.4 * size:g}"/>'
            f'<text x="{left:g}" y="{low:g}" font-size="{2.4 * size:g}" font-weight="700" '
            f'fill="#ffffff" stroke="#000000" stroke-width="{0.45 * size:g}" paint-order="stroke">{number}'
            "</text>"
        )
    return "".join([*parts, "</svg>"])


def _label_places(
    centers: Sequence[tuple[float, float]], size: float, columns: int, rows: int
) -> list[tuple[float, float]]:
    """Place the number of each ring beside it, where the picture has room and nothing else stands."""
    taken = [(x - 1.4 * size, y - 1.4 * size, x + 1.4 * size, y + 1.4 * size) for x, y in centers]
    places = []
    for number, (x, y) in enumerate(centers):
        width, height = 1.6 * size * len(str(number)), 1.9 * size
        right, left = x + 1.8 * size, x - 1.8 * size - width
        # Beside a ring at the edge of the picture the number is moved inwards.
        beside = min(max(y + 0.7 * size, height), rows)
        middle = min(max(x - width / 2, 0.0), columns - width)
        above, below = y - 1.9 * size, y + 1.9 * size + height
        offered = [(right, beside), (left, beside), (middle, above), (middle, below)]
        boxes = [(at, low - height, at + width, low) for at, low in offered]
        inside = [
            box for box in boxes if box[0] >= 0 and box[1] >= 0 and box[2] <= columns and box[3] <= rows
        ]
        free = [box for box in inside if not any(_overlap(box, other) for other in taken)]
        box = (free or inside or boxes)[0]
        taken.append(box)
        places.append((box[0], box[3]))
    return places


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _scaled_like(line: Any, other: Any) -> Any:
    """Give a spectrum the brightness of another, where both are known."""
    both = np.isfinite(line) & np.isfinite(other)
    size = float(line[both] @ line[both])
    return line * (float(line[both] @ other[both]) / size if size > 0 else 1.0)
