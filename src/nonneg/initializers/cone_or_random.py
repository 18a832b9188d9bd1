"""Initialization chosen by the data: cones where the samples lie in cones, random components elsewhere."""

from __future__ import annotations

import numpy as np

from nonneg._arrays import to_float64, to_numpy
from nonneg._random import Seed, generator
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.cones.initialization import cone_init
from nonneg.data.matrix import DataMatrix, LocalMatrix

# Those of the seven data sets of Table V on which cones are ahead have fractions up to 0.30, the others from
# 0.53 (docs/reproduced/studies/initialization): the geometric mean of the two.
_LIMIT = 0.4
_PER_COMPONENT, _FEWEST = 4, 100  # samples on which the choice rests


def cone_or_random_init(data: DataMatrix, k: int, *, rng: Seed = None) -> tuple[SampleArray, Array]:
    """Return the initialization from cones, or random components where cones explain too little."""
    rng = generator(rng)
    if unexplained_by_cones(data, k, rng) < _LIMIT:
        return cone_init(data, k)
    Ht = data.to_device(rng.random((data.shape[1], k)))
    # Solvers update W first: a multiple of ones in every row is enough, and costs one pass over the data.
    total = data.xp.sum(Ht, axis=1)[:, None]
    (W,), _ = data.map_reduce_rows(_multiples, total=total / data.xp.sum(total * total), k=k)
    return W, Ht


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
