"""Newton steps for the Kullback-Leibler divergence on dense tables, by the compiled core."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from nonneg._compiled import core
from nonneg._threads import BLAS, is_held, single_threaded_blas, team_size
from nonneg.kernels.newton_targets import LEAST_DIAGONAL

# Rows of a tile of the core, and the largest number of groups of tiles with sums of their own: four for each
# of sixteen threads.
TILE, GROUPS = 128, 64


def tiled_newton_pass(
    data: Any,
    W: Any,
    before: Any,
    momentum: float,
    Ht: Any,
    correlations: Any,
    squares: Any,
    *,
    l1: float,
    l2: float,
    lower_bound: float,
    unit: float,
    fraction: float,
    shortest: float,
    tries: int,
) -> tuple[Any, tuple[Any, ...]]:
    """Move the rows of W by one guarded Newton step each; see `solvers.newton.newton_pass`."""
    n_rows, n = data.shape
    k, dtype = Ht.shape[1], Ht.dtype
    info = np.finfo(dtype)
    weights = np.ones(n_rows, dtype) if data.weights is None else np.ascontiguousarray(data.weights, dtype)
    W, before, Ht, squares = (np.ascontiguousarray(array) for array in (W, before, Ht, squares))
    H, means = np.ascontiguousarray(Ht.T), Ht.sum(axis=0) / dtype.type(unit)
    tiny = float(info.smallest_normal)
    # Sums are as large as H: groups have so many rows that all of their sums take less memory than the data.
    tiles = max(-(-n_rows // (TILE * GROUPS)), -(-4 * k // TILE), 1)
    new, at_start, at_end, total = np.empty((n_rows, k), dtype), np.zeros(n), np.zeros(n), np.zeros(k)
    sums, curvatures, gram = (np.zeros(shape, dtype) for shape in ((n, k), (n, k + 1), (k, k)))
    with nullcontext() if is_held() else single_threaded_blas():
        core().kl_newton(
            np.ascontiguousarray(data.raw_rows(), dtype=dtype), weights, W, before, float(momentum), fraction,
            Ht, H, squares, means, np.ascontiguousarray(correlations, dtype=dtype), l1, l2, lower_bound,
            tiny * LEAST_DIAGONAL, tiny, float(info.max) ** 0.25, shortest, tries, tiles, new, at_start,
            at_end, total, sums, curvatures, gram, team_size(BLAS * 12.0 * n_rows * n * k),
        )  # fmt: skip
    start = 0.0 if momentum else at_start
    return new, (start, at_end, sums, curvatures, gram, total.astype(dtype))
