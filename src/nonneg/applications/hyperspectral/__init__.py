"""Hyperspectral images: endmembers, abundance maps, spectral libraries, previews."""

from __future__ import annotations

from nonneg.applications.hyperspectral.library import LibraryMatch, SpectralLibrary, read_library
from nonneg.applications.hyperspectral.n_endmembers import estimate_n_endmembers
from nonneg.applications.hyperspectral.preview import rgb_preview
from nonneg.applications.hyperspectral.unmixing import Unmixing
from nonneg.io.cube import Cube, read_cube, write_maps

__all__ = [
    "Cube",
    "LibraryMatch",
    "SpectralLibrary",
    "Unmixing",
    "estimate_n_endmembers",
    "read_cube",
    "read_library",
    "rgb_preview",
    "write_maps",
]
