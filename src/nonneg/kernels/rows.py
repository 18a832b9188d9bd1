"""Sums and elementwise operations over the rows of tall NumPy arrays, on all threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array, scalar
from nonneg._compiled import core
from nonneg._threads import BLAS, ENTRY, SMALL_PRODUCT, parallel_for, parallel_sum, team_size
from nonneg.kernels.products import inner_product

# Entries that a thread takes at once; temporary arrays of this size stay in its cache.
CHUNK_ENTRIES = 1 << 14
# Entries of arrays of other namespaces that are taken at once: temporary arrays of 32 MB in float64.
GPU_ENTRIES = 1 << 22
# Arrays up to this size are done at once, without ranges.
SMALL = 1 << 16


def _chunk(array: Any) -> int:
    return max(1, CHUNK_ENTRIES // max(1, array.shape[1]))


def map_rows(function: Callable[..., Any], *arrays: Any, dtype: Any = None) -> Any:
    """Return an array of the shape of the first one, from a function of some rows of all of them."""
    first = arrays[0]
    if first.size <= SMALL:
        return np.ascontiguousarray(function(*arrays), dtype=first.dtype if dtype is None else dtype)
    out = np.empty(first.shape, dtype=first.dtype if dtype is None else dtype)
    step = _chunk(first)

    def work(start: int, stop: int) -> None:
        for begin in range(start, stop, step):
            rows = slice(begin, min(begin + step, stop))
            out[rows] = function(*(array[rows] for array in arrays))

    parallel_for(work, first.shape[0], chunk_size=step, operations=4.0 * first.size)
    return out


def sum_rows(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return the sum of what a function returns for some rows of the arrays; on a GPU it stays there."""
    first = arrays[0]
    if not isinstance(first, np.ndarray):
        step = max(1, GPU_ENTRIES // max(1, first.shape[1]))
        total: Any = 0.0
        for begin in range(0, first.shape[0], step):
            stop = min(begin + step, first.shape[0])
            total = total + function(*(array[begin:stop, ...] for array in arrays))
        return scalar(total)
    if first.size <= SMALL:
        return float(function(*arrays))
    step = _chunk(first)

    def work(start: int, stop: int) -> float:
        ranges = (slice(begin, min(begin + step, stop)) for begin in range(start, stop, step))
        return sum((float(function(*(array[rows] for array in arrays))) for rows in ranges), 0.0)

    return float(parallel_sum(work, first.shape[0], chunk_size=step, operations=4.0 * first.size))


def _compiled(*arrays: Any) -> Any:
    """Return the core for large plain arrays, whatever the number of threads; else None."""
    first = arrays[0]
    plain = all(is_float_array(a) and a.flags.c_contiguous and a.dtype == first.dtype for a in arrays)
    return core() if plain and first.size > SMALL else None


def absolute_sum(array: Any) -> Any:
    """Return the sum of the absolute entries; on a GPU it stays there."""
    if not isinstance(array, np.ndarray):
        return array_namespace(array).linalg.vector_norm(array, ord=1)
    if (compiled := _compiled(array)) is not None:
        return float(compiled.absolute_sum(array.ravel(), team_size(ENTRY * array.size)))
    return sum_rows(lambda rows: np.abs(rows).sum(), array)


def product_sum(a: Any, b: Any) -> Any:
    """Return the sum of the products of the entries, in float64; on a GPU it stays there."""
    if not isinstance(a, np.ndarray):
        xp = array_namespace(a)
        return sum_rows(lambda x, y: xp.sum(xp.astype(x, xp.float64) * xp.astype(y, xp.float64)), a, b)
    if (compiled := _compiled(a, b)) is not None:
        return float(compiled.product_sum(a.ravel(), b.ravel(), team_size(ENTRY * a.size)))
    return sum_rows(lambda x, y: np.vdot(*(z.astype(np.float64, copy=False) for z in (x, y))), a, b)


def nonzero_count(array: Any) -> int:
    """Return the number of entries other than zero."""
    return int(sum_rows(lambda rows: np.count_nonzero(rows != 0), array))


def extrapolated(new: Any, old: Any, momentum: Any) -> Any:
    """Return max(new + momentum (new - old), 0); `momentum` may be a number on the GPU of the arrays."""
    if not isinstance(new, np.ndarray):
        moved = new - old  # in place: these are the largest arrays of a fit on a GPU
        moved *= momentum
        moved += new
        return array_namespace(new).clip(moved, min=0.0)
    if (compiled := _compiled(new, old)) is not None:
        out = np.empty_like(new)
        threads = team_size(ENTRY * new.size)
        compiled.extrapolate(new.ravel(), old.ravel(), momentum, out.reshape(-1), threads)
        return out
    return map_rows(lambda x, y: np.maximum(x + momentum * (x - y), 0), new, old)


def converted(array: Any, factor: float, dtype: Any) -> Any:
    """Return the entries times a number in another dtype."""
    return map_rows(lambda rows: (rows * array.dtype.type(factor)).astype(dtype), array, dtype=dtype)


def gram_of(factor: Any, other: Any = None) -> Any:
    """Return factor' other; factor' factor by default."""
    other = factor if other is None else other
    if not isinstance(factor, np.ndarray):
        return factor.T @ other
    # In parts that depend on the shape alone: in float32 the order of a sum decides turns of an iteration.
    operations = 2.0 * BLAS * factor.shape[0] * factor.shape[1] * other.shape[1]
    if operations < SMALL_PRODUCT:
        return factor.T @ other
    if (found := inner_product(factor, other)) is not None:
        return found
    return parallel_sum(
        lambda start, stop: factor[start:stop].T @ other[start:stop],
        factor.shape[0],
        chunk_size=_chunk(factor),
        operations=operations,
    )
