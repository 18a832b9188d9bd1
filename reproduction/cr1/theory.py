"""Spectra of cones that the paper derives: Lemma 14 and equations (87) to (91)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.cones.geometry.bounds import mean_squared_sine
from nonneg.cones.geometry.spectrum import ConeSpectrum
from nonneg.exceptions import InvalidParameterError


def predicted_spectrum(
    n_features: int,
    n_cones: int,
    size_angle: float,
    between_angle: float,
    *,
    mean_squared_length: float = 1.0,
) -> ConeSpectrum:
    """Return the spectrum of E[v v'] for cones of equal size angle, equally far apart and equally likely."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equations (87) to (91).
    if not (n_features >= 2 and 1 <= n_cones <= n_features):
        raise InvalidParameterError(
            f"Expected at least 2 features and between 1 and n_features cones, got n_features={n_features} "
            f"and n_cones={n_cones}."
        )
    floor = mean_squared_length * float(mean_squared_sine(size_angle)) / (n_features - 1)
    weight = (mean_squared_length * (1.0 - float(mean_squared_sine(size_angle))) - floor) / n_cones
    # 1 - cos beta in a form that keeps small angles.
    gap = weight * 2.0 * float(np.sin(between_angle / 2)) ** 2
    first = floor + weight * (1.0 + (n_cones - 1) * float(np.cos(between_angle)))
    return ConeSpectrum(floor, gap if n_cones > 1 else 0.0, first, n_cones, n_features)


def second_moments(
    axes: Any, angles: Any, mean_squared_lengths: Any, shares: Any = None
) -> tuple[float, FloatArray]:
    """Return E[v v'] of points drawn from cones as a multiple of the identity and weights of the axes."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Lemma 14, equation (78).
    axes = np.asarray(axes, dtype=np.float64)
    k, n_features = axes.shape
    lengths = np.broadcast_to(np.asarray(mean_squared_lengths, dtype=np.float64), (k,))
    parts = np.full(k, 1.0 / k) if shares is None else np.asarray(shares, dtype=np.float64)
    sines = np.asarray(mean_squared_sine(np.broadcast_to(np.asarray(angles, dtype=np.float64), (k,))))
    spread = sines / (n_features - 1)
    return float(np.sum(parts * lengths * spread)), parts * lengths * (1.0 - sines - spread)
