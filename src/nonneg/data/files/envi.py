"""Reader and writer of ENVI files: a text header beside a file of plain numbers, through `spectral`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import FileFormatError, OutputError

NANOMETRES = {
    "nm": 1.0,
    "nanometer": 1.0,
    "nanometers": 1.0,
    "nanometre": 1.0,
    "nanometres": 1.0,
    "um": 1000.0,
    "micrometer": 1000.0,
    "micrometers": 1000.0,
    "micrometre": 1000.0,
    "micrometres": 1000.0,
    "micron": 1000.0,
    "microns": 1000.0,
}
"""How many nanometres a unit of a header is."""
PLACE = ("map info", "coordinate system string", "projection info", "geo points", "x start", "y start")
"""Entries of a header that say where on the ground an image lies."""


@dataclass(frozen=True)
class EnviImage:
    """What an ENVI image holds.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns, n_bands)
        Mapped from the file, not read; the order in the file does not matter.
    wavelengths : array of shape (n_bands,) or None
        In nanometres where the header says a unit that is known, else as they are.
    no_data : float or None
        The value of pixels without data.
    names : tuple of str
        The names of the bands.
    georeference : mapping of str to Any
        What the header says of where the image lies, as it is written there.
    """

    values: Any
    wavelengths: FloatArray | None
    no_data: float | None
    names: tuple[str, ...]
    georeference: Mapping[str, Any] = field(default_factory=dict)


def header_of(path: Path) -> Path | None:
    """Return the header that belongs to a file.

    Parameters
    ----------
    path : Path
        The header itself, or the file of numbers.

    Returns
    -------
    Path or None
        None where there is none.
    """
    if path.suffix.lower() == ".hdr":
        return path
    for candidate in (path.with_name(path.name + ".hdr"), path.with_suffix(".hdr")):
        if candidate.is_file():
            return candidate
    return None


def read_envi(path: Path) -> EnviImage:
    """Open an image.

    Parameters
    ----------
    path : Path
        The header or the file of numbers.

    Returns
    -------
    EnviImage
        Its numbers are mapped, so that opening costs nothing.

    Raises
    ------
    FileFormatError
        If there is no header, or the two do not fit.
    MissingDependencyError
        If `spectral` is not installed.
    """
    envi = import_optional("spectral.io.envi", extra="scenes", purpose="Reading ENVI files")
    header = header_of(path)
    if header is None or not header.is_file():
        raise FileFormatError(f"Expected the header {path.name}.hdr beside {path}, and it is not there.")
    try:
        # The header is what was asked for where both are given; the numbers are looked for beside it.
        image = envi.open(str(header), None if path == header else str(path))
        if not hasattr(image, "open_memmap"):
            raise FileFormatError(f"{path} is a library of spectra, not an image. Pass it as the library.")
        size = image.nrows * image.ncols * image.nbands * np.dtype(image.dtype).itemsize + image.offset
        if Path(image.filename).stat().st_size < size:
            raise FileFormatError(
                f"{image.filename} has {Path(image.filename).stat().st_size} bytes, and its header describes "
                f"{size}. It is cut short; copy it again."
            )
        values = image.open_memmap(interleave="bip", writable=False)
    except FileFormatError:
        raise
    except Exception as error:  # the library raises kinds of its own, and bare ones
        raise FileFormatError(
            f"{path} could not be read as an ENVI image: {str(error).rstrip('.') or type(error).__name__}."
        ) from error
    metadata = image.metadata
    return EnviImage(
        values,
        wavelengths_of(metadata, image.nbands),
        _no_data(metadata, path),
        tuple(map(str, metadata.get("band names", ()))),
        {name: metadata[name] for name in PLACE if name in metadata},
    )


def _no_data(metadata: Mapping[str, Any], path: Path) -> float | None:
    listed = metadata.get("data ignore value")
    if listed is None:
        return None
    try:
        return float(listed)
    except (TypeError, ValueError) as error:
        raise FileFormatError(
            f"The header of {path} has the data ignore value {listed!r}, which is no number. Correct it."
        ) from error


def wavelengths_of(metadata: Mapping[str, Any], n_bands: int) -> FloatArray | None:
    """Return the wavelengths that a header lists.

    Parameters
    ----------
    metadata : mapping
        The entries of the header.
    n_bands : int
        How many bands there are.

    Returns
    -------
    array of shape (n_bands,) or None
        In nanometres where the unit is known; None where they are not all numbers.
    """
    listed = metadata.get("wavelength")
    if listed is None or len(listed) != n_bands:
        return None
    factor = NANOMETRES.get(str(metadata.get("wavelength units", "")).strip().lower(), 1.0)
    try:
        return np.asarray(listed, dtype=np.float64) * factor
    except ValueError:
        return None


def read_envi_library(path: Path) -> tuple[FloatArray, tuple[str, ...], FloatArray | None]:
    """Read a library of spectra.

    Parameters
    ----------
    path : Path
        The header or the file of numbers.

    Returns
    -------
    tuple
        The spectra, one a row, their names, and the wavelengths.

    Raises
    ------
    FileFormatError
        If it is no library.
    """
    envi = import_optional("spectral.io.envi", extra="scenes", purpose="Reading ENVI files")
    header = header_of(path)
    if header is None or not header.is_file():
        raise FileFormatError(f"Expected the header {path.name}.hdr beside {path}, and it is not there.")
    try:
        library = envi.open(str(header), None if path == header else str(path))
        spectra = np.asarray(library.spectra, dtype=np.float64)
    except Exception as error:
        raise FileFormatError(f"{path} could not be read as an ENVI library of spectra: {error}.") from error
    listed = library.bands.centers
    bands = {"wavelength": listed, "wavelength units": library.bands.band_unit or ""}
    return spectra, tuple(map(str, library.names)), wavelengths_of(bands, spectra.shape[1])


def write_envi(
    path: Path,
    values: Any,
    names: Sequence[str],
    *,
    wavelengths: Any = None,
    description: str = "",
    georeference: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write an image, one plane a name.

    Parameters
    ----------
    path : Path
        The header, which ends in ``.hdr``; the numbers come beside it, ending in ``.img``.
    values : array of shape (n_rows, n_columns, n_planes)
        The numbers; NaN stands for no data.
    names : sequence of str
        The names of the planes; commas and braces, which headers cannot hold, become spaces.
    wavelengths : array of shape (n_planes,), optional
        In nanometres.
    description : str, optional
        For the header.
    georeference : mapping of str to Any, optional
        Further entries of the header, as `EnviImage.georeference` has them.

    Returns
    -------
    list of Path
        The two files.
    """
    envi = import_optional("spectral.io.envi", extra="scenes", purpose="Writing ENVI files")
    plain = [str(name).translate(str.maketrans(",{}\n", "    ")).strip() for name in names]
    metadata: dict[str, Any] = {**(georeference or {}), "band names": plain, "description": description}
    if np.isnan(values).any():
        metadata["data ignore value"] = "nan"
    if wavelengths is not None:
        metadata |= {"wavelength": [f"{value:g}" for value in wavelengths], "wavelength units": "nm"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            envi.save_image(
                str(path), np.asarray(values), interleave="bsq", ext="img", force=True, metadata=metadata
            )
    except OSError as error:
        raise OutputError(f"{path} could not be written: {error.strerror or error}.") from error
    return [path, path.with_suffix(".img")]
