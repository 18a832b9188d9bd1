"""Hyperspectral cubes: rows x columns x bands, with wavelengths and pixels without data.

They are arrays of NumPy and MATLAB files, or ENVI files: a text header next to a file of plain numbers.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    FileFormatError,
    InvalidDataError,
    OutputError,
    ShapeError,
    as_data_errors,
)
from nonneg.io import matlab, npz
from nonneg.io.read import format_of, read_with
from nonneg.io.table import check_variable, choose_array

_ALLOWED: dict[str, dict[str, Any]] = {
    # Which of rows, columns and bands the axes of the file are.
    "interleave": {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)},
    "data type": {
        "1": "u1", "2": "i2", "3": "i4", "4": "f4", "5": "f8", "12": "u2", "13": "u4", "14": "i8", "15": "u8",
    },
    "byte order": {"0": "<", "1": ">"},
}  # fmt: skip
"""Words and codes of an ENVI header, and what they mean to NumPy."""
_ENDINGS = ("", ".img", ".dat", ".sli", ".raw", ".bin", ".hyspex", ".bsq", ".bil", ".bip")
_PLACE = ("map info", "coordinate system string", "projection info", "geo points", "x start", "y start")
"""Entries of a header that say where on the ground an image lies."""
_DELETED = -1e30
"""Libraries write numbers below this one where there is no value: -1.23e34, by the U.S. Geological Survey."""
_NANOMETERS = {
    "nm": 1.0, "nanometer": 1.0, "angstrom": 0.1,
    "um": 1e3, "\N{MICRO SIGN}m": 1e3, "\N{GREEK SMALL LETTER MU}m": 1e3, "micrometer": 1e3, "micron": 1e3,
}  # fmt: skip
"""Nanometers in a unit of a header, in the singular and in American spelling."""
_NO_LENGTHS = ("index", "ghz", "mhz", "wavenumber")
"""Units of a header under which numbers of bands or frequencies are listed."""
_MICROMETERS = (0.1, 100.0)
"""No sensor has bands so near to zero in nanometers: numbers in this range are micrometers."""
# Names of the axis of bands in images of xarray.
BAND_AXES = {"band", "bands", "wavelength", "wavelengths"}


@dataclass(frozen=True)
class Cube:
    """A scene.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns, n_bands)
        The entries; may be memory-mapped, in any order and with any numeric type.
    wavelengths : array of shape (n_bands,) or None
        Wavelengths of the bands, in nanometers if the source gives units.
    no_data : float or None
        Pixels with this value in every band have no data; it may be NaN.
    source : str
        Where it comes from.
    georeference : mapping of str to str
        Its position on the ground: entries of an ENVI header that are copied to maps of the scene.
    bands : array of bool of shape (n_bands,) or None
        True for bands that are used, False for those that are left out; None for all.
    scale : float
        The entries are divided by it before unmixing; 10000, for example, for reflectances stored as
        integers.
    """

    values: Any
    wavelengths: FloatArray | None = None
    no_data: float | None = None
    source: str = ""
    georeference: Mapping[str, str] = field(default_factory=dict)
    bands: BoolArray | None = None
    scale: float = 1.0
    kept: BoolArray = field(init=False)  # which bands count, one entry per band

    def __post_init__(self) -> None:
        shape, dtype = np.shape(self.values), getattr(self.values, "dtype", np.dtype(object))
        if len(shape) != 3 or 0 in shape:
            raise ShapeError(
                f"Expected a cube of rows x columns x bands, got an array of shape {shape}. To make one "
                f"from pixels in rows, use array.reshape(n_rows, n_columns, n_bands)."
            )
        if dtype.kind not in "buif":
            raise DataTypeError(f"Expected a cube of real numbers, got entries of type {dtype}.")
        lengths = np.zeros(shape[2]) if self.wavelengths is None else np.asarray(self.wavelengths)
        if lengths.shape != shape[2:] or not np.isfinite(lengths).all():
            raise ShapeError(
                f"Expected {shape[2]} wavelengths, finite, one for each band of the file, those that are "
                f"left out among them, got an array of shape {lengths.shape}. Bands come last in the "
                f"cube, which has shape {shape}: np.moveaxis(array, axis, 2) puts them there."
            )
        if not 0 < self.scale < np.inf:
            raise InvalidDataError(f"Expected a (reflectance) scale factor above zero, got {self.scale}.")
        flags = np.ones(shape[2]) if self.bands is None else np.asarray(self.bands)
        if flags.shape != shape[2:] or not np.isin(flags, (0, 1)).all() or not flags.any():
            raise ShapeError(
                f"Expected bands to be 'all' or {shape[2]} entries, True for each band to use (at least "
                f"one) and False for the others, got an array of shape {flags.shape}."
            )
        object.__setattr__(self, "kept", flags.astype(bool))

    @property
    def kept_wavelengths(self) -> FloatArray | None:
        """The wavelengths of the bands that count."""
        return None if self.wavelengths is None else np.asarray(self.wavelengths)[self.kept]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and bands."""
        rows, columns, bands = self.values.shape
        return int(rows), int(columns), int(bands)


