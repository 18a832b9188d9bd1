"""Abundances of the endmembers in every pixel, and residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import BoolArray, FloatArray
from nonneg.applications.hyperspectral.endmembers import far_out
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import as_data_matrix
from nonneg.exceptions import UnknownNameError
from nonneg.separable.weights import anchor_weights

CONSTRAINTS = ("normalized", "sum-to-one", "at-most-one", "nonnegative")
"""The constraints on the abundances of a pixel."""
# Limits of verdicts: an error within twice what any spectra must leave, and half of the pixels, whose weights
# sum to nearly one.
BOUND_FACTOR, ENOUGH_PIXELS, NEAR_ONE = 2.0, 0.5, 0.1


@dataclass
class Mixtures:
    """What was found out about blocks of pixels."""

    maps: FloatArray  # the abundances; NaN for pixels that are not used
    residuals: FloatArray  # the norm of the residual of a pixel, relative to the pixel
    squared_residual: float  # over all pixels
    squared_norm: float
    gram: FloatArray  # products of bands over all pixels
    n_pixels: int = 0  # number of pixels used
    largest_norm: float = 0.0  # of a pixel
    n_near_one: int | None = None  # pixels whose weights sum to nearly one without that constraint

    @classmethod
    def of(cls, n_image_pixels: int, n_endmembers: int, n_bands: int, dtype: Any) -> Mixtures:
        """Return empty maps."""
        maps = np.full((n_image_pixels, n_endmembers), np.nan, dtype=dtype)
        residuals = np.full(n_image_pixels, np.nan, dtype=dtype)
        return cls(maps, residuals, 0.0, 0.0, np.zeros((n_bands, n_bands)))

    def add(self, pixels: Any, spectra: FloatArray, endmembers: FloatArray, constraint: str) -> None:
        """Unmix a block."""
        weights = weights_of(spectra, endmembers, constraint)
        if constraint == "sum-to-one":
            sums = weights_of(spectra, endmembers, "nonnegative").sum(axis=1)
            self.n_near_one = (self.n_near_one or 0) + int((np.abs(sums - 1.0) <= NEAR_ONE).sum())
        left = np.asarray(spectra - weights @ endmembers, dtype=np.float64)
        squares = np.einsum("pb,pb->p", left, left)
        entries = np.asarray(spectra, dtype=np.float64)
        norms = np.einsum("pb,pb->p", entries, entries)
        self.gram += entries.T @ entries
        self.squared_residual += float(squares.sum())
        self.squared_norm += float(norms.sum())
        self.n_pixels += len(norms)
        self.largest_norm = max(self.largest_norm, math.sqrt(float(norms.max(initial=0.0))))
        self.residuals[pixels] = np.sqrt(squares / np.where(norms > 0, norms, 1.0))
        if constraint == "normalized":
            sums = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(sums > 0, sums, 1.0)
        self.maps[pixels] = weights

    def unexplained(self) -> BoolArray:
        """Tell which pixels leave far more of themselves than others."""
        large = np.isfinite(self.residuals)
        if large.any():
            large[large] = far_out(self.residuals[large])
        return large


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


def checked_constraint(constraint: Any) -> str:
    """Return the name of a constraint."""
    if constraint not in CONSTRAINTS:
        raise UnknownNameError.of("constraint", constraint, CONSTRAINTS)
    return str(constraint)


def image_statements(mixtures: Mixtures, endmembers: FloatArray) -> list[Statement]:
    """State how well linear mixtures explain an image, and whether endmembers are as bright as pixels."""
    statements = [_error_statement(mixtures, len(endmembers))]
    if mixtures.n_near_one is not None:
        share = mixtures.n_near_one / mixtures.n_pixels
        near = (
            f"For {100 * share:.3g}% of the pixels nonnegative weights sum to between {1 - NEAR_ONE:g} and "
            f"{1 + NEAR_ONE:g} without the constraint; where they do not, the brightness differs from "
            "that of the pure pixels, which constraint='normalized' allows for."
        )
        holds = Verdict.HOLDS if share >= ENOUGH_PIXELS else Verdict.FAILS
        quantities = {"n_pixels": mixtures.n_near_one}
        statements.append(Statement("sum-to-one", near, share, ENOUGH_PIXELS, holds, quantities))
    return [*statements, _brightness_statement(mixtures, endmembers)]


def _error_statement(mixtures: Mixtures, k: int) -> Statement:
    error = math.sqrt(mixtures.squared_residual / mixtures.squared_norm)
    energies = np.clip(np.linalg.eigvalsh(mixtures.gram)[::-1], 0.0, None)
    # Products of bands carry half the digits: each eigenvalue may be wrong by rounding of the largest one.
    rounding = 4.0 * k * math.sqrt(len(energies)) * float(np.finfo(np.float64).eps)
    bound = math.sqrt(max(float(energies[k:].sum()) / mixtures.squared_norm - rounding, 0.0))
    quantities = {"relative_error": error, "lower_bound": bound, "n_pixels": mixtures.n_pixels}
    spectra = "1 spectrum" if k == 1 else f"{k} spectra"
    if bound <= 1e-7:
        sentence = (
            f"The mixtures leave {100 * error:.3g}% of the image (in norm); {spectra} can explain all of it "
            "up to rounding."
        )
        verdict = Verdict.HOLDS if error < 1e-6 else Verdict.NOT_VERIFIABLE
        return Statement("eckart-young-bound", sentence, None, BOUND_FACTOR, verdict, quantities)
    ratio = error / bound
    sentence = (
        f"The mixtures leave {100 * error:.3g}% of the image (in norm), {ratio:.3g} times what any {spectra} "
        f"must leave ({100 * bound:.3g}%)."
    )
    verdict = Verdict.HOLDS if ratio <= BOUND_FACTOR else Verdict.FAILS
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
            f"typical pixel ({typical:.3g}). It is a shadow, or noise."
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
