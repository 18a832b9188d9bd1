"""Random initialization: half-normal entries on the scale of X, independent of the order of the samples.

Numbers drawn row after row would change with the order of the rows, and a row of weight 2 would not equal
two rows. Here the numbers are a function of the row's direction, drawn once: a Gaussian projection, folded
many times into [0, 1]. Rows that differ by a few parts in a hundred get numbers that look independent; the
function is continuous, so that rounding stays rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix

_FOLDS = 100.0
_MIN_PROJECTIONS = 16  # the root mean square of the projections of a row estimates its norm


def random_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return positive random factors with scikit-learn's scale."""
    rng = generator(rng)
    scale = math.sqrt(data.typical() / k)
    Ht = data.to_device(scale * np.abs(rng.standard_normal((data.shape[1], k))))
    noise = noise_projections(data, k, rng)
    # `typical` is of the observed entries; rows with many missing ones get somewhat smaller entries.
    mean_row = data.typical() * data.shape[1]
    ones = data.to_device(np.ones((data.shape[1], 1)))
    W = data.map_rows(_random_rows, ones=ones, scale=scale, mean_row=mean_row, **noise)
    return W, Ht


def noise_projections(data: DataMatrix, k: int, rng: np.random.Generator) -> dict[str, Array]:
    """Draw the function that maps rows to random numbers."""
    projections = rng.standard_normal((data.shape[1], max(k, _MIN_PROJECTIONS)))
    return {"projections": data.to_device(projections), "shifts": data.to_device(2.0 * rng.random((1, k)))}


def half_normal_rows(block: LocalMatrix, *, projections: Array, shifts: Array) -> Array:
    """Return numbers with the distribution of |N(0, 1)| that depend on each row's direction alone."""
    xp, products = block.xp, block.times(projections)
    size = xp.sqrt(xp.mean(products * products, axis=1))[:, None]
    size = xp.where(size > 0, size, xp.ones_like(size))
    folded = _FOLDS * (products[:, : shifts.shape[1]] / size) + shifts
    uniform = xp.abs(folded - 2.0 * xp.floor(0.5 * folded) - 1.0)
    # sqrt(2) times the inverse error function in Winitzki's closed form (exact to 2 parts in 1000), because
    # the array API has none. Results lie between 1e-6 and 3.5, where the slope is harmless.
    a = 0.147
    uniform = 1e-6 + 0.9995 * uniform
    logarithm = xp.log((1.0 - uniform) * (1.0 + uniform))
    middle = 2.0 / (math.pi * a) + 0.5 * logarithm
    return math.sqrt(2.0) * xp.sqrt(xp.sqrt(middle * middle - logarithm / a) - middle)


def _random_rows(block: LocalMatrix, *, ones: Array, scale: float, mean_row: float, **noise: Any) -> Array:
    relative = block.times(ones) / (mean_row if mean_row > 0 else 1.0)
    # Rows of zeros: small, but positive, so that multiplicative updates can use them once data arrive.
    lower_bound = math.sqrt(float(block.xp.finfo(block.dtype).eps))
    sums = block.xp.where(relative > lower_bound, relative, block.xp.full_like(relative, lower_bound))
    return half_normal_rows(block, **noise) * (scale * sums)
