"""Random initialization: half-normal entries on the scale of X, independent of the order of the samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.initializers.row_noise import half_normal_rows, noise_projections


def random_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return positive random factors with scikit-learn's scale."""
    rng = generator(rng)
    scale = math.sqrt(data.mean() / k)
    Ht = data.to_device(scale * np.abs(rng.standard_normal((data.shape[1], k))))
    noise = noise_projections(data, k, rng)
    # `mean` is of the observed entries; rows with many missing ones get somewhat smaller entries.
    mean_row = data.mean() * data.shape[1]
    (W,), _ = data.map_reduce_rows(
        _random_rows,
        ones=data.to_device(np.ones((data.shape[1], 1))),
        scale=scale,
        mean_row=mean_row,
        **noise,
    )
    return W, Ht


def _random_rows(
    block: LocalMatrix, *, ones: Array, scale: float, mean_row: float, **noise: Any
) -> tuple[tuple[Array], tuple[()]]:
    relative = block.times(ones) / (mean_row if mean_row > 0 else 1.0)
    # Rows of zeros: small, but positive, so that multiplicative updates can use them once data arrive.
    lower_bound = math.sqrt(float(block.xp.finfo(block.dtype).eps))
    relative = block.xp.where(relative > lower_bound, relative, block.xp.full_like(relative, lower_bound))
    return (half_normal_rows(block, **noise) * (scale * relative),), ()
