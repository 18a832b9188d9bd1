"""Abundance maps as ENVI images or NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arrays import write_npy
from nonneg.exceptions import FileFormatError, OutputError, ShapeError
from nonneg.io.envi import write_envi


def write_maps(
    path: str | os.PathLike[str],
    maps: Any,
    names: Sequence[str] | None = None,
    *,
    georeference: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write abundance maps.

    Parameters
    ----------
    path : path
        ``NAME.npy`` for a NumPy array, ``NAME.hdr`` for an ENVI image with one band per map.
    maps : array of shape (n_rows, n_columns, n_endmembers)
        The maps; NaN for pixels without data.
    names : sequence of str, optional
        The names of the endmembers, for the header of an ENVI image.
    georeference : mapping of str to Any, optional
        The georeference for the header of an ENVI image: `Cube.georeference` of the image.

    Returns
    -------
    list of pathlib.Path
        The files that were written.
    """
    place, planes = Path(path), np.asarray(maps)
    if planes.ndim != 3:
        raise ShapeError(f"Expected maps of shape (rows, columns, endmembers), got {planes.shape}.")
    labels = [f"endmember {at}" for at in range(planes.shape[2])] if names is None else list(names)
    if len(labels) != planes.shape[2]:
        raise ShapeError(f"Expected {planes.shape[2]} names, one per map, got {len(labels)}.")
    if place.suffix.lower() == ".hdr":
        return write_envi(
            place, planes, labels, description="abundances of endmembers", georeference=georeference
        )
    if place.suffix.lower() != ".npy":
        raise FileFormatError(f"Expected a name that ends in .npy or .hdr, got {place.name}.")
    try:
        write_npy(place, planes)
    except OSError as error:
        raise OutputError(f"{place} could not be written: {error.strerror or error}.") from error
    return [place]