def as_cube(cube: Any, *, wavelengths: Any = None, no_data: float | None = None, bands: Any = None) -> Cube:
    """Make a cube of an array, or complete one."""
    if isinstance(cube, str | os.PathLike):
        cube = read_cube(cube, wavelengths=wavelengths, bands=bands)
    with as_data_errors("the cube, wavelengths or no_data"):
        if not isinstance(cube, Cube):
            # Images of xarray name their axes; files of GDAL are read with the bands first.
            for axis in set(getattr(cube, "dims", ())) & BAND_AXES:
                cube = cube.transpose(..., axis)
            # Tensors have another dtype; an image that Spectral Python opened is read by `load` alone.
            if not isinstance(getattr(cube, "dtype", None), np.dtype):
                cube = np.asarray(cube.load() if hasattr(cube, "load") else cube)
            cube = Cube(cube)
        places = cube.wavelengths if wavelengths is None else np.asarray(wavelengths, dtype=np.float64)
        missing = cube.no_data if no_data is None else float(no_data)
    used = cube.bands if bands is None else None if isinstance(bands, str) and bands == "all" else bands
    return replace(cube, wavelengths=places, no_data=missing, bands=used)


def read_cube(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    wavelengths: Any = None,
    no_data: float | None = None,
    bands: Any = None,
) -> Cube:
    """Open a cube.

    Parameters
    ----------
    path : path
        .npy and ENVI files are memory-mapped; .npz and .mat files are read.
    variable : str, optional
        Which array of a .npz or .mat file; not needed if only one has three axes.
    wavelengths : array of shape (n_bands,), optional
        Instead of those in the file (the header, or an array called ``wavelengths``).
    no_data : float, optional
        The value of pixels without data, instead of the header's.
    bands : "all" or array of bool of shape (n_bands,), optional
        True for bands to use, instead of those that the header of an ENVI file does not flag as bad
        (``bbl``), which are left out with a warning that counts them.

    Returns
    -------
    Cube
        Rows x columns x bands.

    Raises
    ------
    FileFormatError
        If the file is missing, damaged or of another type, or its list of bad bands does not match.
    InvalidParameterError
        If `variable` is given for a file of one array.
    """
    place = Path(path)
    if place.suffix.lower() in (".npy", ".npz", ".mat"):
        form = format_of(place)
        check_variable(variable, place, form.words, several=form.several)
        cube = read_with(form.words, place, lambda: _stored_cube(place, variable))
    elif place.is_file() and header_of(place) is not None:
        check_variable(variable, place, "an ENVI image", several=False)
        cube = read_with("an ENVI image", place, lambda: _read_envi(place, wavelengths, bands))
        if n_bad := int((~cube.kept).sum()):
            warnings.warn(
                f"{n_bad} of {cube.shape[2]} bands of {place.name} are left out: its header flags them as "
                "bad (bbl). bands='all' (--all-bands) keeps them.",
                DataChangedWarning,
                stacklevel=2,
            )
    else:
        what = f"has an unknown ending ({place.suffix or 'none'})" if place.is_file() else "does not exist"
        expected = "a cube: .npy, .npz, .mat, or ENVI (.hdr with its file of numbers)"
        raise FileFormatError(f"{place} {what}. Expected {expected}.")
    return as_cube(cube, wavelengths=wavelengths, no_data=no_data, bands=bands)


def _stored_cube(path: Path, variable: str | None) -> Cube:
    """Open the array of a NumPy file, or read one of an archive or a MATLAB file, with its wavelengths."""
    if path.suffix.lower() == ".npy":
        return Cube(npz.map_array(path), source=str(path))
    read = npz.arrays_of if path.suffix.lower() == ".npz" else matlab.arrays_of
    arrays = {name: array for name, array in read(path).items() if isinstance(array, np.ndarray)}
    sides = {name.lower(): array.item() for name, array in arrays.items() if array.size == 1}
    if {"nrow", "ncol"} <= sides.keys():
        shape = int(sides["nrow"]), int(sides["ncol"])
        arrays = {name: _pixel_cube(array, *shape) for name, array in arrays.items()}
    cube = Cube(choose_array(arrays, variable, str(path), cube=True), source=str(path))
    wavelengths = np.ravel(arrays.get("wavelengths", arrays.get("wavelength", ())))
    fit = wavelengths.size == cube.shape[2]  # those of other bands are of no use
    return replace(cube, wavelengths=in_nanometers(wavelengths)) if fit else cube


