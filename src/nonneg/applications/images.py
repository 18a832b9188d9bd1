"""Components as pictures: one PNG per component for pages, or a grid of them in one file."""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import OutputError, ShapeError

_INK = "#222222"
PURPOSE = "Drawing pictures"


class Picture:
    """A PNG file that a notebook shows by itself."""

    def __init__(self, png: bytes) -> None:
        self.png = png

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"Picture({len(self.png)} bytes; save(path) writes it)"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file."""
        place = Path(path)
        try:
            place.write_bytes(self.png)
        except OSError as error:
            raise OutputError(f"{place} could not be written: {error.strerror or error}.") from error
        return place


def show_components(
    components: Any,
    shape: tuple[int, int],
    *,
    labels: Sequence[str] | None = None,
    n_columns: int | None = None,
    columns_first: bool = False,
) -> Picture:
    """Show components as a grid of pictures, each white where it is largest.

    Parameters
    ----------
    components : array of shape (n_components, height * width)
        One picture per row, such as `components_` of a fit, or a fitted estimator.
    shape : tuple of int
        Height and width of a picture.
    labels : sequence of str, optional
        Titles of the pictures; numbers by default.
    n_columns : int, optional
        Number of columns; None makes the grid about square.
    columns_first : bool, default False
        Whether the pixels of a picture are stored column by column, as in MATLAB.

    Returns
    -------
    Picture
        Displayed by notebooks; ``save(path)`` writes a file.
    """
    rows = np.asarray(getattr(components, "components_", components))
    height, width = (int(side) for side in shape)
    if rows.ndim != 2 or rows.shape[1] != height * width or not len(rows):
        raise ShapeError(
            f"Expected components of {height} x {width} = {height * width} pixels, one per row, got an array "
            f"of shape {rows.shape}."
        )
    order = "F" if columns_first else "C"
    pictures = [row.reshape(height, width, order=order) for row in rows]
    names = [str(at) for at in range(len(rows))] if labels is None else [str(label) for label in labels]
    if len(names) != len(rows):
        raise ShapeError(f"Expected {len(rows)} labels, one per component, got {len(names)}.")
    beside = max(1, min(n_columns or math.ceil(math.sqrt(len(rows))), len(rows)))
    lines = range(0, len(rows), beside)
    return Picture(
        picture_grid(
            [pictures[at : at + beside] for at in lines], titles=[names[at : at + beside] for at in lines]
        )
    )


def picture_png(image: Any, largest: float | None = None, *, colors: str = "gray_r") -> bytes:
    """Encode an image pixel by pixel."""
    matplotlib_image = import_optional("matplotlib.image", extra="report", purpose=PURPOSE)
    values, stream = np.asarray(image), io.BytesIO()
    if largest is None:
        finite = values[np.isfinite(values)]
        largest = float(finite.max()) if finite.size else 0.0
    matplotlib_image.imsave(
        stream, values, cmap=colors, vmin=0.0, vmax=largest if largest > 0 else 1.0, format="png"
    )
    return stream.getvalue()


def data_address(png: bytes) -> str:
    """Return an address that holds a picture itself, for pages in one file."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def picture_grid(
    images: Sequence[Sequence[FloatArray]],
    *,
    titles: Sequence[Sequence[str]] = (),
    row_labels: Sequence[str] = (),
) -> bytes:
    """Draw a grid of pictures, white for the largest entry of each."""
    module = import_optional("matplotlib.figure", extra="report", purpose=PURPOSE)
    n_rows, n_columns = len(images), max(len(row) for row in images)
    height, width = np.shape(images[0][0])
    figure = module.Figure(
        figsize=(
            1.2 * n_columns + (1.0 if row_labels else 0.1),
            (1.2 * height / width + 0.1) * n_rows + 0.2 * len(titles) + 0.3,
        ),
        layout="constrained",
        facecolor="white",
    )
    text = {"fontsize": 9, "color": _INK, "parse_math": False}
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for i, row in enumerate(grid):
        for j, axes in enumerate(row):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if j < len(images[i]):
                picture = np.asarray(images[i][j])
                largest = float(np.max(picture, where=np.isfinite(picture), initial=0.0)) or 1.0
                axes.imshow(picture, cmap="gray", vmin=0.0, vmax=largest, interpolation="nearest")
            if i < len(titles) and j < len(titles[i]):
                axes.set_title(titles[i][j], **text)
        if i < len(row_labels):
            row[0].set_ylabel(row_labels[i], rotation=0, ha="right", va="center", **text)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return stream.getvalue()
