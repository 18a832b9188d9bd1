"""Images as PNG files inside a page."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from nonneg._optional import import_optional


def picture_png(image: Any, largest: float | None = None, *, colors: str = "gray_r") -> bytes:
    """Encode an image pixel by pixel."""
    matplotlib_image = import_optional("matplotlib.image", extra="report", purpose="Drawing pictures")
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
