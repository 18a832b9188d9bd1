"""Initialization for alternating least squares: a few iterations of HALS, extra components merged.

It is here and not with the other initializations because it runs a solver.
"""

from __future__ import annotations

import math

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data import as_data_matrix
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.initializers.cone_or_random import cone_or_random_init, has_plenty
from nonneg.initializers.merged import merged_rows, merges, without_zeros
from nonneg.losses.penalties import Penalties
from nonneg.solvers.hals import hals

# Extra components, as a part of those wanted, and iterations. Chosen on the seven data sets of Table V (the
# study `initialization`): more iterations cost more than they save if the target is a large error, and fewer
# components end higher.
SURPLUS, N_ITER = 0.25, 4


def cone_merge_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Fit extra components from cones or random ones and merge pairs; of many samples, fit a part."""
    # Sparse data are near an error before a merge would pay, as in `cone_or_random_init`.
    rng = generator(rng)
    if has_plenty(data, k) or data.is_sparse:
        return cone_or_random_init(data, k, rng=rng)
    single, unit = _in_single_precision(data)
    W, Ht = _merged_fit(data if single is None else single, k, rng)
    if single is None:
        return W, Ht
    return math.sqrt(unit) * to_float64(W), math.sqrt(unit) * to_float64(Ht)


def _merged_fit(data: DataMatrix, k: int, rng: np.random.Generator) -> tuple[SampleArray, Array]:
    W, Ht = cone_or_random_init(data, k + math.ceil(SURPLUS * k), rng=rng)
    state = hals(data, W, Ht, penalties=Penalties(), max_iter=N_ITER, tol=0.0).state
    W, Ht = state.W, state.Ht
    _, (W_gram,) = data.map_reduce_rows(_gram, W, n_out=0)
    A, B = to_float64(W_gram), to_float64(Ht.T @ Ht)
    # Both factors of all components with the same norm: the unit of X is then in both.
    sizes = np.sqrt(np.maximum(np.diag(A), 1e-300)), np.sqrt(np.maximum(np.diag(B), 1e-300))
    balance = np.sqrt(np.where((np.diag(A) > 0) & (np.diag(B) > 0), sizes[1] / sizes[0], 1.0))
    to_W, to_H = merges(A * np.outer(balance, balance), B / np.outer(balance, balance), k)
    (W,), _ = data.map_reduce_rows(merged_rows, W, weights=data.to_device(balance[:, None] * to_W))
    return without_zeros(data, W, Ht @ data.to_device(to_H / balance[:, None]))


def _in_single_precision(data: DataMatrix) -> tuple[DataMatrix | None, float]:
    """Return dense data in float32, in units of the largest entry; None for others. It halves the time."""
    if not isinstance(data, LocalMatrix) or data.container != "dense" or data.dtype != np.float64:
        return None, 1.0
    if data.weights is not None or data.has_missing:
        return None, 1.0
    rows = data.dense_rows(0, data.shape[0])
    unit = float(rows.max(initial=0.0)) or 1.0
    small = np.empty(rows.shape, np.float32)
    return as_data_matrix(np.divide(rows, unit, out=small, casting="same_kind")), unit


def _gram(block: LocalMatrix, W: Array) -> tuple[tuple[()], tuple[Array]]:
    return (), (block.weighted_gram(W),)
