"""Reader and writer of ENVI files: a text header next to a file of plain numbers, through `spectral`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import BoolArray, FloatArray
from nonneg.exceptions import FileFormatError, NonnegWarning, OutputError

_PLACE = ("map info", "coordinate system string", "projection info", "geo points", "x start", "y start")
"""Entries of a header that say where on the ground an image lies."""
_INTERLEAVES = ("bsq", "bil", "bip", "BSQ", "BIL", "BIP")
_DELETED = -1e30
"""Libraries write numbers below this one where there is no value: -1.23e34, by the U.S. Geological Survey."""
_NANOMETERS = {
    "nm": 1.0, "nanometer": 1.0, "angstrom": 0.1,
    "um": 1e3, "\N{MICRO SIGN}m": 1e3, "\N{GREEK SMALL LETTER MU}m": 1e3, "micrometer": 1e3, "micron": 1e3,
}  # fmt: skip
"""How many nanometers a unit of a header is, in the singular and in American spelling."""
_NO_LENGTHS = ("index", "ghz", "mhz", "wavenumber")
"""Units of a header under which numbers of bands or frequencies are listed."""
_MICROMETERS = (0.1, 100.0)
"""No sensor has bands so near to zero in nanometers: numbers in this range are micrometers."""


def header_of(path: Path) -> Path | None:
    """Return the header that belongs to a file."""
    if path.suffix.lower() == ".hdr":
        return path
    for ending in (".hdr", ".HDR"):
        for candidate in (path.with_name(path.name + ending), path.with_suffix(ending)):
            if candidate.is_file():
                return candidate
    return None


def read_envi(path: Path, *, all_bands: bool = False) -> dict[str, Any]:
    """Open an image; return the fields of a `Cube`, whose values are mapped from the file, not read."""
    image, entries = _opened(path, "open_memmap", "is a library of spectra, not an image")
    size = image.nrows * image.ncols * image.nbands * np.dtype(image.dtype).itemsize + image.offset
    length = Path(image.filename).stat().st_size
    if length < size:
        raise FileFormatError(
            f"{image.filename} has {length} bytes, but its header describes {size}. It is truncated; copy it "
            "again."
        )
    scale = _number(entries, "reflectance scale factor", path)
    if scale is not None and not 0 < scale < np.inf:
        raise FileFormatError(
            f"The header of {path} has the reflectance scale factor {scale:g}. Expected a number above zero; "
            "correct it."
        )
    return {
        "values": image.open_memmap(interleave="bip", writable=False),
        "wavelengths": _wavelengths(entries, image.nbands, path),
        "no_data": _number(entries, "data ignore value", path),
        "georeference": {name: entries[name] for name in _PLACE if name in entries},
        "bands": None if all_bands else _good_bands(entries, image.nbands, path),
        "scale": scale or 1.0,
    }


def read_envi_library(path: Path) -> tuple[FloatArray, tuple[str, ...], FloatArray | None]:
    """Read a library of spectra."""
    library, entries = _opened(path, "spectra", "is an image, not a library of spectra")
    spectra = np.array(library.spectra, dtype=np.float64)
    # Zero is a value of a dark spectrum, whatever a header says.
    no_data = _number(entries, "data ignore value", path) or _DELETED
    spectra[(spectra < _DELETED) | (spectra == no_data)] = np.nan
    good = _good_bands(entries, spectra.shape[1], path)
    if good is not None:
        spectra[:, ~good] = np.nan
    return spectra, tuple(map(str, library.names)), _wavelengths(entries, spectra.shape[1], path)


def _opened(path: Path, attribute: str, otherwise: str) -> tuple[Any, Mapping[str, Any]]:
    """Return the library's object, which must have an attribute, and the entries of the header."""
    envi = import_optional("spectral.io.envi", extra="hyperspectral", purpose="Reading ENVI files")
    header = header_of(path)
    if header is None or not header.is_file():
        raise FileFormatError(f"Expected the header {path.name}.hdr next to {path}, but it is not there.")
    try:
        with warnings.catch_warnings():
            # Names of entries in capitals, which many sensors write, are read all the same.
            warnings.simplefilter("ignore")
            entries = envi.read_envi_header(str(header))
            if (order := str(entries.get("interleave", "bsq"))) not in _INTERLEAVES:
                # Any other word would be read as bsq, and the scene be scrambled.
                raise FileFormatError(
                    f"The header {header} has the interleave {order!r}. Expected bsq, bil or bip; correct it."
                )
            # The header is what was asked for where both are given; the numbers are looked for beside it.
            image = envi.open(str(header), None if path == header else str(path))
    except envi.EnviDataFileNotFoundError as error:
        raise FileFormatError(
            f"The numbers that {header} describes are not in the same folder: expected {header.stem} with no "
            "ending, .img, .dat, .sli, .raw, .bin or its interleave. Put them there, or pass the file of "
            "numbers itself."
        ) from error
    except FileFormatError:
        raise
    except Exception as error:  # the library raises kinds of its own, and bare ones
        reason = str(error).rstrip(".") or type(error).__name__
        raise FileFormatError(f"{path} could not be read as an ENVI file: {reason}.") from error
    if not hasattr(image, attribute):
        raise FileFormatError(f"{path} {otherwise} (file type in its header).")
    return image, entries


