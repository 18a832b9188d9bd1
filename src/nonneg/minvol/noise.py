"""The noise level of data near rank k, and the weight of the volume that follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nonneg._ties import fixed_vectors
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix
from nonneg.data.spectral import leading_eigenpairs

# The weight of the volume in units of n_samples * variance. Let f samples per unit of distance lie about a
# facet. Pushing the facet inward by dt adds n f variance / 4 dt to the misfit of the samples that noise has
# put outside, and takes lam times the relative area of the facet, f for uniform weights, from the volume
# term. Both balance at the true facet if lam = n variance / 4. Other densities move it by a fraction of the
# standard deviation.
WEIGHT = 0.25
# Noise is taken to be at least this share of the thinnest direction of the samples: data without noise have
# no weight of their own, and a smaller one only slows the iterations.
LOWEST = 1e-3
# Data of zeros have some, too; its square is a number.
SMALLEST = 1e-150


@dataclass(frozen=True)
class NoiseLevel:
    """The standard deviation of the noise in an entry of X."""

    sigma: float
    estimated: bool  # whether it was measured, and is not the floor or a given number
    basis: FloatArray  # the leading right singular vectors of X, one per component
    rest: float = 0.0  # what the best k components of any sign leave of X, where the level was measured

    def weight(self, n_samples: float) -> float:
        """Return the weight of the volume for some samples."""
        return WEIGHT * n_samples * self.sigma**2


def noise_level(data: DataMatrix, k: int, known: float | None = None) -> NoiseLevel:
    """Estimate the noise from the largest singular value beyond the first k."""
    # That of a matrix of independent entries is sigma (sqrt(n) + sqrt(m)) (Geman 1980, Annals of Probability
    # 8(2)). Where the rest is no noise but error of the model, shared by many features, the largest value
    # says how much of it to expect inside the subspace of the components; the mean of the rest would not.
    n, m = data.shape
    rank = min(k, n, m)
    count = min(k + 1, n, m)
    values, vectors = leading_eigenpairs(data, count)
    singular = np.sqrt(np.maximum(values, 0.0))
    eps = float(data.xp.finfo(data.dtype).eps)
    floor = max(LOWEST * float(singular[rank - 1]), eps * float(singular[0])) / math.sqrt(n)
    floor = max(floor, SMALLEST)
    basis = fixed_vectors(values, vectors)[:, :rank]
    if known is not None:
        return NoiseLevel(max(float(known), floor), False, basis)
    if count <= k:
        return NoiseLevel(floor, False, basis)
    sigma = float(singular[k]) / (math.sqrt(n) + math.sqrt(m))
    if sigma < floor:
        return NoiseLevel(floor, False, basis)
    total = float(data.squared_norm())
    # The difference has the rounding of the sums.
    rest = max(total - float(values[:k].sum()), 0.0) + 4.0 * eps * total
    return NoiseLevel(sigma, True, basis, math.sqrt(rest))
