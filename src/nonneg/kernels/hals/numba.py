"""Coordinate descent on rows inside other compiled loops; see `native`."""

from __future__ import annotations

from nonneg.kernels.hals.native import (
    BLOCK,
    CROSS,
    FACTOR,
    GRAM,
    INITIAL,
    MAX_PASSES,
    N_ORDER,
    N_ROWS,
    ORDER,
    PADDED,
    ROWS,
    SHRINK,
    VIOLATIONS,
    K,
)  # fmt: skip
from nonneg.kernels.jit import part
from nonneg.kernels.team import call


@part()
def hals_block(update, factor, gram, cross, order, max_passes, start, stop, given, numbers):
    """Update rows `start` to `stop` of `factor` in place, from compiled code.

    `update` is the address of `row_updates`, `given` scratch space for its arguments. The last of `numbers`
    is the fraction at which rows stop; the others are scratch space for the violations of `ROWS` rows each.
    """
    given[N_ROWS], given[K], given[PADDED] = factor.shape[0], factor.shape[1], gram.shape[1]
    given[N_ORDER], given[MAX_PASSES], given[ROWS] = len(order), max_passes, BLOCK
    given[FACTOR] = given[INITIAL] = factor.ctypes.data
    given[GRAM], given[CROSS], given[ORDER] = gram.ctypes.data, cross.ctypes.data, order.ctypes.data
    given[VIOLATIONS] = numbers.ctypes.data
    given[SHRINK] = given[VIOLATIONS] + 8 * (len(numbers) - 1)
    call(update, given.ctypes.data, start, stop)