def _pixel_cube(array: Any, rows: int, columns: int) -> Any:
    """Make a cube of a matrix of pixels, as MATLAB numbers them: column after column."""
    if array.ndim != 2 or rows * columns not in array.shape or min(array.shape) == 1:
        return array
    pixels = array if len(array) == rows * columns else array.T
    return pixels.reshape(columns, rows, pixels.shape[1]).transpose(1, 0, 2)


def header_of(path: Path) -> Path | None:
    """Return the header that belongs to a file."""
    if path.suffix.lower() == ".hdr":
        return path
    beside = [(path.with_name(path.name + ending), path.with_suffix(ending)) for ending in (".hdr", ".HDR")]
    return next((candidate for pair in beside for candidate in pair if candidate.is_file()), None)


def _read_envi(path: Path, wavelengths: Any, bands: Any) -> Cube:
    """Open an image, whose values are mapped from the file; what is known is not looked for in the header."""
    values, entries = _opened(path, library=False)
    n_bands = values.shape[2]
    return Cube(
        values,
        None if wavelengths is not None else _wavelengths(entries, n_bands, path),
        float(entries["data ignore value"]) if "data ignore value" in entries else None,
        str(path),
        {name: entries[name] for name in _PLACE if name in entries},
        None if bands is not None or "bbl" not in entries else _per_band(entries, "bbl", n_bands, path) != 0,
        float(entries.get("reflectance scale factor", 1.0)),
    )


def read_envi_library(path: Path) -> tuple[FloatArray, tuple[str, ...], FloatArray | None]:
    """Read a library of spectra."""
    values, entries = _opened(path, library=True)
    spectra = np.array(values[:, :, 0], dtype=np.float64)
    # Zero is a value of a dark spectrum, whatever a header says.
    no_data = float(entries.get("data ignore value", 0.0)) or _DELETED
    spectra[(spectra < _DELETED) | (spectra == no_data)] = np.nan
    if "bbl" in entries:
        spectra[:, _per_band(entries, "bbl", spectra.shape[1], path) == 0] = np.nan
    names = _listed(entries, "spectra names") or map(str, range(len(spectra)))
    return spectra, tuple(names), _wavelengths(entries, spectra.shape[1], path)


def _opened(path: Path, *, library: bool) -> tuple[Any, dict[str, str]]:
    """Map the numbers of an ENVI file as rows x columns x bands; return them and the entries of its header.

    In a library of spectra, rows are spectra, columns are bands, and there is one band.
    """
    header = header_of(path) or path
    entries = _read_header(header)
    if library != ("library" in entries.get("file type", "").lower()):
        is_what = "an image, not a library of spectra" if library else "a library of spectra, not an image"
        raise FileFormatError(f"{path} is {is_what} (file type in its header).")
    shape = [int(entries[name]) for name in ("lines", "samples", "bands")]
    axes, code, order = (words[entries[name]] for name, words in _ALLOWED.items())
    numbers = path if path != header else _numbers_beside(header)
    stored_shape = tuple(shape[axis] for axis in axes)
    first, n_bytes = int(entries["header offset"]), math.prod(shape) * int(code[1])
    if first + n_bytes > (size := numbers.stat().st_size):
        raise FileFormatError(
            f"{numbers} has {size} of the {first + n_bytes} bytes that {header.name} describes."
        )
    values = np.memmap(numbers, order + code, "r", first, stored_shape)
    return values.transpose(np.argsort(axes)), entries


def _read_header(header: Path) -> dict[str, str]:
    """Return the entries of an ENVI header by their names in small letters; lists are in braces."""
    text = header.read_text(encoding="utf-8-sig", errors="replace")
    if not text.startswith("ENVI"):
        raise FileFormatError(f"{header} is not an ENVI header: its first line must be 'ENVI'.")
    text = re.sub(r"^;.*", "", text, flags=re.MULTILINE)  # comments
    pairs = re.findall(r"^([^={}\n]+)=[ \t]*(\{[^}]*\}|[^\n]*)", text, flags=re.MULTILINE)
    entries = {"header offset": "0"} | {name.strip().lower(): value.strip() for name, value in pairs}
    for name in ("lines", "samples", "bands", "header offset", *_ALLOWED):
        value = entries[name] = entries.get(name, "").lower()
        if not (value in _ALLOWED[name] if name in _ALLOWED else value.isdecimal()):
            expected = ", ".join(_ALLOWED.get(name, ["a whole number"]))
            has = f"has the {name} {value!r}" if value else f"lacks the {name}"
            raise FileFormatError(f"The header {header} {has}. Expected {expected}; correct it.")
    return entries


