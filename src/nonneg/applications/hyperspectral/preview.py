"""Color preview of a hyperspectral image."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.io.cube import as_cube, in_nanometers

SEEN = (640.0, 550.0, 460.0)
"""The wavelengths in nanometers that are shown as red, green and blue."""


def rgb_preview(cube: Any, *, mask: Any = None) -> Any:
    """Return a picture of three bands.

    Parameters
    ----------
    cube : Cube, path or array of shape (n_rows, n_columns, n_bands)
        The hyperspectral image; only three of its bands are read.
    mask : array of bool of shape (n_rows, n_columns), optional
        False for pixels without data, which are shown in gray.

    Returns
    -------
    array of uint8 of shape (n_rows, n_columns, 3)
        The bands nearest to 640, 550 and 460 nm if wavelengths are known, and otherwise three that are spread
        over the spectrum, all among the bands that are used. Each is stretched from its second to its 98th
        percentile.
    """
    scene = as_cube(cube)
    rows, columns, n_bands = scene.shape
    keep = np.ones((rows, columns), bool) if mask is None else np.asarray(mask, dtype=bool)
    picture = np.full((rows, columns, 3), 128, dtype=np.uint8)
    for place, band in enumerate(preview_bands(scene.wavelengths, n_bands, scene.bands)):
        plane = np.asarray(scene.values[:, :, band], dtype=np.float64)
        shown = keep & np.isfinite(plane)
        if not shown.any():
            continue
        low, high = np.percentile(plane[shown], (2, 98))
        level = (plane[shown] - low) / (high - low if high > low else 1.0)
        picture[:, :, place][shown] = np.round(255 * np.clip(level, 0, 1)).astype(np.uint8)
    return picture


def preview_bands(wavelengths: Any, n_bands: int, bands: Any = None) -> tuple[int, int, int]:
    """Choose the bands that are shown as red, green and blue."""
    among = np.arange(n_bands) if bands is None else np.flatnonzero(bands)
    chosen = np.round(np.array([5, 3, 1]) / 6 * (len(among) - 1)).astype(int)
    if wavelengths is not None:
        places = in_nanometers(wavelengths)[among]
        nearest = np.array([np.abs(places - seen).argmin() for seen in SEEN])
        if (np.abs(places[nearest] - SEEN) < 40).all():
            chosen = nearest
    red, green, blue = among[chosen].tolist()
    return red, green, blue
