"""Pixels of a cube that hold data: checked once, then read block by block."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.certificates.bounds import upper
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


class ImagePixels:
    """The pixels of a cube that hold data, in the bands that are used.

    The constructor reads all of them once: pixels without data or light leave the mask, and entries below
    zero, which `blocks` sets to zero, are counted.
    """

    def __init__(self, cube: Cube, mask: Any, negative_tol: float) -> None:
        self.cube = cube
        self.mask = _checked_mask(mask, cube.shape[:2])
        # Whole numbers of 16 bits are exact in float32.
        exact = cube.values.dtype.itemsize <= (4 if cube.values.dtype.kind == "f" else 2)
        self.dtype: Any = np.float32 if exact else np.float64
        self.n_bands = int(cube.kept.sum())
        if isinstance(cube.values, np.ma.MaskedArray):
            # What is masked is no data, and a pixel needs all its bands.
            self.mask &= ~np.ma.getmaskarray(cube.values)[:, :, cube.kept].any(axis=2)
        self.n_clipped = self.n_zero = 0
        self.smallest, self.largest = np.inf, -np.inf
        empty = cube.no_data
        for start, part in self._parts():
            keep = self.mask[start : start + len(part)]  # a view
            if empty is not None:
                keep &= ~(np.isnan(part) if np.isnan(empty) else part == empty).all(axis=2)
            if keep.any():
                self._check(part[keep], keep, start)
        self._check_range(negative_tol)

    def _parts(self) -> Iterator[tuple[int, Any]]:
        """Yield rows of the image in the bands that are used, and the number of the first."""
        rows, columns, bands = self.cube.shape
        height = max(1, BLOCK_BYTES // (columns * bands * np.dtype(self.dtype).itemsize))
        for start in range(0, rows, height):
            part = np.asarray(self.cube.values[start : start + height])
            yield start, part if self.n_bands == bands else part[:, :, self.cube.kept]

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield numbers of pixels, row by row of the image, and their spectra, not below zero."""
        for start, part in self._parts():
            keep = self.mask[start : start + len(part)]
            spectra = part[keep].astype(self.dtype, copy=False)
            if self.cube.scale != 1.0:
                spectra = spectra / self.dtype(self.cube.scale)
            if self.n_clipped:
                spectra = np.maximum(spectra, 0)
            yield start * self.cube.shape[1] + np.flatnonzero(keep), spectra

    def gathered(self) -> FloatArray:
        """Return all pixels that are used as one matrix, one per row."""
        return np.concatenate([spectra for _, spectra in self.blocks()])

    def at(self, places: IntArray) -> FloatArray:
        """Return the pixels with some numbers in double precision; the numbers increase."""
        listed = np.zeros(self.mask.size, dtype=bool)
        listed[places] = True
        parts = [spectra[listed[numbers]] for numbers, spectra in self.blocks()]
        return np.concatenate(parts).astype(np.float64)

    def tell(self) -> None:
        """Warn the caller of the method that calls this one of entries and pixels that are not used."""
        n_pixels = int(self.mask.sum())
        if self.n_clipped:
            warnings.warn(
                f"{self.n_clipped} {'entry' if self.n_clipped == 1 else 'entries'} below zero (down to "
                f"{self.smallest:.4g}, where the largest entry is {self.largest:.4g}) were set to zero.",
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

    def _check(self, spectra: Any, keep: Any, start: int) -> None:
        """Check and count the entries of a block; take pixels without light out of its part of the mask."""
        low, high = float(spectra.min()), float(spectra.max())
        if not np.isfinite([low, high]).all():
            bad = ~np.isfinite(spectra)
            row, column = np.argwhere(keep)[np.flatnonzero(bad.any(axis=1))[0]]
            raise NonFiniteDataError(
                f"The cube contains at least {int(bad.sum())} entries that are NaN or infinite outside the "
                f"mask; the first pixel is row {start + row}, column {column}. Pass mask= (--mask) with "
                "False there, or no_data= (--no-data) with the value that fills all bands of pixels without "
                "data (such as NaN), or bands= with False for bands that are damaged."
            )
        self.n_clipped += int((spectra < 0).sum()) if low < 0 else 0
        self.smallest = min(self.smallest, low / self.cube.scale)
        self.largest = max(self.largest, high / self.cube.scale)
        # Also dark are pixels whose squares are zero.
        light = spectra.max(axis=1) > math.sqrt(np.finfo(self.dtype).tiny) * self.cube.scale
        self.n_zero += len(light) - int(light.sum())
        keep[keep] = light

    def _check_range(self, negative_tol: float) -> None:
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
                f"The cube has entries up to {upper(self.largest, 3)}, whose squares leave the range of "
                f"{np.dtype(self.dtype).name}. Divide it by its largest entry."
            )
        if self.smallest < -negative_tol * self.largest:
            raise NegativeDataError(
                f"The cube has entries down to {self.smallest:.4g}, where the largest is {self.largest:.4g}: "
                f"more than noise around zero (negative_tol={negative_tol:g}). Spectra must not be "
                "centered: undo the offset, leave pixels without data out with mask= (--mask), or with "
                "no_data= if all their bands have its value, or raise negative_tol (--negative-tol)."
            )


def _checked_mask(mask: Any, shape: tuple[int, int]) -> Any:
    if mask is None:
        return np.ones(shape, dtype=bool)
    values = np.asarray(mask)
    if values.shape != shape:
        raise ShapeError(f"Expected a mask of the shape of the image, {shape}, got {values.shape}.")
    # Pictures of masks are black and white.
    if values.dtype != bool and not any(np.isin(values, (0, white)).all() for white in (1, 255)):
        raise ShapeError(
            f"Expected a mask of True (use the pixel) and False, or of 1 and 0, got values from "
            f"{values.min():g} to {values.max():g}."
        )
    return values.astype(bool)
