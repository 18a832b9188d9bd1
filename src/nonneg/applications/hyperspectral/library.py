"""Spectral libraries, and the spectra in them that match an endmember."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError
from nonneg.io.cube import header_of, in_nanometers, read_envi_library
from nonneg.io.read import read_table, read_with
from nonneg.metrics import spectral_angles


@dataclass(frozen=True)
class SpectralLibrary:
    """Spectra of known materials.

    Attributes
    ----------
    names : tuple of str
        Names of the materials.
    spectra : array of shape (n_materials, n_bands)
        One spectrum per row.
    wavelengths : array of shape (n_bands,) or None
        Wavelengths in increasing order; needed if an image has other bands.
    """

    names: tuple[str, ...]
    spectra: FloatArray
    wavelengths: FloatArray | None = None

    def __post_init__(self) -> None:
        spectra = np.asarray(self.spectra, dtype=np.float64)
        object.__setattr__(self, "spectra", spectra)
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        if spectra.ndim != 2 or len(self.names) != len(spectra):
            raise ShapeError(
                f"Expected one spectrum per row for each of {len(self.names)} names, got an array of shape "
                f"{spectra.shape}."
            )
        if self.wavelengths is None:
            return
        places = np.asarray(self.wavelengths, dtype=np.float64)
        object.__setattr__(self, "wavelengths", places)
        if places.shape != spectra.shape[1:] or not (np.diff(places) > 0).all():
            raise ShapeError(
                f"Expected {spectra.shape[1]} increasing wavelengths, got {places.shape} of them."
            )

    def at(self, wavelengths: Any, bands: Any) -> FloatArray:
        """Return the spectra in the bands of an image.

        Parameters
        ----------
        wavelengths : array of shape (n_used_bands,) or None
            Wavelengths of the bands of the image that are used.
        bands : array of bool of shape (n_bands,)
            Which bands of the image are used.

        Returns
        -------
        array of shape (n_materials, n_used_bands)
            Linearly interpolated if the wavelengths differ, each in nanometers or micrometers; NaN outside
            the range of the library. Without wavelengths, a library with all bands of the image or with those
            that are used.
        """
        used, n_bands = np.asarray(bands, dtype=bool), self.spectra.shape[1]
        if self.wavelengths is not None and wavelengths is not None:
            places, own = in_nanometers(wavelengths), in_nanometers(self.wavelengths)
            known = np.array([np.interp(places, own, row, left=np.nan, right=np.nan) for row in self.spectra])
        elif n_bands in (used.sum(), used.size):
            known = self.spectra if n_bands == used.sum() else self.spectra[:, used]
        else:
            raise ShapeError(
                f"The library has {n_bands} bands and the image {used.sum()}, but one of them has no "
                "wavelengths by which to match them. Pass wavelengths= for both."
            )
        if np.isfinite(known).all(axis=0).sum() < 2:
            raise InvalidParameterError(
                "The library and the image share fewer than two bands in which every spectrum has a value: "
                "their wavelengths do not overlap (check that both are in the same unit), or spectra contain "
                "NaN."
            )
        return known


@dataclass(frozen=True)
class LibraryMatch:
    """The materials of a library that match spectra.

    Attributes
    ----------
    names : tuple of str
        The name of each spectrum, each name at most once; "" if the library has too few.
    angles : array of shape (n_found,)
        The spectral angles of these pairs in degrees; NaN if there is none.
    chosen : array of int of shape (n_found,)
        Which material each one is; -1 for none.
    """

    names: tuple[str, ...]
    angles: FloatArray
    chosen: IntArray


def match_library(
    endmembers: FloatArray, library: SpectralLibrary | str | os.PathLike[str], wavelengths: Any, bands: Any
) -> LibraryMatch:
    """Assign spectra to materials, each material once: the pairs with the smallest sum of angles."""
    spectra = library if isinstance(library, SpectralLibrary) else read_library(library)
    known = spectra.at(wavelengths, bands)
    covered = np.isfinite(known).all(axis=0)
    angles = spectral_angles(np.asarray(endmembers, dtype=np.float64)[:, covered], known[:, covered])
    rows, columns = linear_sum_assignment(angles)
    chosen, pairs = np.full(len(angles), -1, dtype=np.intp), np.full(len(angles), np.nan)
    chosen[rows], pairs[rows] = columns, angles[rows, columns]
    return LibraryMatch(tuple(spectra.names[at] if at >= 0 else "" for at in chosen), pairs, chosen)


def read_library(path: str | os.PathLike[str]) -> SpectralLibrary:
    """Read a spectral library.

    Parameters
    ----------
    path : path
        A .csv file whose first column contains wavelengths (or band numbers, if it is called ``band``) and
        whose header names the materials in the other columns; or an ENVI library.

    Returns
    -------
    SpectralLibrary
        With increasing wavelengths.
    """
    place = Path(path)
    if not place.is_file():
        raise FileFormatError(f"{place} does not exist. Expected a spectral library: .csv or ENVI.")
    if place.suffix.lower() == ".csv":
        table = read_table(place, header=True, index=False)
        columns = table.column_names or ()
        if len(columns) < 2:
            raise FileFormatError(
                f"{place} is not a spectral library: it has a single column. Expected a header with names, "
                "then rows of numbers that begin with the wavelength."
            )
        # Band numbers, as in the file of an image without wavelengths, are not wavelengths.
        numbered = columns[0].lower() in ("band", "bands")
        names, spectra = tuple(columns[1:]), table.X[:, 1:].T
        wavelengths = None if numbered else table.X[:, 0]
    elif header_of(place) is not None:
        spectra, names, wavelengths = read_with("an ENVI library", place, lambda: read_envi_library(place))
    else:
        raise FileFormatError(f"{place} has an unknown ending. Expected .csv or an ENVI library.")
    if wavelengths is not None:
        order = np.argsort(wavelengths, kind="stable")
        spectra, wavelengths = np.asarray(spectra)[:, order], np.asarray(wavelengths)[order]
    return SpectralLibrary(names, spectra, wavelengths)
