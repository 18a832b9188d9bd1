"""Pixels of a cube, block by block: checked, clipped and counted on the way."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import (
    DataChangedWarning,
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    NonnegWarning,
    ShapeError,
)
from nonneg.io.cube import Cube

BLOCK_BYTES = 1 << 24
"""About this many bytes of a cube are read at a time."""


class Block(NamedTuple):
    """The pixels of a few rows of the image."""

    pixels: IntArray  # which pixels of the image, numbered row by row
    spectra: FloatArray  # theirs, float32 or float64, not below zero


class ImagePixels:
    """The pixels of a cube that hold data, in the bands that count."""

    def __init__(self, cube: Cube, mask: Any, negative_tol: float) -> None:
        self.cube, self.negative_tol = cube, negative_tol
        self.mask = _checked_mask(mask, cube.shape[:2])
        self.dtype = _working_type(cube.values.dtype)
        self.n_bands = int(cube.kept.sum())
        self._all_bands = bool(cube.kept.all())
        if isinstance(cube.values, np.ma.MaskedArray):
            # What is masked is no data, and a pixel needs all its bands.
            self.mask &= ~np.ma.getmaskarray(cube.values)[:, :, cube.kept].any(axis=2)
        self.n_clipped = self.n_clipped_pixels = self.n_partly_empty = self.n_zero = 0
        self.smallest, self.largest = np.inf, -np.inf
        self.passes = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the pixels block by block; the first pass checks and counts."""
        rows, columns, bands = self.cube.shape
        scale = self.cube.scale
        height = max(1, BLOCK_BYTES // (columns * bands * np.dtype(self.dtype).itemsize))
        first = self.passes == 0
        self.passes += 1
        for start in range(0, rows, height):
            part = np.asarray(self.cube.values[start : start + height])
            part = part if self._all_bands else part[:, :, self.cube.kept]
            if first:
                self._leave_out(part, start)
            keep = self.mask[start : start + height]
            chosen = part.reshape(-1, self.n_bands) if keep.all() else part[keep]
            if first and len(chosen):
                self._check(chosen, keep, start)
                chosen = self._without_zeros(chosen, keep)
            spectra = chosen.astype(self.dtype, copy=False)
            if scale != 1.0:
                spectra = spectra / self.dtype(scale)
            if self.smallest < 0 and (spectra < 0).any():
                spectra = np.maximum(spectra, 0)
            yield Block(start * columns + np.flatnonzero(keep), spectra)
        if first:
            self._check_whole()

    def check(self) -> None:
        """Read all pixels once: leave out those without data or light, and count what is clipped."""
        if not self.passes:
            for _ in self.blocks():
                pass

    def gathered(self) -> FloatArray:
        """Return all pixels that are used as one matrix, one per row."""
        self.check()
        values = self.cube.values
        as_they_are = self.cube.bands is None and self.cube.scale == 1.0 and values.dtype == self.dtype
        as_they_are = as_they_are and self.smallest >= 0 and bool(self.mask.all())
        # What else can be cut, such as a dataset of an open HDF5 file, has no flags.
        if as_they_are and isinstance(values, np.ndarray) and values.flags.c_contiguous:
            return np.asarray(values).reshape(-1, self.n_bands)
        return np.concatenate([block.spectra for block in self.blocks()])

    def at(self, places: IntArray) -> FloatArray:
        """Return the pixels with some numbers in double precision; the numbers increase."""
        wanted = np.zeros(self.mask.size, dtype=bool)
        wanted[places] = True
        parts = [block.spectra[wanted[block.pixels]] for block in self.blocks()]
        return np.concatenate(parts).astype(np.float64)

    def tell(self) -> None:
        """Warn the caller of the method that calls this one of what the first pass came upon."""
        n_pixels = int(self.mask.sum())
        if self.n_clipped:
            warnings.warn(
                f"{self.n_clipped} {'entry' if self.n_clipped == 1 else 'entries'} below zero in "
                f"{self.n_clipped_pixels} of {n_pixels} pixels (down "
                f"to {self.smallest:.4g}, where the largest entry is {self.largest:.4g}) were set to zero.",
                DataChangedWarning,
                stacklevel=3,
            )
        if self.n_zero:
            warnings.warn(
                f"{self.n_zero} pixels are zero in every band and were left out: no data, or no light. "
                f"{n_pixels} pixels are used. no_data=0 (--no-data 0) says so without a warning.",
                NonnegWarning,
                stacklevel=3,
            )
        if self.n_partly_empty:
            warnings.warn(
                f"{self.n_partly_empty} pixels have the no-data value, {self.cube.no_data:g}, in some of "
                "their bands, where it is treated as data. Leave such pixels out with mask= (--mask).",
                NonnegWarning,
                stacklevel=3,
            )

    def _leave_out(self, part: Any, start: int) -> None:
        """Take pixels of the value for no data out of the mask."""
        empty = self.cube.no_data
        if empty is None:
            return
        same = np.isnan(part) if np.isnan(empty) else part == empty
        keep = self.mask[start : start + len(part)]
        keep &= ~same.all(axis=2)
        # Zero and NaN are told apart elsewhere: zeros are data, and NaN is an error that names the pixel.
        if empty != 0 and not np.isnan(empty):
            self.n_partly_empty += int((same.any(axis=2) & keep).sum())

    def _without_zeros(self, chosen: Any, keep: Any) -> Any:
        """Take pixels without light out of the mask, also those whose squares are zero."""
        light = chosen.max(axis=1) > math.sqrt(np.finfo(self.dtype).tiny) * self.cube.scale
        if light.all():
            return chosen
        self.n_zero += len(light) - int(light.sum())
        keep[keep] = light  # a view of the mask
        return chosen[light]

    def _check(self, chosen: Any, keep: Any, start: int) -> None:
        low, high = float(chosen.min()), float(chosen.max())
        if not np.isfinite([low, high]).all():
            bad = ~np.isfinite(chosen)
            row, column = np.argwhere(keep)[np.flatnonzero(bad.any(axis=1))[0]]
            raise NonFiniteDataError(
                f"The cube contains at least {int(bad.sum())} entries that are NaN or infinite outside the "
                f"mask; the first pixel is row {start + row}, column {column}. Pass mask= (--mask) with "
                "False there, or no_data= (--no-data) with the value that fills all bands of pixels without "
                "data (such as NaN), or fill them."
            )
        if low < 0:
            below = chosen < 0
            self.n_clipped += int(below.sum())
            self.n_clipped_pixels += int(below.any(axis=1).sum())
        self.smallest = min(self.smallest, low / self.cube.scale)
        self.largest = max(self.largest, high / self.cube.scale)

    def _check_whole(self) -> None:
        if not self.mask.any() and self.largest == -np.inf:
            raise InvalidDataError(
                "The mask and the no-data value leave no pixels. Check that mask is True for pixels to use."
            )
        if not self.mask.any():
            raise InvalidDataError(
                f"All pixels are zero or below, or too small for {np.dtype(self.dtype).name} (largest entry "
                f"{self.largest:.3g}): there is nothing to unmix. Check the cube and its unit."
            )
        if not self.largest < math.sqrt(np.finfo(self.dtype).max) / (self.n_bands * self.mask.sum()):
            raise InvalidDataError(
                f"The cube has entries up to {self.largest:.3g}, whose squares leave the range of "
                f"{np.dtype(self.dtype).name}. Divide it by its largest entry."
            )
        if self.smallest < -self.negative_tol * self.largest:
            raise NegativeDataError(
                f"The cube has entries down to {self.smallest:.4g}, where the largest is {self.largest:.4g}: "
                f"more than noise around zero (negative_tol={self.negative_tol:g}). Spectra must not be "
                "centered: undo the offset, leave pixels without data out with mask= (--mask), or with "
                "no_data= if all their bands have its value, or raise negative_tol (--negative-tol)."
            )


def _working_type(dtype: Any) -> Any:
    # Whole numbers of 16 bits are exact in float32; the order of the bytes does not matter.
    if dtype.itemsize > (4 if dtype.kind == "f" else 2):
        return np.float64
    return np.float32


def _checked_mask(mask: Any, shape: tuple[int, int]) -> Any:
    if mask is None:
        return np.ones(shape, dtype=bool)
    given = np.asarray(mask)
    if given.shape != shape:
        raise ShapeError(f"Expected a mask of the shape of the image, {shape}, got {given.shape}.")
    # Pictures of masks are black and white.
    if given.dtype != bool and not any(np.isin(given, (0, white)).all() for white in (1, 255)):
        raise ShapeError(
            f"Expected a mask of True (use the pixel) and False, or of 1 and 0, got values from "
            f"{given.min():g} to {given.max():g}."
        )
    return given.astype(bool)