def _numbers_beside(header: Path) -> Path:
    for ending in (*_ENDINGS, *map(str.upper, _ENDINGS)):
        if (candidate := header.with_suffix(ending)).is_file():
            return candidate
    raise FileFormatError(
        f"The numbers that {header} describes are not in the same folder: expected {header.stem} with no "
        f"ending or {', '.join(_ENDINGS[1:])}. Put them there, or pass the file of numbers itself."
    )


def _listed(entries: Mapping[str, str], name: str) -> list[str]:
    words = [word.strip() for word in entries.get(name, "").strip("{}").split(",")]
    return words[:-1] if words[-1] == "" else words  # after a comma at the end


def _per_band(entries: Mapping[str, str], name: str, n_bands: int, path: Path) -> FloatArray:
    """Return a list of a header: the wavelength of each band, or zero for each bad band (``bbl``)."""
    numbers = np.array(_listed(entries, name), dtype=np.float64)
    if len(numbers) != n_bands:
        remedy = "bands='all' (--all-bands)" if name == "bbl" else "wavelengths= (--wavelengths)"
        raise FileFormatError(
            f"The header of {path} lists {len(numbers)} numbers as '{name}', but there are {n_bands} bands. "
            f"Correct it, or pass {remedy}."
        )
    return numbers


def _wavelengths(entries: Mapping[str, str], n_bands: int, path: Path) -> FloatArray | None:
    """Return the wavelengths that a header lists, in nanometers."""
    unit = entries.get("wavelength units", "").lower()
    if "wavelength" not in entries or unit in _NO_LENGTHS:
        return None
    places = _per_band(entries, "wavelength", n_bands, path)
    factor = _NANOMETERS.get(unit.removesuffix("s").replace("metre", "meter"))
    return in_nanometers(places) if factor is None else places * factor


def in_nanometers(wavelengths: Any) -> FloatArray:
    """Return wavelengths in nanometers, whichever of the two usual units they are in."""
    places = np.asarray(wavelengths, dtype=np.float64)
    low, high = _MICROMETERS
    return 1e3 * places if places.size and ((places >= low) & (places < high)).all() else places


def write_maps(
    path: str | os.PathLike[str],
    maps: Any,
    names: Sequence[str] | None = None,
    *,
    georeference: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write abundance maps as an ENVI image.

    Parameters
    ----------
    path : path
        ``NAME.hdr``; the maps themselves are in ``NAME.img``.
    maps : array of shape (n_rows, n_columns, n_endmembers)
        The maps, one per band; NaN for pixels without data.
    names : sequence of str, optional
        The names of the endmembers, for the header.
    georeference : mapping of str to str, optional
        The georeference for the header: `Cube.georeference` of the image.

    Returns
    -------
    list of pathlib.Path
        The files that were written.
    """
    place, planes = Path(path), np.asarray(maps)
    labels = [f"endmember {at}" for at in range(planes.shape[-1])] if names is None else list(names)
    if planes.ndim != 3 or len(labels) != planes.shape[2]:
        raise ShapeError(
            f"Expected maps of shape (rows, columns, endmembers) and a name for each endmember, got an array "
            f"of shape {planes.shape} and {len(labels)} names."
        )
    if place.suffix.lower() != ".hdr":
        raise FileFormatError(f"Expected a name that ends in .hdr, got {place.name}.")
    single = planes.dtype == np.float32
    labels = [str(name).translate(str.maketrans(",{}\n", "    ")).strip() for name in labels]
    entries: dict[str, Any] = {
        "samples": planes.shape[1], "lines": planes.shape[0], "bands": planes.shape[2], "header offset": 0,
        "file type": "ENVI Standard", "data type": 4 if single else 5, "interleave": "bsq", "byte order": 0,
        "band names": f"{{{', '.join(labels)}}}", "data ignore value": "nan", **(georeference or {}),
    }  # fmt: skip
    numbers = place.with_suffix(".img")
    try:
        place.write_text("ENVI\n" + "".join(f"{name} = {value}\n" for name, value in entries.items()))
        np.moveaxis(planes, 2, 0).astype("<f4" if single else "<f8").tofile(numbers)
    except OSError as error:
        raise OutputError(f"{place} could not be written: {error.strerror or error}.") from error
    return [place, numbers]
