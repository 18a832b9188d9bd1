"""Initialization chosen by the data: fitted to some of the samples or features where there are many of them,
cones where the samples lie in cones, and random components elsewhere and for sparse data.
"""

from __future__ import annotations

import numpy as np

from nonneg._arrays import numpy_dtype, to_float64, to_numpy
from nonneg._random import Seed, generator
from nonneg._typing import Array, FloatArray, IntArray, SampleArray
from nonneg.cones.initialization import cone_init
from nonneg.data import as_data_matrix
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes

# Those of the seven data sets of Table V on which cones are ahead have fractions up to 0.30, the others from
# 0.53 (docs/reproduced/studies/initialization): the geometric mean of the two.
_LIMIT = 0.4
_PER_COMPONENT, _FEWEST = 4, 100  # samples on which the choice rests
# Some of many samples (or features): this many per component, where there are ten times as many or more, so
# that ten iterations on them cost about as much as one on all. Chosen on data of Table V and on digits:
# half as many are worse, twice as many cost more than they save.
_SUBSAMPLE, _PLENTY = 20, 10
# The numbers of iterations on them, the larger one as long as each lowers the squared error by this share.
_ITERATIONS, _MAX_ITERATIONS, _GAIN = 10, 20, 0.01
_PASSES, _SHRINK = 10, 0.1  # of HALS over the rows of a factor
_MOMENTUM, _GROWTH, _CEILING_GROWTH, _DECAY = 0.5, 1.05, 1.01, 1.5  # those of the solver
_SMALLEST = 1e-3  # entry of a factor, as a share of their mean


def cone_or_random_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return the initialization from cones, or random components where cones explain too little."""
    rng = generator(rng)
    # Sparse data need few iterations from random numbers, fewer than a look at some samples costs.
    if not (isinstance(data, LocalMatrix) and data.is_sparse):
        if isinstance(data, LocalMatrix) and has_plenty(data, k):
            return _fitted_to_some(data, k, rng)
        if unexplained_by_cones(data, k, rng) < _LIMIT:
            return cone_init(data, k)
    return _with_multiples(data, data.to_device(rng.random((data.shape[1], k))))


def has_plenty(data: DataMatrix, k: int) -> bool:
    """Return whether a fit of some of the samples or features stands for one of all."""
    dense = isinstance(data, LocalMatrix) and not data.is_sparse
    many = max(data.shape) >= _PLENTY * _SUBSAMPLE * k
    return dense and many and data.weights is None and not data.has_missing


def _with_multiples(data: DataMatrix, Ht: Array) -> tuple[SampleArray, Array]:
    # Solvers update W first: a multiple of ones in every row is enough, and costs one pass over the data.
    total = data.xp.sum(Ht, axis=1)[:, None]
    square = data.xp.sum(total * total)
    square = data.xp.where(square > 0, square, data.xp.ones_like(square))
    (W,), _ = data.map_reduce_rows(_multiples, total=total / square, k=Ht.shape[1])
    return W, Ht


def _fitted_to_some(data: LocalMatrix, k: int, rng: np.random.Generator) -> tuple[SampleArray, Array]:
    """Fit some samples, or all samples in some features, from their cones by a few iterations of HALS."""
    n, m = data.shape
    chosen = np.sort(rng.permutation(max(n, m))[: _SUBSAMPLE * k])
    by_rows = n >= m
    some = data.take_rows(chosen) if by_rows else _columns(data, chosen)
    X = np.ascontiguousarray(to_numpy(some), dtype=numpy_dtype(data.dtype))
    W, Ht = (np.ascontiguousarray(to_numpy(factor)) for factor in cone_init(as_data_matrix(X), k))
    W, Ht = _fitted(X, W, Ht)
    if by_rows:
        return _with_multiples(data, _positive(data, data.to_device(Ht)))
    W = _positive(data, data.to_device(W))
    # The features of all samples, from the multiple of ones that fits best.
    gram, cross = W.T @ W, data.transposed_times(W)
    multiples = data.xp.sum(cross, axis=1)[:, None] / data.xp.clip(data.xp.sum(gram), 1e-30, None)
    return W, _positive(data, _updated(data.xp.repeat(multiples, k, axis=1), gram, cross))


def _fitted(X: FloatArray, W: FloatArray, Ht: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Run HALS with extrapolation and restarts (Ang & Gillis 2019)."""
    momentum, ceiling, least = _MOMENTUM, 1.0, np.inf
    ahead_W, ahead_Ht = W, Ht
    half_square = 0.5 * float(np.sum(X * X, dtype=np.float64))
    for at in range(1, _MAX_ITERATIONS + 1):
        new_W = _updated(ahead_W, ahead_Ht.T @ ahead_Ht, X @ ahead_Ht)
        ahead_W = np.maximum(new_W + momentum * (new_W - W), 0.0)
        gram, cross = ahead_W.T @ ahead_W, np.ascontiguousarray(X.T @ ahead_W)
        new_Ht = _updated(ahead_Ht, gram, cross)
        loss = float(np.sum(new_Ht * (0.5 * (new_Ht @ gram) - cross), dtype=np.float64))
        if loss > least:
            ahead_W, ahead_Ht, ceiling, momentum = W, Ht, momentum, momentum / _DECAY
            continue
        ahead_Ht = np.maximum(new_Ht + momentum * (new_Ht - Ht), 0.0)
        settled = least - loss <= _GAIN * (half_square + loss)
        W, Ht, least = new_W, new_Ht, loss
        if settled and at >= _ITERATIONS:
            break
        ceiling = min(1.0, _CEILING_GROWTH * ceiling)
        momentum = min(ceiling, _GROWTH * momentum)
    return W, Ht


