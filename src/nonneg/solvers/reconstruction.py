"""How well W H reproduces the data: the reconstruction error and the mean deviance."""

from __future__ import annotations

import math

from nonneg._typing import Array, SampleArray
from nonneg.certificates.svd_lower_bound import relative_error_from_square, squared_residual
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.matrix import rows_only
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties


def mean_deviance(data: DataMatrix, W: SampleArray, Ht: Array, beta: float) -> float:
    """Return twice the mean beta-divergence per entry."""
    n_entries = data.observed_weight()
    if n_entries == 0:
        return 0.0
    total = squared_residual(data, W, Ht) if beta == 2.0 else 2.0 * objective(data, W, Ht, beta=beta)
    return total / n_entries


@rows_only
def _penalty_rows(block: LocalMatrix, W: Array, *, penalties: Penalties) -> tuple[tuple[()], tuple[float]]:
    return (), (penalties.of_W(W, block.weights),)


def reconstruction_error(
    data: DataMatrix, W: SampleArray, Ht: Array, *, beta: float, penalties: Penalties, value: float
) -> float:
    """Return the square root of twice the loss without penalties: the Frobenius norm if beta is 2."""
    loss = value
    if penalties.any:
        _, (of_W,) = data.map_reduce_rows(_penalty_rows, W, n_out=0, penalties=penalties)
        loss -= of_W + penalties.of_H(Ht)
    if beta == 2.0:
        squared_norm = data.squared_norm()
        if squared_norm > 0:
            return relative_error_from_square(data, W, Ht, 2 * loss / squared_norm) * math.sqrt(squared_norm)
    return math.sqrt(2 * max(loss, 0.0))
