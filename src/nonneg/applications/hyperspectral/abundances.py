"""Abundances of the endmembers in every pixel, and residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.data import as_data_matrix
from nonneg.exceptions import UnknownNameError
from nonneg.separable.weights import anchor_weights

CONSTRAINTS = {
    "sum-to-one": "fully constrained least squares (FCLS): nonnegative, and summing to one",
    "at-most-one": "nonnegative, and summing to at most one; the rest is shade",
    "normalized": "on the simplex times the brightness of the pixel, which is free within limits",
    "nonnegative": "nonnegative",
}
"""The constraints on the abundances of a pixel."""
NEAR_ONE = 0.1
# How much darker or brighter than the endmembers a pixel may be. Beyond, its weights would say more about
# what the endmembers lack than about the light.
DARKEST, BRIGHTEST = 0.2, 5.0
# What a pixel leaves is large if it is more than a tenth of the pixel, four times as much as the median pixel
# leaves of itself, and, in the unit of the image, half as much again: normal noise of 50 bands never exceeds
# its median by half, and dark pixels are mostly noise.
LARGE_SHARE, LARGE_MULTIPLE, ABOVE_NOISE = 0.1, 4.0, 1.5


@dataclass
class Mixtures:
    """What was found out about blocks of pixels."""

    maps: FloatArray  # the abundances; NaN for pixels that are not used
    residuals: FloatArray  # the norm of the residual of a pixel, relative to the pixel
    norms: FloatArray  # of the pixels
    squared_residual: float  # over all pixels
    squared_norm: float
    gram: FloatArray  # products of bands over all pixels
    n_pixels: int = 0  # number of pixels used
    # Pixels whose weights sum to nearly one without the constraint; counted where it is imposed.
    n_near_one: int = 0

    @classmethod
    def of(cls, n_image_pixels: int, n_endmembers: int, n_bands: int, dtype: Any) -> Mixtures:
        """Return empty maps."""
        maps = np.full((n_image_pixels, n_endmembers), np.nan, dtype=dtype)
        residuals = np.full(n_image_pixels, np.nan, dtype=dtype)
        return cls(maps, residuals, np.zeros_like(residuals), 0.0, 0.0, np.zeros((n_bands, n_bands)))

    def add(self, pixels: Any, spectra: FloatArray, endmembers: FloatArray, constraint: str) -> None:
        """Unmix a block."""
        weights = weights_of(spectra, endmembers, constraint)
        if constraint == "normalized":
            weights = within_brightness(weights, spectra, endmembers)
        if constraint == "sum-to-one":
            free = weights_of(spectra, endmembers, "nonnegative")
            self.n_near_one += int((np.abs(free.sum(axis=1) - 1.0) <= NEAR_ONE).sum())
        left = np.asarray(spectra - weights @ endmembers, dtype=np.float64)
        squares = np.einsum("pb,pb->p", left, left)
        entries = np.asarray(spectra, dtype=np.float64)
        norms = np.einsum("pb,pb->p", entries, entries)
        self.gram += entries.T @ entries
        self.squared_residual += float(squares.sum())
        self.squared_norm += float(norms.sum())
        self.n_pixels += len(norms)
        self.residuals[pixels] = np.sqrt(squares / np.where(norms > 0, norms, 1.0))
        self.norms[pixels] = np.sqrt(norms)
        self.maps[pixels] = normalized_rows(weights) if constraint == "normalized" else weights

    def unexplained(self) -> BoolArray:
        """Tell which pixels leave more than noise, more than others, and a large part of themselves."""
        left = self.residuals
        used = np.isfinite(left)
        if not used.any():
            return used
        share = max(LARGE_SHARE, LARGE_MULTIPLE * float(np.median(left[used])))
        sizes = left * self.norms
        with np.errstate(invalid="ignore"):
            return np.asarray((left > share) & (sizes > ABOVE_NOISE * float(np.median(sizes[used]))))


def weights_of(spectra: FloatArray, endmembers: FloatArray, constraint: str) -> FloatArray:
    """Return the abundances that fit spectra best."""
    data = as_data_matrix(np.ascontiguousarray(spectra))
    if constraint == "sum-to-one":
        return np.asarray(anchor_weights(data, endmembers, sum_to_one=True))
    if constraint == "at-most-one":
        # Shade is one more endmember without any light.
        with_shade = np.concatenate([endmembers, np.zeros_like(endmembers[:1])])
        return np.asarray(anchor_weights(data, with_shade, sum_to_one=True))[:, :-1]
    return np.asarray(anchor_weights(data, endmembers, sum_to_one=False))


def within_brightness(weights: FloatArray, spectra: FloatArray, endmembers: FloatArray) -> FloatArray:
    """Solve at the limit for pixels that would be too dark or too bright, so that no tiny sum divides."""
    light, found = weights.sum(axis=1), weights.copy()
    filled = np.asarray(spectra).any(axis=1)
    for limit, beyond in ((DARKEST, light < DARKEST), (BRIGHTEST, light > BRIGHTEST)):
        rows = np.flatnonzero(beyond & filled)
        if len(rows):
            found[rows] = limit * weights_of(spectra[rows], limit * endmembers, "sum-to-one")
    return found


def normalized_rows(weights: FloatArray) -> FloatArray:
    """Divide the weights of every pixel by their sum."""
    sums = weights.sum(axis=1, keepdims=True)
    return weights / np.where(sums > 0, sums, 1.0)


def checked_constraint(constraint: Any) -> str:
    """Return the name of a constraint."""
    if constraint not in CONSTRAINTS:
        raise UnknownNameError.of("constraint", constraint, CONSTRAINTS)
    return str(constraint)
