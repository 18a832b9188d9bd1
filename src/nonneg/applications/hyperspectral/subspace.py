"""Pixels in the directions that their endmembers span, with the noise that is left there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray

# Noise is taken to be at least this share of the thinnest direction, as in `minvol.noise`.
LOWEST = 1e-3
# Where the largest direction of the rest exceeds its mean by this factor, the materials vary by more than
# noise.
VARIED = 2.0


@dataclass(frozen=True)
class Subspace:
    """Pixels in as many dimensions as there are endmembers."""

    points: FloatArray
    basis: FloatArray  # orthonormal, one column per dimension
    noise: float  # standard deviation per dimension, of noise and of what else the endmembers do not explain
    exact: bool  # whether the pixels have no noise
    varied: bool  # whether it is mostly variety of the materials
    sums: FloatArray  # products of points with it are the sums of the bands

    @classmethod
    def of(cls, spectra: FloatArray, k: int, ones: FloatArray) -> Subspace | None:
        """Project pixels; None if they have fewer dimensions."""
        n, m = spectra.shape
        if k > min(n, m):
            return None
        values, vectors = np.linalg.eigh(spectra.T @ spectra)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        if not values[k - 1] > 1e-12 * values[0]:
            return None
        basis = fixed_vectors(values[:k], vectors[:, :k])
        floor = max(LOWEST * math.sqrt(values[k - 1]), 1e-7 * math.sqrt(values[0])) / math.sqrt(n)
        # Where the rest is variety of the materials, shared by many bands, the largest direction says how
        # much of it to expect inside; for white noise both are the same.
        mean = math.sqrt(float(values[k:].sum()) / (n * (m - k))) if k < m else 0.0
        largest = math.sqrt(values[k]) / (math.sqrt(n) + math.sqrt(m)) if k < m else 0.0
        noise = max(mean, largest)
        exact = noise < 1e-3 * floor / LOWEST
        varied = largest > VARIED * mean and not exact
        return cls(spectra @ basis, basis, max(noise, floor), exact, varied, ones @ basis)
