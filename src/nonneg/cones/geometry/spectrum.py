"""Spectrum of cones that are alike, and condition (92) on singular values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg.exceptions import InvalidParameterError


@dataclass(frozen=True)
class ConeSpectrum:
    """The three values that the eigenvalues of E[v v'] take, for cones that are alike."""

    floor: float  # a of (87): the eigenvalue of the n_features - n_cones directions outside the axes' span
    gap: float  # b (1 - cos beta): by how much the eigenvalues 2 to n_cones lie above the floor
    first: float  # the first eigenvalue, a + b (1 + (n_cones - 1) cos beta)
    n_cones: int  # how many there are of each
    n_features: int

    @property
    def largest_epsilon(self) -> float:
        """Below which error of the eigenvalues condition (92) holds."""
        if self.floor <= 0 or self.gap <= 0:
            return 0.0
        return self.floor * self.gap / (4.0 * self.floor + self.gap)


@dataclass(frozen=True)
class RatioCondition:
    """Theorem 9's condition (92) held against singular values that were seen."""

    # The three values that fit the squared singular values over the number of points best.
    spectrum: ConeSpectrum
    largest_epsilon: float  # how far the eigenvalues may be from that spectrum for (92) to hold
    deviation: float  # how far those that were seen are from it, the first one left out as Theorem 9 does
    # Whether `deviation` < `largest_epsilon`: then the ratio (45) is largest at n_cones among all candidates
    # from 2 on that were seen, and Theorem 9's reasoning explains it.
    holds: bool


def ratio_condition(
    singular_values: Any, k: int, n_samples: float, n_features: int, *, squared_norm: float | None = None
) -> RatioCondition:
    """Fit the spectrum of k like cones to singular values and hold condition (92) against it."""
    # Theorem 9 speaks of many more points than features. The eigenvalues of n points of length F that are
    # equal in expectation reach (1 + sqrt(F / n))^2 times their mean, and epsilon is below the floor, so that
    # the condition cannot hold before n = 6 F or so; the ratio itself is right much earlier. It also assumes
    # equal lambdas: give it the singular values of points of unit length where lengths differ (Remark 2).
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Theorem 9, equations (87) to (92).
    values = np.asarray(singular_values, dtype=np.float64) ** 2 / n_samples
    if not 2 <= k < len(values):
        raise InvalidParameterError(
            f"Expected k between 2 and {len(values) - 1}, the singular values less one. Got {k}."
        )
    tail = values[k:]
    if squared_norm is None:
        floor = float(tail.mean())
    else:
        floor = max(squared_norm / n_samples - float(values[:k].sum()), 0.0) / max(n_features - k, 1)
    level = float(values[1:k].mean())
    spectrum = ConeSpectrum(floor, max(level - floor, 0.0), float(values[0]), k, n_features)
    deviation = float(max(np.abs(values[1:k] - level).max(), np.abs(tail - floor).max()))
    allowed = spectrum.largest_epsilon
    return RatioCondition(spectrum, allowed, deviation, deviation < allowed)
