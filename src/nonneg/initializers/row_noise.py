"""Random numbers per sample: equal samples get equal numbers, in any order.

Numbers drawn row after row would change with the order of the rows, and a row of weight 2 would not equal
two rows. Here the numbers are a function of the row's direction, drawn once: a Gaussian projection, folded
many times into [0, 1]. Rows that differ by a few parts in a hundred get numbers that look independent; the
function is continuous, so that rounding stays rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._typing import Array
from nonneg.data.matrix import DataMatrix, LocalMatrix

_FOLDS = 100.0
MIN_PROJECTIONS = 16  # the root mean square of the projections of a row estimates its norm


def noise_projections(data: DataMatrix, k: int, rng: np.random.Generator) -> dict[str, Array]:
    """Draw the function that maps rows to random numbers."""
    projections = rng.standard_normal((data.shape[1], max(k, MIN_PROJECTIONS)))
    return {"projections": data.to_device(projections), "shifts": data.to_device(2.0 * rng.random((1, k)))}


def half_normal_rows(block: LocalMatrix, *, projections: Array, shifts: Array) -> Array:
    """Return numbers with the distribution of |N(0, 1)| that depend on each row's direction alone."""
    return half_normal(block, block.times(projections), shifts)


def half_normal(block: LocalMatrix, products: Array, shifts: Array) -> Array:
    """Return these numbers from the projections of the rows, also of several draws along a first axis."""
    xp = block.xp
    size = xp.sqrt(xp.mean(products * products, axis=-1))[..., None]
    size = xp.where(size > 0, size, xp.ones_like(size))
    folded = _FOLDS * (products[..., : shifts.shape[-1]] / size) + shifts
    return _half_normal(xp, xp.abs(folded - 2.0 * xp.floor(0.5 * folded) - 1.0))


def _half_normal(xp: Any, uniform: Array) -> Array:
    # sqrt(2) times the inverse error function in Winitzki's closed form (exact to 2 parts in 1000), because
    # the array API has none. Scaled so that
    # the results lie between 1e-6 and 3.5, where the slope is harmless.
    a = 0.147
    uniform = 1e-6 + 0.9995 * uniform
    logarithm = xp.log((1.0 - uniform) * (1.0 + uniform))
    middle = 2.0 / (math.pi * a) + 0.5 * logarithm
    return math.sqrt(2.0) * xp.sqrt(xp.sqrt(middle * middle - logarithm / a) - middle)