def _number(entries: Mapping[str, Any], name: str, path: Path) -> float | None:
    """Return an entry of a header that is a number."""
    if name not in entries:
        return None
    try:
        return float(entries[name])
    except (TypeError, ValueError) as error:
        raise FileFormatError(
            f"The header of {path} has the {name} {entries[name]!r}, which is not a number. Correct it."
        ) from error


def _of_bands(entries: Mapping[str, Any], name: str, n_bands: int) -> tuple[FloatArray, str]:
    """Return a list of a header with a number for each band, and what is wrong with it."""
    listed = [entries[name]] if isinstance(entries[name], str) else list(entries[name])
    listed = listed[:-1] if listed[-1:] == [""] else listed  # after a comma at the end
    try:
        numbers = np.asarray(listed, dtype=np.float64)
    except ValueError:
        numbers = np.full(len(listed), np.nan)
    if len(numbers) != n_bands:
        return numbers, f"has {len(numbers)} entries, but there are {n_bands} bands"
    return numbers, "" if np.isfinite(numbers).all() else "has entries that are not numbers"


def _good_bands(entries: Mapping[str, Any], n_bands: int, path: Path) -> BoolArray | None:
    """Return which bands the list of bad bands of a header (``bbl``) leaves; None for all."""
    if entries.get("bbl") is None:
        return None
    factors, fault = _of_bands(entries, "bbl", n_bands)
    if not (fault or factors.any()):
        fault = f"flags all {n_bands} bands as bad: 0 is bad, 1 is good"
    if fault:
        raise FileFormatError(
            f"The list of bad bands (bbl) in the header of {path} {fault}. Correct it, or keep all bands "
            "with bands='all' (--all-bands)."
        )
    return None if factors.all() else factors != 0


def _wavelengths(entries: Mapping[str, Any], n_bands: int, path: Path) -> FloatArray | None:
    """Return the wavelengths that a header lists, in nanometers."""
    unit = str(entries.get("wavelength units", "")).strip().lower()
    if "wavelength" not in entries or unit in _NO_LENGTHS:
        return None
    places, fault = _of_bands(entries, "wavelength", n_bands)
    if fault:
        warnings.warn(
            f"The wavelengths in the header of {path} are not used: the list {fault}. Correct it, or pass "
            "wavelengths= (--wavelengths).",
            NonnegWarning,
            stacklevel=3,
        )
        return None
    factor = _NANOMETERS.get(unit.removesuffix("s").replace("metre", "meter"))
    return in_nanometers(places) if factor is None else places * factor


def in_nanometers(wavelengths: Any) -> FloatArray:
    """Return wavelengths in nanometers, whichever of the two usual units they are in."""
    places = np.asarray(wavelengths, dtype=np.float64)
    low, high = _MICROMETERS
    return 1e3 * places if places.size and ((places >= low) & (places < high)).all() else places


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
