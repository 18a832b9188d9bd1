"""Newton steps of rows (compiled): one call for a block instead of thirty, each of which holds the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg.kernels.hals.native import BLOCK, UNROLL, row_updates
from nonneg.kernels.hals.numba import hals_block
from nonneg.kernels.jit import jit, part
from nonneg.kernels.newton_targets.array_api import (
    LARGEST_FALL,
    LEAST_DIAGONAL,
    PASSES,
    SHRINK,
    SMALL_PART,
)

# Rows of the results of a row.
RESIDUAL, LINEAR, QUADRATIC, SLOPE = 0, 1, 2, 3


@part(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def targets_rows(
    update, factor, gradient, diagonal, gram, order, l1, l2, least, direction, cross, notes, start, stop
):
    """Write the steps of rows `start` to `stop` to `direction`; `cross` is scratch space.

    `update` is the address of `kernels.hals.native.row_updates`.
    """
    k = factor.shape[1]
    zero = factor.dtype.type(0)
    for i in range(start, stop):
        f, g, scaled, c = factor[i], gradient[i], direction[i], cross[i]
        size, moved = zero, zero
        for a in range(k):
            root = np.sqrt(max(diagonal[i, a], least))
            slope = g[a] / root
            value = f[a] * root
            scaled[a] = value
            c[a] = -slope
            size += value * value
            projected = value - max(value - slope, zero)
            moved += projected * projected
        for b in range(k):
            value = scaled[b]
            for a in range(k):
                c[a] += value * gram[b, a]
        notes[RESIDUAL, i] = np.sqrt(moved) / np.sqrt(size) if size > zero else np.sqrt(moved)
    given, numbers = np.empty(16, dtype=np.int64), np.empty(notes.shape[1] + 1)
    numbers[-1] = SHRINK
    hals_block(update, direction, gram, cross, order, PASSES, start, stop, given, numbers)
    for i in range(start, stop):
        f, g, d = factor[i], gradient[i], direction[i]
        largest = zero
        for a in range(k):
            largest = max(largest, f[a])
            d[a] /= np.sqrt(max(diagonal[i, a], least))
            cross[i, a] = zero
        for a in order:
            lowest = f[a] * f.dtype.type(LARGEST_FALL)
            if f[a] <= largest * f.dtype.type(SMALL_PART):
                lowest = zero
            cross[i, a] = max(d[a], lowest) - f[a]
        linear, quadratic, down = zero, zero, zero
        for a in range(k):
            step = cross[i, a]
            d[a] = step
            linear += (l1 + l2 * f[a]) * step
            quadratic += l2 * step * step
            down += g[a] * step
        notes[LINEAR, i] = linear
        notes[QUADRATIC, i] = quadratic
        notes[SLOPE, i] = down


@jit(error_model="numpy")
def targets_block(
    update, factor, gradient, diagonal, gram, order, l1, l2, least, direction, cross, notes, start, stop
):
    """Do what `targets_rows` does, for Python."""
    targets_rows(
        update, factor, gradient, diagonal, gram, order, l1, l2, least, direction, cross, notes, start, stop
    )


def newton_targets(
    factor: Any, gradient: Any, diagonal: Any, correlations: Any, order: Any, l1: float, l2: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the steps of all rows; see `kernels.newton_targets`."""
    n_rows, k = factor.shape
    kind = factor.dtype.type
    factor, gradient, diagonal = (np.ascontiguousarray(part) for part in (factor, gradient, diagonal))
    padded = np.zeros((k, -(-k // UNROLL) * UNROLL), dtype=factor.dtype)
    padded[:, :k] = correlations
    turns = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
    direction, cross = np.empty_like(factor), np.empty_like(factor)
    notes = np.empty((4, n_rows), dtype=factor.dtype)
    least = kind(np.finfo(factor.dtype).smallest_normal * LEAST_DIAGONAL)

    update = row_updates(factor.dtype).address

    def work(start: int, stop: int) -> None:
        arrays = update, factor, gradient, diagonal, padded, turns, kind(l1), kind(l2), least
        targets_block(*arrays, direction, cross, notes, start, stop)

    parallel_for(work, n_rows, chunk_size=BLOCK, operations=8.0 * n_rows * k * k)
    return direction, *notes
