"""Hyperspectral cubes: rows x columns x bands, with wavelengths and pixels without data."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.exceptions import DataChangedWarning, DataTypeError, FileFormatError, NonnegWarning, ShapeError
from nonneg.io import matlab, npz
from nonneg.io.envi import header_of, in_nanometers, read_envi
from nonneg.io.npz import read_layout
from nonneg.io.read import format_of, read_with
from nonneg.io.table import StoredArray, check_variable, choose_array

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
        cube = Cube(source=str(place), **read_envi(place, all_bands=bands is not None))
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
        read_layout(path)
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
