"""Reader and writer of ENVI files: a text header next to a file of plain numbers, through `spectral`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import BoolArray, FloatArray
from nonneg.exceptions import FileFormatError, NonnegWarning, OutputError

PLACE = ("map info", "coordinate system string", "projection info", "geo points", "x start", "y start")
"""Entries of a header that say where on the ground an image lies."""
ENDINGS = (".img", ".dat", ".sli", ".bsq", ".bil", ".bip", ".raw", ".bin")
"""Of files of numbers, looked for in this order."""
INTERLEAVES = ("bsq", "bil", "bip")
DELETED = -1e30
"""Libraries write numbers below this one where there is no value: -1.23e34, by the U.S. Geological Survey."""
_CURE = "Correct it, or keep all bands with bands='all' (--all-bands)."


@dataclass(frozen=True)
class EnviImage:
    """What an ENVI image holds."""

    values: Any  # mapped from the file, not read; the order in the file does not matter
    # In nanometers where the header says a unit that is known, else as they are.
    wavelengths: FloatArray | None
    no_data: float | None  # the value of pixels without data
    names: tuple[str, ...]  # the names of the bands
    # What the header says of where the image lies, as it is written there.
    georeference: Mapping[str, Any] = field(default_factory=dict)
    # False for bands that the header flags as bad (``bbl``); None where it flags none.
    bands: BoolArray | None = None
    scale: float = 1.0  # the values divided by it are reflectances: the header's ``reflectance scale factor``


def header_of(path: Path) -> Path | None:
    """Return the header that belongs to a file."""
    if path.suffix.lower() == ".hdr":
        return path
    for ending in (".hdr", ".HDR"):
        for candidate in (path.with_name(path.name + ending), path.with_suffix(ending)):
            if candidate.is_file():
                return candidate
    return None


def numbers_of(header: Path) -> Path:
    """Return the file of numbers that belongs to a header."""
    for ending in ("", *ENDINGS, *map(str.upper, ENDINGS)):
        candidate = header.with_suffix(ending)
        if candidate.is_file():
            return candidate
    raise FileFormatError(
        f"The numbers that {header} describes are not in the same folder: expected {header.stem} with no "
        f"ending or "
        f"{', '.join(ENDINGS)}. Put them there, or pass the file of numbers itself."
    )


def read_envi(path: Path, *, all_bands: bool = False) -> EnviImage:
    """Open an image."""
    envi = import_optional("spectral.io.envi", extra="hyperspectral", purpose="Reading ENVI files")
    header = header_of(path)
    if header is None or not header.is_file():
        raise FileFormatError(f"Expected the header {path.name}.hdr next to {path}, but it is not there.")
    try:
        # The header is what was asked for where both are given; the numbers are looked for beside it.
        image = _opened(envi, header, path)
        if not hasattr(image, "open_memmap"):
            raise FileFormatError(f"{path} is a library of spectra, not an image. Pass it as the library.")
        size = image.nrows * image.ncols * image.nbands * np.dtype(image.dtype).itemsize + image.offset
        if Path(image.filename).stat().st_size < size:
            raise FileFormatError(
                f"{image.filename} has {Path(image.filename).stat().st_size} bytes, but its header "
                f"describes {size}. It is truncated; copy it again."
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
        _told_wavelengths(metadata, image.nbands, path),
        _no_data(metadata, path),
        tuple(map(str, metadata.get("band names", ()))),
        {name: metadata[name] for name in PLACE if name in metadata},
        None if all_bands else good_bands(metadata, image.nbands, path),
        _scale(metadata, path),
    )


def _opened(envi: Any, header: Path, path: Path) -> Any:
    with warnings.catch_warnings():
        # Names of entries in capitals, which many sensors write, are read all the same.
        warnings.simplefilter("ignore")
        entries = envi.read_envi_header(str(header))
        order = str(entries.get("interleave", "bsq"))
        # Any other word would be read as bsq, and the scene be scrambled.
        if order not in INTERLEAVES and order not in map(str.upper, INTERLEAVES):
            raise FileFormatError(
                f"The header {header} has the interleave {order!r}. Expected bsq, bil or bip; correct it."
            )
        return envi.open(str(header), str(numbers_of(header) if path == header else path))


def _header(envi: Any, header: Path) -> Mapping[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries: Mapping[str, Any] = envi.read_envi_header(str(header))
    return entries


def _told_wavelengths(metadata: Mapping[str, Any], n_bands: int, path: Path) -> FloatArray | None:
    found = wavelengths_of(metadata, n_bands)
    unit = str(metadata.get("wavelength units", "")).strip().lower()
    if found is None and "wavelength" in metadata and unit not in NO_LENGTHS:
        count = len(listed_entries(metadata["wavelength"]))
        fault = (
            f"lists {count} for {n_bands} bands" if count != n_bands else "lists some that are not numbers"
        )
        warnings.warn(
            f"The wavelengths in the header of {path} are not used: it {fault}. Correct it, or pass "
            "wavelengths= (--wavelengths).",
            NonnegWarning,
            stacklevel=3,
        )
    return found


def _no_data(metadata: Mapping[str, Any], path: Path) -> float | None:
    listed = metadata.get("data ignore value")
    if listed is None:
        return None
    try:
        return float(listed)
    except (TypeError, ValueError) as error:
        raise FileFormatError(
            f"The header of {path} has the data ignore value {listed!r}, which is not a number. Correct it."
        ) from error


def _scale(metadata: Mapping[str, Any], path: Path) -> float:
    listed = metadata.get("reflectance scale factor", 1.0)
    scale = float(listed)
    if not (math.isfinite(scale) and scale > 0):
        raise FileFormatError(
            f"The header of {path} has the reflectance scale factor {listed}. Expected a number above zero; "
            "correct it."
        )
    return scale


def good_bands(metadata: Mapping[str, Any], n_bands: int, path: Path) -> BoolArray | None:
    """Return which bands the list of bad bands of a header (``bbl``) leaves."""
    listed = metadata.get("bbl")
    if listed is None:
        return None
    entries = listed_entries(listed)
    if len(entries) != n_bands:
        fault = f"has {len(entries)} entries, but there are {n_bands} bands"
        raise FileFormatError(f"The list of bad bands (bbl) in the header of {path} {fault}. {_CURE}")
    try:
        factors = np.asarray(entries, dtype=np.float64)
    except ValueError:
        factors = np.full(n_bands, np.nan)
    if not np.isfinite(factors).all():
        raise FileFormatError(
            f"The list of bad bands (bbl) in the header of {path} has entries that are not numbers. {_CURE}"
        )
    if not factors.any():
        raise FileFormatError(
            f"The list of bad bands (bbl) in the header of {path} flags all {n_bands} bands as bad: 0 is "
            f"bad, 1 is good. {_CURE}"
        )
    return None if factors.all() else factors != 0


def read_envi_library(path: Path) -> tuple[FloatArray, tuple[str, ...], FloatArray | None]:
    """Read a library of spectra."""
    envi = import_optional("spectral.io.envi", extra="hyperspectral", purpose="Reading ENVI files")
    header = header_of(path)
    if header is None or not header.is_file():
        raise FileFormatError(f"Expected the header {path.name}.hdr next to {path}, but it is not there.")
    try:
        library = _opened(envi, header, path)
        if not hasattr(library, "spectra"):
            raise FileFormatError(f"{path} is an image, not a library of spectra (file type in its header).")
        spectra = np.array(library.spectra, dtype=np.float64)
        metadata = _header(envi, header)
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(f"{path} could not be read as an ENVI library of spectra: {error}.") from error
    empty = _no_data(metadata, path)
    # Zero is a value of a dark spectrum, whatever a header says.
    spectra[(spectra < DELETED) | (spectra == (empty or DELETED))] = np.nan
    kept = good_bands(metadata, spectra.shape[1], path)
    if kept is not None:
        spectra[:, ~kept] = np.nan
    return spectra, tuple(map(str, library.names)), wavelengths_of(metadata, spectra.shape[1])


def write_envi(
    path: Path,
    values: Any,
    names: Sequence[str],
    *,
    wavelengths: Any = None,
    description: str = "",
    georeference: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write an image, one plane per name."""
    envi = import_optional("spectral.io.envi", extra="hyperspectral", purpose="Writing ENVI files")
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


