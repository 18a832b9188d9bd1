"""Sums and elementwise operations over the rows of tall NumPy arrays, on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array, scalar
from nonneg._compiled import core
from nonneg._threads import parallel_for
from nonneg.kernels.products import inner_product

# Entries that a thread takes at once; temporary arrays of this size stay in its cache.
CHUNK_ENTRIES = 1 << 14
# Entries of arrays of other namespaces that are taken at once: temporary arrays of 32 MB in float64.
GPU_ENTRIES = 1 << 22


def ranges(first: int, stop: int, step: int) -> Iterator[slice]:
    """Yield the parts of a range, `step` at a time."""
    return (slice(begin, min(begin + step, stop)) for begin in range(first, stop, step))


def map_rows(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return an array of the shape of the first one, from a function of some rows of all of them."""
    first = arrays[0]
    out = np.empty(first.shape, dtype=first.dtype)
    step = max(1, CHUNK_ENTRIES // max(1, first.shape[1]))
    if first.shape[0] <= step:
        out[...] = function(*arrays)
        return out

    def work(start: int, stop: int) -> None:
        for rows in ranges(start, stop, step):
            out[rows] = function(*(array[rows] for array in arrays))

    parallel_for(work, first.shape[0], chunk_size=step, operations=4.0 * first.size)
    return out


def sum_rows(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return the sum of what a function returns for some rows of the arrays; on a GPU it stays there."""
    first = arrays[0]
    on_host = isinstance(first, np.ndarray)
    step = max(1, (CHUNK_ENTRIES if on_host else GPU_ENTRIES) // max(1, first.shape[1]))

    def work(start: int, stop: int) -> Any:
        parts = (function(*(array[rows, ...] for array in arrays)) for rows in ranges(start, stop, step))
        return sum(parts, 0.0)

    if not on_host:
        return scalar(work(0, first.shape[0]))
    if first.shape[0] <= step:
        return float(function(*arrays))
    parts = parallel_for(work, first.shape[0], chunk_size=step, operations=4.0 * first.size)
    return float(sum(parts))


def absolute_sum(array: Any) -> Any:
    """Return the sum of the absolute entries; on a GPU it stays there."""
    if not isinstance(array, np.ndarray):
        return array_namespace(array).linalg.vector_norm(array, ord=1)
    return sum_rows(lambda rows: np.abs(rows).sum(), array)


def product_sum(a: Any, b: Any) -> Any:
    """Return the sum of the products of the entries, in float64; on a GPU it stays there."""
    if not isinstance(a, np.ndarray):
        xp = array_namespace(a)
        return sum_rows(lambda x, y: xp.sum(xp.astype(x, xp.float64) * xp.astype(y, xp.float64)), a, b)
    return sum_rows(lambda *rows: np.vdot(*(x.astype(np.float64, copy=False) for x in rows)), a, b)


def extrapolated(new: Any, old: Any, momentum: Any) -> Any:
    """Return max(new + momentum (new - old), 0); `momentum` may be a number on the GPU of the arrays."""
    if not isinstance(new, np.ndarray):
        moved = new - old  # in place: these are the largest arrays of a fit on a GPU
        moved *= momentum
        moved += new
        return array_namespace(new).clip(moved, min=0.0)
    return map_rows(lambda new, old: np.maximum(new + momentum * (new - old), 0), new, old)


def gram_of(factor: Any, other: Any = None) -> Any:
    """Return factor' other; factor' factor by default."""
    other = factor if other is None else other
    if not isinstance(factor, np.ndarray):
        return factor.T @ other
    # In parts that depend on the shape alone: in float32 the order of a sum decides turns of an iteration.
    product = inner_product(factor, other)
    return factor.T @ other if product is None else product


def core_rows(block: Any) -> tuple[Any, ...] | None:
    """Return the rows of a LocalMatrix: an array, or indptr, indices and data; None without the core."""
    rows = block.raw_rows() if core() is not None else None
    if rows is None:
        return None
    if isinstance(rows, np.ndarray):
        return (rows,) if is_float_array(rows) else None
    indptr, indices, data = rows
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    return (indptr, indices, np.ascontiguousarray(data)) if is_float_array(data) else None