def _columns(data: LocalMatrix, chosen: IntArray) -> Array:
    rows = data.dense_rows(0, data.shape[0])
    return data.xp.take(rows, data.xp.asarray(chosen, device=rows.device), axis=1)


def _updated(factor: Array, gram: Array, cross: Array) -> Array:
    return hals_passes(factor, SharedGram(gram), cross, max_passes=_PASSES, shrink=_SHRINK)[0]


def _positive(data: DataMatrix, factor: Array) -> Array:
    # Multiplicative updates never leave zero.
    smallest = _SMALLEST * data.xp.mean(factor)
    return data.xp.where(factor > smallest, factor, smallest * data.xp.ones_like(factor))


def unexplained_by_cones(data: DataMatrix, k: int, rng: np.random.Generator) -> float:
    """Return the squared error of k cones over that of a single direction, on some of the samples; 0 to 1."""
    # Centroids stand for the directions of their cones, the mean for the single one.
    rows = _some_rows(data, max(_PER_COMPONENT * k, _FEWEST), rng)
    gram = rows @ rows.T
    squares = np.diag(gram)
    if not len(rows):
        return 1.0
    cosines = gram / np.sqrt(squares[:, None] * squares)
    nearest = cosines[int(np.argmin(cosines.sum(axis=1)))]
    for _ in range(k - 1):
        nearest = np.maximum(nearest, cosines[int(np.argmin(nearest))])
    left = float(squares @ (1.0 - np.minimum(nearest, 1.0) ** 2))
    sums = gram.sum(axis=1)
    single = float(squares.sum() - sums @ sums / sums.sum())
    rounding = 100.0 * float(data.xp.finfo(data.dtype).eps) * float(squares.sum())
    return min(left / single, 1.0) if left > rounding and single > rounding else 0.0


def _some_rows(data: DataMatrix, n_wanted: int, rng: np.random.Generator) -> FloatArray:
    """Return random samples, or all of them where there are few, without zeros, in units of the largest."""
    present = None if data.weights is None else np.asarray(to_numpy(data.weights)) > 0
    chosen = np.arange(data.shape[0]) if present is None else np.flatnonzero(present)
    if len(chosen) > n_wanted:
        chosen = np.sort(rng.permutation(chosen)[:n_wanted])
    rows = np.nan_to_num(to_float64(data.take_rows(chosen)))
    largest = float(rows.max(initial=0.0))
    kept: FloatArray = rows[rows.any(axis=1)] / (largest if largest > 0 else 1.0)
    return kept


def _multiples(block: LocalMatrix, *, total: Array, k: int) -> tuple[tuple[Array], tuple[()]]:
    return (block.xp.repeat(block.times(total), k, axis=1),), ()