NANOMETERS = {
    "nm": 1.0,
    "nanometer": 1.0,
    "nanometers": 1.0,
    "nanometre": 1.0,
    "nanometres": 1.0,
    "um": 1e3,
    "\N{MICRO SIGN}m": 1e3,
    "\N{GREEK SMALL LETTER MU}m": 1e3,
    "micrometer": 1e3,
    "micrometers": 1e3,
    "micrometre": 1e3,
    "micrometres": 1e3,
    "micron": 1e3,
    "microns": 1e3,
    "angstrom": 0.1,
    "angstroms": 0.1,
    "mm": 1e6,
    "millimeters": 1e6,
    "cm": 1e7,
    "centimeters": 1e7,
    "m": 1e9,
    "meters": 1e9,
}
"""How many nanometers a unit of a header is."""
NO_LENGTHS = ("index", "ghz", "mhz")
"""Units of a header under which numbers of bands or frequencies are listed."""
MICROMETERS = (0.1, 100.0)
"""No sensor has bands so near to zero in nanometers: numbers in this range are micrometers."""


def in_nanometers(wavelengths: Any) -> FloatArray:
    """Return wavelengths in nanometers, whichever of the two usual units they are in."""
    places = np.asarray(wavelengths, dtype=np.float64)
    low, high = MICROMETERS
    return 1e3 * places if places.size and ((places >= low) & (places < high)).all() else places


def listed_entries(listed: Any) -> list[Any]:
    """Return the entries of a list in a header."""
    entries = [listed] if isinstance(listed, str) else list(listed)
    return entries[:-1] if entries and entries[-1] == "" else entries


def wavelengths_of(metadata: Mapping[str, Any], n_bands: int) -> FloatArray | None:
    """Return the wavelengths that a header lists."""
    entries = listed_entries(metadata.get("wavelength") or [])
    unit = str(metadata.get("wavelength units", "")).strip().lower()
    if len(entries) != n_bands or unit in NO_LENGTHS:
        return None
    try:
        places = np.asarray(entries, dtype=np.float64)
    except ValueError:
        return None
    if unit == "wavenumber":
        # Waves per centimeter.
        return 1e7 / places if (places > 0).all() else None
    factor = NANOMETERS.get(unit)
    return in_nanometers(places) if factor is None else places * factor
