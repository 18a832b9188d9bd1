"""Coordinate descent on rows that share one Gram matrix (compiled); see `native` for the inner loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for, team_size
from nonneg.kernels.grams import Gram, ListedGrams, SharedGram
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
    UNROLL,
    VIOLATIONS,
    K,
    row_updates,
)  # fmt: skip
from nonneg.kernels.jit import part
from nonneg.kernels.machine_code import arguments
from nonneg.kernels.row_grams import hals_own_block
from nonneg.kernels.team import FLOATS, call, run

# Blocks of a task are at least so long: shorter loops over rows do not pay.
SMALLEST_BLOCK = 16


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


def is_supported(factor: Any, gram: Gram) -> bool:
    """Tell whether the arrays are NumPy's; matrices that are written out are left to BLAS."""
    if not isinstance(factor, np.ndarray) or factor.dtype not in FLOATS:
        return False
    return isinstance(gram, SharedGram | ListedGrams)


def hals_passes(
    factor: Any, gram: Any, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, float]:
    """Update all rows; see `kernels.hals.hals_passes`."""
    out = np.empty(factor.shape, dtype=factor.dtype)
    cross = np.ascontiguousarray(cross, dtype=out.dtype)
    n_rows, k = out.shape
    if isinstance(gram, ListedGrams):
        out[:] = factor
        return _listed_passes(out, gram, cross, order, max_passes, shrink)
    factor = np.ascontiguousarray(factor)
    padded = np.zeros((k, -(-k // UNROLL) * UNROLL), dtype=out.dtype)
    padded[:, :k] = gram.matrix
    # Rows stop on their own, most of them after about three passes.
    operations = 2.0 * n_rows * k * k * min(max_passes, 3)
    n_threads = team_size(operations)
    block = BLOCK
    if n_threads > 1:
        # Blocks that are small enough to keep every thread busy; results of rows do not depend on them.
        block = min(BLOCK, max(SMALLEST_BLOCK, -(-n_rows // (8 * n_threads)) * 8))
    violations, scalars = np.zeros(max(1, -(-n_rows // block))), np.array([shrink])
    numbers = [n_rows, k, padded.shape[1], len(order), max_passes, block]
    arrays = (out, padded, cross, order, violations, scalars, factor)
    update = row_updates(out.dtype)
    options: dict[str, Any] = {"chunk_size": block, "operations": operations}
    if not run(update, numbers, arrays, n_rows, parts=2, n_threads=n_threads, **options):
        given, address = arguments(numbers, block, arrays)
        parallel_for(lambda *rows: update.dispatcher(address, *rows), n_rows, **options)
        del given  # which is read until here
    return out, float(violations.sum())


def _listed_passes(
    out: Any, gram: ListedGrams, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, float]:
    n_rows, k = out.shape
    violations = np.zeros(n_rows)
    listed = (gram.base, 0.0, gram.sign, gram.other, gram.indptr, gram.indices)

    def work(start: int, stop: int) -> None:
        hals_own_block(out, *listed, cross, order, max_passes, shrink, start, stop, violations)

    parallel_for(work, n_rows, chunk_size=1, operations=2.0 * k * k * (n_rows + len(gram.indices)))
    return out, float(violations.sum())
