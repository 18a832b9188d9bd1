"""Parts of an iteration of transforms on long frames, compiled: what is not a product of BLAS.

Every function takes a batch of one run in NumPy's float64, and has its twin in the array code of
`nonneg.transforms`; `serves` tells where it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray

# With more components the products of BLAS are faster.
MOST_COMPONENTS = 12
# One division serves two entries of a model: their product must not underflow.
LEAST_EPS0 = 1e-100
# Below this number of entries a call costs as much as its work.
LEAST_ENTRIES = 1 << 12


def serves(array: Any) -> bool:
    """Tell whether the kernels take an array."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.ndim == 3
        and array.shape[0] == 1
        and array.size >= LEAST_ENTRIES
        and array.flags.c_contiguous
    )


def sums_of_squares(X: FloatArray, starts: IntArray, counts: IntArray) -> FloatArray:
    """Return the sums of squares over the rows of every frame."""
    from nonneg.kernels.frame_rows import numba as compiled

    found = np.empty((1, len(starts), X.shape[2]))
    compiled.sum_squares(X[0], starts, counts, found[0])
    return found


def weighted_rows(
    X: FloatArray, weights: FloatArray, factor: float | np.floating[Any], starts: IntArray, counts: IntArray
) -> FloatArray:
    """Multiply the rows of every frame by its weights."""
    from nonneg.kernels.frame_rows import numba as compiled

    found = np.empty_like(X)
    compiled.weight_rows(X[0], weights[0], factor, starts, counts, found[0])
    return found


def add_single(
    X: FloatArray, rest: FloatArray, scale: float, starts: IntArray, counts: IntArray
) -> FloatArray:
    """Add rows in single precision to others, in place, and return the sums of squares over every frame."""
    from nonneg.kernels.frame_rows import numba as compiled

    found = np.empty((1, len(starts), X.shape[2]))
    compiled.add_single(X[0], rest[0], scale, starts, counts, found[0])
    return found


def weighted_rows_twice(
    X: FloatArray, weights: FloatArray, starts: IntArray, counts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Multiply the rows of every frame by its weights, in double and in single precision."""
    from nonneg.kernels.frame_rows import numba as compiled

    found, single = np.empty_like(X), np.empty_like(X, dtype=np.float32)
    compiled.weight_rows_twice(X[0], weights[0], starts, counts, found[0], single[0])
    return found, single


def equalized_factors(
    V: FloatArray, eps0: float, activations: FloatArray, components: FloatArray, n_updates: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Make updates of majorization-equalization."""
    from nonneg.kernels.frame_rows import numba as compiled

    activations, components = np.array(activations, order="C"), np.array(components, order="C")
    inverse = np.empty_like(V)
    compiled.equalize_factors(V[0], eps0, activations[0], components[0], n_updates, inverse[0])
    return activations, components, inverse


def measured_fit(V: FloatArray, eps0: float, inverse: FloatArray) -> tuple[FloatArray, ...]:
    """Return C, L and I."""
    from nonneg.kernels.frame_rows import numba as compiled

    facts = np.empty(3)
    compiled.fit_measures(V[0], eps0, inverse[0], facts)
    return facts[:1], facts[1:2], facts[2:]


def sum_of_logs(V: FloatArray, eps0: float) -> FloatArray:
    """Return the sum of log(V + eps0)."""
    from nonneg.kernels.frame_rows import numba as compiled

    return np.array([compiled.log_sum(V[0], eps0)])
