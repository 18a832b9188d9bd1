"""Hyperspectral cubes: rows x columns x bands, with wavelengths and pixels without data.

ENVI files, a text header next to a file of plain numbers, are read and written by the library `spectral`.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._optional import import_optional
from nonneg._typing import BoolArray, FloatArray
from nonneg.exceptions import (
    DataChangedWarning,
    DataTypeError,
    FileFormatError,
    NonnegWarning,
    OutputError,
    ShapeError,
)
from nonneg.io import matlab, npz
from nonneg.io.read import format_of, read_with
from nonneg.io.table import StoredArray, check_variable, choose_array

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
WORDS = ".npy, .npz, .mat, or ENVI (.hdr with its file of numbers)"


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
    georeference : mapping of str to Any
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
    georeference: Mapping[str, Any] = field(default_factory=dict)
    bands: BoolArray | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        shape, dtype = np.shape(self.values), getattr(self.values, "dtype", np.dtype(object))
        if len(shape) != 3 or 0 in shape:
            raise ShapeError(
                f"Expected a cube of rows x columns x bands, got an array of shape {shape}. To make one "
                f"from pixels in rows, use array.reshape(n_rows, n_columns, n_bands)."
            )
        if dtype.kind not in "buif":
            raise DataTypeError(f"Expected a cube of real numbers, got entries of type {dtype}.")
        if self.wavelengths is not None and np.shape(self.wavelengths) != shape[2:]:
            raise ShapeError(
                f"Expected {shape[2]} wavelengths, one for each band of the file, those that are left out "
                f"among them, got an array of shape {np.shape(self.wavelengths)}. Bands come last in the "
                f"cube, which has shape {shape}: np.moveaxis(array, axis, 2) puts them there."
            )
        if self.bands is not None:
            object.__setattr__(self, "bands", _checked_bands(self.bands, shape[2]))

    @property
    def kept(self) -> BoolArray:
        """Which bands count, one entry per band."""
        return np.ones(self.shape[2], dtype=bool) if self.bands is None else self.bands

    @property
    def kept_wavelengths(self) -> FloatArray | None:
        """The wavelengths of the bands that count."""
        return None if self.wavelengths is None else np.asarray(self.wavelengths)[self.kept]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and bands."""
        rows, columns, bands = self.values.shape
        return int(rows), int(columns), int(bands)


def _checked_bands(bands: Any, n_bands: int) -> BoolArray:
    flags = np.asarray(bands)
    if flags.shape != (n_bands,) or (flags.dtype != bool and not np.isin(flags, (0, 1)).all()):
        raise ShapeError(
            f"Expected bands to be 'all' or {n_bands} entries, True for each band to use and False for the "
            f"others, got an array of shape {flags.shape}."
        )
    if not flags.any():
        raise ShapeError(f"bands leaves none of {n_bands} bands. Expected True for those to use.")
    return flags.astype(bool)


def as_cube(cube: Any, *, wavelengths: Any = None, no_data: float | None = None, bands: Any = None) -> Cube:
    """Make a cube of an array, or complete one."""
    if isinstance(cube, str | os.PathLike):
        cube = read_cube(cube, bands=bands)
    if not isinstance(cube, Cube):
        cube = Cube(cube if hasattr(cube, "dtype") else np.asarray(cube))
    changes: dict[str, Any] = {}
    if wavelengths is not None:
        changes["wavelengths"] = np.asarray(wavelengths, dtype=np.float64)
    if no_data is not None:
        changes["no_data"] = float(no_data)
    if bands is not None:
        changes["bands"] = None if isinstance(bands, str) and bands == "all" else bands
    return replace(cube, **changes)


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
    elif not place.is_file():
        raise FileFormatError(f"{place} does not exist. Expected a cube: {WORDS}.")
    elif header_of(place) is not None:
        check_variable(variable, place, "an ENVI image", several=False)
        cube = _read_envi(place, all_bands=bands is not None)
        if n_bad := int((~cube.kept).sum()):
            warnings.warn(
                f"{n_bad} of {cube.shape[2]} bands of {place.name} are left out: its header flags them as "
                "bad (bbl). bands='all' (--all-bands) keeps them.",
                DataChangedWarning,
                stacklevel=2,
            )
    else:
        raise FileFormatError(f"{place} has an unknown ending ({place.suffix or 'none'}). Expected {WORDS}.")
    return as_cube(cube, wavelengths=wavelengths, no_data=no_data, bands=bands)


def _stored_cube(path: Path, variable: str | None) -> Cube:
    """Open the array of a NumPy file, or read one of an archive or a MATLAB file, with its wavelengths."""
    if path.suffix.lower() == ".npy":
        npz.read_layout(path)
        return Cube(np.load(path, mmap_mode="r", allow_pickle=False), source=str(path))
    is_archive = path.suffix.lower() == ".npz"
    arrays = npz.arrays_of(path) if is_archive else _with_cubes_of_matrices(matlab.arrays_of(path))
    values = choose_array(arrays, variable, str(path), cube=True).load()
    listed = arrays.get("wavelengths", arrays.get("wavelength"))
    if listed is None or values.ndim != 3:
        return Cube(values, source=str(path))
    wavelengths = np.ravel(listed.load())
    if wavelengths.size != values.shape[2]:
        warnings.warn(
            f"The wavelengths in {path} are not used: there are {wavelengths.size} of them for "
            f"{values.shape[2]} bands, the last axis of the cube.",
            NonnegWarning,
            stacklevel=2,
        )
        return Cube(values, source=str(path))
    return Cube(values, in_nanometers(wavelengths), source=str(path))


def _with_cubes_of_matrices(arrays: dict[str, StoredArray]) -> dict[str, StoredArray]:
    """Make cubes of matrices of pixels where their numbers of rows and columns, nRow and nCol, lie beside."""
    sides = {name.lower(): array for name, array in arrays.items() if math.prod(array.shape) == 1}
    if not {"nrow", "ncol"} <= set(sides):
        return arrays
    rows, columns = (int(sides[name].load().item()) for name in ("nrow", "ncol"))

    def cube(matrix: StoredArray) -> Any:
        pixels = matrix.load()
        pixels = pixels if len(pixels) == rows * columns else pixels.T
        # MATLAB numbers pixels column after column.
        return pixels.reshape(columns, rows, pixels.shape[1]).transpose(1, 0, 2)

    cubes = {}
    for name, array in arrays.items():
        shape = array.shape
        if array.is_numeric and len(shape) == 2 and rows * columns in shape and min(shape) > 1:
            n_bands = shape[1] if shape[0] == rows * columns else shape[0]
            cubes[name] = StoredArray((rows, columns, n_bands), True, partial(cube, array))
    return arrays | cubes


def header_of(path: Path) -> Path | None:
    """Return the header that belongs to a file."""
    if path.suffix.lower() == ".hdr":
        return path
    for ending in (".hdr", ".HDR"):
        for candidate in (path.with_name(path.name + ending), path.with_suffix(ending)):
            if candidate.is_file():
                return candidate
    return None


def _read_envi(path: Path, *, all_bands: bool) -> Cube:
    """Open an image, whose values are mapped from the file, not read."""
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
    return Cube(
        image.open_memmap(interleave="bip", writable=False),
        _wavelengths(entries, image.nbands, path),
        _number(entries, "data ignore value", path),
        str(path),
        {name: entries[name] for name in _PLACE if name in entries},
        None if all_bands else _good_bands(entries, image.nbands, path),
        scale or 1.0,
    )


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
