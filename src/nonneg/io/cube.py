"""Hyperspectral cubes: rows x columns x bands, with wavelengths and pixels without data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.exceptions import DataChangedWarning, DataTypeError, FileFormatError, NonnegWarning, ShapeError
from nonneg.io.envi import header_of, in_nanometers, read_envi
from nonneg.io.matlab import read_all
from nonneg.io.npz import read_arrays, read_layout
from nonneg.io.table import check_variable

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
                f"Expected {shape[2]} wavelengths, one for each band of the file, got an array of shape "
                f"{np.shape(self.wavelengths)}.{_hint(np.size(self.wavelengths), shape, self.bands)}"
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


def _hint(count: int, shape: tuple[int, ...], bands: Any) -> str:
    """Say which axis of the cube has as many entries as there are wavelengths."""
    if bands is not None and count == np.count_nonzero(bands):
        return " The bands that are left out need theirs too."
    if count in shape[:2] and count != shape[2]:
        axis = shape.index(count)
        return (
            f" Axis {axis} of the cube, of shape {shape}, has that length: bands must come last, as after "
            f"np.moveaxis(array, {axis}, 2)."
        )
    return ""


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
    if not place.is_file():
        raise FileFormatError(f"{place} does not exist. Expected a cube: {WORDS}.")
    ending = place.suffix.lower()
    if ending == ".npy":
        check_variable(variable, place, "a NumPy array", several=False)
        found = Cube(_mapped(place), source=str(place))
    elif ending in (".npz", ".mat"):
        found = _one_of_several(place, variable)
    elif header_of(place) is not None:
        check_variable(variable, place, "an ENVI image", several=False)
        found = Cube(source=str(place), **read_envi(place, all_bands=bands is not None))
        _tell_of_bad_bands(found)
    else:
        raise FileFormatError(f"{place} has an unknown ending ({ending or 'none'}). Expected {WORDS}.")
    return as_cube(found, wavelengths=wavelengths, no_data=no_data, bands=bands)


def _tell_of_bad_bands(cube: Cube) -> None:
    left_out = int((~cube.kept).sum())
    if left_out:
        warnings.warn(
            f"{left_out} of {cube.shape[2]} bands of {Path(cube.source).name} are left out: its header flags "
            "them as bad (bbl). bands='all' (--all-bands) keeps them.",
            DataChangedWarning,
            stacklevel=3,
        )


def _mapped(path: Path) -> Any:
    shape, fortran, dtype, offset = read_layout(path)
    try:
        return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")
    except (ValueError, OverflowError, OSError) as error:  # shorter than its header says, or of no entries
        raise FileFormatError(f"{path} could not be read as a NumPy file: {error}.") from error


def _one_of_several(path: Path, variable: str | None) -> Cube:
    arrays = _arrays_of(path)
    if path.suffix.lower() == ".mat":
        arrays = _with_cubes_of_matrices(arrays)
    cubes = [name for name, array in arrays.items() if array.ndim == 3]
    listing = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
    if variable is not None and variable not in arrays:
        raise FileFormatError(f"{path} contains no variable {variable!r}. It contains: {listing}.")
    if variable is None and len(cubes) != 1:
        raise FileFormatError(
            f"Expected one array with three axes (rows, columns, bands) in {path}, which contains: "
            f"{listing}. "
            + (
                "Choose one with variable='NAME' (--variable NAME)."
                if cubes
                else "To make a cube from pixels in rows, use array.reshape(n_rows, n_columns, n_bands)."
            )
        )
    values = arrays[variable or cubes[0]]
    listed = arrays.get("wavelengths", arrays.get("wavelength"))
    if listed is None or values.ndim != 3:
        return Cube(values, source=str(path))
    if listed.size != values.shape[2]:
        warnings.warn(
            f"The wavelengths in {path} are not used: there are {listed.size} of them for {values.shape[2]} "
            f"bands.{_hint(listed.size, values.shape, None)}",
            NonnegWarning,
            stacklevel=3,
        )
        return Cube(values, source=str(path))
    return Cube(values, in_nanometers(np.ravel(listed)), source=str(path))


def _with_cubes_of_matrices(arrays: dict[str, Any]) -> dict[str, Any]:
    """Make cubes of matrices of pixels where their numbers of rows and columns, nRow and nCol, lie beside."""
    sides = {name.lower(): array for name, array in arrays.items() if array.size == 1}
    if not {"nrow", "ncol"} <= set(sides):
        return arrays
    rows, columns = (int(sides[name].item()) for name in ("nrow", "ncol"))
    found = dict(arrays)
    for name, array in arrays.items():
        if array.ndim == 2 and rows * columns in array.shape and min(array.shape) > 1:
            pixels = array if array.shape[0] == rows * columns else array.T
            # MATLAB numbers pixels column after column.
            found[name] = pixels.reshape(columns, rows, pixels.shape[1]).transpose(1, 0, 2)
    return found


def _arrays_of(path: Path) -> dict[str, Any]:
    try:
        return read_arrays(path) if path.suffix.lower() == ".npz" else read_all(path)
    except (FileFormatError, ImportError, MemoryError):
        raise
    except Exception as error:  # readers raise whatever they stumble over
        raise FileFormatError(f"{path} could not be read: {error}. It may be damaged.") from error
