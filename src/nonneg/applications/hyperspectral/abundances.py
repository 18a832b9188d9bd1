"""Abundances of the endmembers in every pixel, and residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.applications.hyperspectral.endmembers import far_out, nonnegative_weights
from nonneg.applications.hyperspectral.pixels import ImagePixels
from nonneg.certificates.bounds import lower
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import as_data_matrix
from nonneg.iteration.progress import StepCounter
from nonneg.separable.weights import anchor_weights

CONSTRAINTS = ("normalized", "sum-to-one", "at-most-one", "nonnegative")
"""The constraints on the abundances of a pixel."""
# Limit of a verdict: an error within twice what any spectra must leave.
BOUND_FACTOR = 2.0
# The bound is the root of a difference of sums of squares, whose rounding is about the square of this.
BOUND_ROUNDING = 1e-7


@dataclass
class Mixtures:
    """Mixtures of endmembers in the pixels of an image."""

    maps: FloatArray  # the abundances; NaN for pixels that are not used
    residuals: FloatArray  # the norm of the residual of a pixel, relative to the pixel
    gram: FloatArray  # products of bands over all pixels
    squared_residual: float = 0.0  # over all pixels
    n_pixels: int = 0  # number of pixels used
    largest_norm: float = 0.0  # of a pixel

    @classmethod
    def of(cls, pixels: ImagePixels, endmembers: FloatArray, constraint: str, verbose: int) -> Mixtures:
        """Unmix all pixels."""
        size, m, dtype = pixels.mask.size, pixels.n_bands, pixels.dtype
        maps = np.full((size, len(endmembers)), np.nan, dtype=dtype)
        mixtures = cls(maps, np.full(size, np.nan, dtype=dtype), np.zeros((m, m)))
        counter = StepCounter("Unmixing", int(pixels.mask.sum()), verbose)
        for places, spectra in pixels.blocks():
            weights = weights_of(spectra, endmembers, constraint)
            entries = np.asarray(spectra, dtype=np.float64)
            residuals = entries - weights @ endmembers
            squares, norms = (np.einsum("pb,pb->p", rows, rows) for rows in (residuals, entries))
            mixtures.gram += entries.T @ entries
            mixtures.squared_residual += float(squares.sum())
            mixtures.n_pixels += len(norms)
            longest = math.sqrt(float(norms.max(initial=0.0)))
            mixtures.largest_norm = max(mixtures.largest_norm, longest)
            mixtures.residuals[places] = np.sqrt(squares / norms)
            if constraint == "normalized":
                sums = weights.sum(axis=1, keepdims=True)
                weights = weights / np.where(sums > 0, sums, 1.0)
            mixtures.maps[places] = weights
            counter.done("pixels mapped", len(places))
        return mixtures

    @property
    def relative_error(self) -> float:
        """The norm of all residuals, relative to that of all pixels."""
        return math.sqrt(self.squared_residual / float(np.trace(self.gram)))

    def unexplained(self) -> BoolArray:
        """Tell which pixels leave far more of themselves than others."""
        large = np.isfinite(self.residuals)
        large[large] = far_out(self.residuals[large])
        return large


def weights_of(spectra: FloatArray, endmembers: FloatArray, constraint: str) -> FloatArray:
    """Return the abundances that fit spectra best."""
    if constraint in ("normalized", "nonnegative"):
        return nonnegative_weights(spectra, endmembers)
    if constraint == "at-most-one":
        # Shade is one more endmember without any light.
        endmembers = np.concatenate([endmembers, np.zeros_like(endmembers[:1])])
    weights = anchor_weights(as_data_matrix(np.ascontiguousarray(spectra)), endmembers, sum_to_one=True)
    return np.asarray(weights)[:, :-1] if constraint == "at-most-one" else np.asarray(weights)


def image_statements(mixtures: Mixtures, endmembers: FloatArray) -> list[Statement]:
    """State how well linear mixtures explain an image, and whether endmembers are as bright as pixels."""
    return [_error_statement(mixtures, len(endmembers)), _brightness_statement(mixtures, endmembers)]


def _error_statement(mixtures: Mixtures, k: int) -> Statement:
    error = mixtures.relative_error
    square, values = float(np.trace(mixtures.gram)), np.linalg.eigvalsh(mixtures.gram)[::-1]
    # The worst rounding, as in `nonneg.data.spectral`: of sums over all pixels, and of the eigenvalues.
    sums = (mixtures.n_pixels + len(values)) * square
    rounding = (k + 1) * sums + 4.0 * k * math.sqrt(len(values)) * float(values[0])
    most = float(values[:k].sum()) + float(np.finfo(np.float64).eps) * rounding
    bound = math.sqrt(max(1.0 - most / square, 0.0))
    quantities = {"relative_error": error, "lower_bound": bound, "n_pixels": mixtures.n_pixels}
    sentence = (
        f"The mixtures leave {100 * error:.3g}% of the image (in norm); no {k} spectra leave less than "
        f"{lower(100 * bound, 3)}%."
    )
    # A bound within rounding of zero says nothing, unless the error is rounding as well.
    useful = bound > BOUND_ROUNDING
    verdict = Verdict.FAILS if useful else Verdict.NOT_VERIFIABLE
    if error <= max(BOUND_FACTOR * bound, 10 * BOUND_ROUNDING):
        verdict = Verdict.HOLDS
    ratio = error / bound if useful else None
    return Statement("eckart-young-bound", sentence, ratio, BOUND_FACTOR, verdict, quantities)


def _brightness_statement(mixtures: Mixtures, endmembers: FloatArray) -> Statement:
    """State whether every endmember exceeds what mixtures leave, and none is too bright for the pixels."""
    norms = np.linalg.norm(np.asarray(endmembers, dtype=np.float64), axis=1)
    typical = math.sqrt(mixtures.squared_residual / mixtures.n_pixels)
    # A pixel is at least as bright as the share of an endmember in it. Endmembers that are identified reach a
    # share of 2 / k in some pixel (Huang, Sidiropoulos & Swami 2014).
    limit = max(1.0, 0.5 * len(norms)) * mixtures.largest_norm
    at, brightest = int(norms.argmin()), int(norms.argmax())
    ratio = float(norms[at]) / typical if typical > 0 else None
    quantities = {
        "dimmest": norms[at],
        "brightest": norms[brightest],
        "typical_residual": typical,
        "limit": limit,
    }
    verdict = Verdict.FAILS
    if not norms[at] > typical:
        sentence = (
            f"Endmember {at} is dim: its norm, {norms[at]:.3g}, does not exceed what mixtures leave of a "
            f"typical pixel ({typical:.3g}). It is a shadow, a material in shadow, or noise."
        )
    elif norms[brightest] > limit * (1 + 1e-6):
        sentence = (
            f"Endmember {brightest} is too bright: its norm, {norms[brightest]:.3g}, exceeds what the "
            f"brightest pixel allows ({limit:.3g})."
        )
    else:
        sentence = (
            "Every endmember is brighter than what mixtures leave of a typical pixel, and none too bright."
        )
        verdict = Verdict.HOLDS
    return Statement("endmember-brightness", sentence, ratio, 1.0, verdict, quantities)
