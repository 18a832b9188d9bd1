"""Random initialization: half-normal entries on the scale of X, independent of the order of the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._random import Seed, generator
from nonneg._threads import parallel_for
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.initializers.row_noise import (
    MIN_PROJECTIONS,
    half_normal,
    half_normal_rows,
    noise_projections,
)


def random_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return positive random factors with scikit-learn's scale."""
    rng = generator(rng)
    scale = math.sqrt(data.typical() / k)
    Ht = data.to_device(scale * np.abs(rng.standard_normal((data.shape[1], k))))
    noise = noise_projections(data, k, rng)
    # `typical` is of the observed entries; rows with many missing ones get somewhat smaller entries.
    mean_row = data.typical() * data.shape[1]
    (W,), _ = data.map_reduce_rows(
        _random_rows,
        ones=data.to_device(np.ones((data.shape[1], 1))),
        scale=scale,
        mean_row=mean_row,
        **noise,
    )
    return W, Ht


def random_inits(
    data: LocalMatrix, k: int, rngs: Sequence[np.random.Generator]
) -> list[tuple[SampleArray, Array]]:
    """Return what `random_init` returns for each generator, by one product with the data for all of them."""
    xp, n, (n_rows, n_columns) = data.xp, len(rngs), data.shape
    width = max(k, MIN_PROJECTIONS)
    Ht, projections = np.empty((n, n_columns, k)), np.empty((n_columns, n, width))
    shifts = np.empty((n, 1, k))

    def draw(start: int, stop: int) -> None:
        for i in range(start, stop):
            Ht[i] = np.abs(rngs[i].standard_normal((n_columns, k)))
            projections[:, i] = rngs[i].standard_normal((n_columns, width))
            shifts[i] = 2.0 * rngs[i].random((1, k))

    parallel_for(draw, n, chunk_size=1)
    scale = math.sqrt(data.typical() / k)
    products = data.times(data.to_device(projections.reshape(n_columns, n * width)))
    products = xp.permute_dims(xp.reshape(products, (n_rows, n, width)), (1, 0, 2))
    relative = _relative_sums(data, data.to_device(np.ones((n_columns, 1))), data.typical() * n_columns)
    W = half_normal(data, products, data.to_device(shifts)) * (scale * relative)
    of_H = data.to_device(scale * Ht)
    return [(W[i], of_H[i]) for i in range(n)]


def _random_rows(
    block: LocalMatrix, *, ones: Array, scale: float, mean_row: float, **noise: Any
) -> tuple[tuple[Array], tuple[()]]:
    relative = _relative_sums(block, ones, mean_row)
    return (half_normal_rows(block, **noise) * (scale * relative),), ()


def _relative_sums(block: LocalMatrix, ones: Array, mean_row: float) -> Array:
    relative = block.times(ones) / (mean_row if mean_row > 0 else 1.0)
    # Rows of zeros: small, but positive, so that multiplicative updates can use them once data arrive.
    lower_bound = math.sqrt(float(block.xp.finfo(block.dtype).eps))
    return block.xp.where(relative > lower_bound, relative, block.xp.full_like(relative, lower_bound))
