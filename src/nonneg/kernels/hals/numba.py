"""Coordinate descent on rows that share one Gram matrix (compiled).

A block of rows is held in cache as (component, row), so that the innermost loop runs over rows and
vectorizes. Every row stops on its own, and rows that have stopped leave the block: the result for a
row does not depend on other rows, on threads or on chunks.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import carray

from nonneg._threads import parallel_for, team_size
from nonneg.kernels.grams import Gram, ListedGrams, SharedGram
from nonneg.kernels.jit import jit
from nonneg.kernels.row_grams import hals_own_block
from nonneg.kernels.team import FLOATS, Task, pointer, run

BLOCK = 128
# Blocks of a task are at least so long: shorter loops over rows do not pay.
SMALLEST_BLOCK = 16
# Components are taken four at a time; the Gram matrix comes padded with zeros to a multiple of it.
UNROLL = 4
# Rows of the scratch array of a block.
SLOPE, CHANGE, FIRST, VIOLATION = 0, 1, 2, 3


# "contract" lets products and sums fuse. NaN and infinity keep their meaning.
@jit(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def hals_block(factor, gram, cross, order, max_passes, shrink, start, stop, row, violations):
    """Update rows `start` to `stop` of `factor` in place; see `kernels.hals.hals_passes`."""
    # `row` is scratch space for the indices of the rows of a block, at most `BLOCK`.
    size = len(row)
    k = cross.shape[1]
    padded = gram.shape[1]
    zero = gram.dtype.type(0.0)
    one = gram.dtype.type(1.0)
    # Nearly the largest number, so that the unit of the data does not matter.
    huge = gram.dtype.type(1e308 if gram.itemsize == 8 else 3e38)
    shrink2 = gram.dtype.type(shrink * shrink)
    # Arrays of one kind only: every further kind of allocation costs a tenth of a second to compile.
    f = np.empty((padded, BLOCK), dtype=factor.dtype)
    c = np.empty((k, BLOCK), dtype=factor.dtype)
    note = np.empty((4, BLOCK), dtype=factor.dtype)
    for a in range(k, padded):
        for r in range(BLOCK):
            f[a, r] = zero
    for begin in range(start, stop, size):
        n = min(size, stop - begin)
        for r in range(n):
            row[r] = begin + r
            note[VIOLATION, r] = zero
            for a in range(k):
                f[a, r] = factor[begin + r, a]
                c[a, r] = -cross[begin + r, a]
        total = 0.0
        sweep = 0
        while n > 0:
            sweep += 1
            for r in range(n):
                note[CHANGE, r] = zero
            for a in order:
                curvature = gram[a, a]
                if curvature <= zero:
                    continue
                inverse = one / curvature
                for r in range(n):
                    note[SLOPE, r] = c[a, r]
                for b in range(0, padded, UNROLL):
                    g0 = gram[a, b]
                    g1 = gram[a, b + 1]
                    g2 = gram[a, b + 2]
                    g3 = gram[a, b + 3]
                    for r in range(n):
                        s = note[SLOPE, r] + g0 * f[b, r]
                        s = s + g1 * f[b + 1, r]
                        s = s + g2 * f[b + 2, r]
                        s = s + g3 * f[b + 3, r]
                        note[SLOPE, r] = s
                if sweep == 1:
                    # At a zero entry only a negative slope counts: min(slope, 0).
                    for r in range(n):
                        note[VIOLATION, r] += abs(min(note[SLOPE, r], f[a, r] * huge))
                for r in range(n):
                    old = f[a, r]
                    new = max(old - note[SLOPE, r] * inverse, zero)
                    f[a, r] = new
                    note[CHANGE, r] += (new - old) * (new - old)
            # Rows that have converged leave the block; the others move up.
            kept = 0
            for r in range(n):
                if sweep == 1:
                    total += note[VIOLATION, r]
                    note[FIRST, r] = shrink2 * note[CHANGE, r]
                if sweep < max_passes and note[CHANGE, r] > note[FIRST, r]:
                    note[FIRST, kept] = note[FIRST, r]
                    row[kept] = row[r]
                    for a in range(k):
                        f[a, kept] = f[a, r]
                        c[a, kept] = c[a, r]
                    kept += 1
                else:
                    for a in range(k):
                        factor[row[r], a] = f[a, r]
            n = kept
        violations[begin // size] = total


@functools.cache
def task_of(dtype: Any) -> Task:
    """Return the update of a range of rows of arrays of this dtype as a task."""
    kind = np.dtype(dtype).type

    def hals_task(address, start, stop):
        given = carray(pointer(address), (14,), np.int64)
        n_rows, k, padded, block = given[0], given[1], given[2], given[5]
        factor = carray(pointer(given[7]), (n_rows, k), kind)
        gram = carray(pointer(given[8]), (k, padded), kind)
        cross = carray(pointer(given[9]), (n_rows, k), kind)
        order = carray(pointer(given[10]), (given[3],), np.int64)
        violations = carray(pointer(given[11]), ((n_rows + block - 1) // block,), np.float64)
        shrink = carray(pointer(given[12]), (1,), np.float64)
        initial = carray(pointer(given[13]), (n_rows, k), kind)
        for i in range(start, stop):
            for a in range(k):
                factor[i, a] = initial[i, a]
        row = np.empty(block, dtype=np.int64)
        hals_block(factor, gram, cross, order, given[4], shrink[0], start, stop, row, violations)

    return Task(hals_task)


def is_supported(factor: Any, gram: Gram) -> bool:
    """Tell whether the arrays are NumPy's; matrices that are written out are left to BLAS."""
    return isinstance(factor, np.ndarray) and isinstance(gram, SharedGram | ListedGrams)


def hals_passes(
    factor: Any, gram: Any, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, float]:
    """Update all rows; see `kernels.hals.hals_passes`."""
    out = np.empty(factor.shape, dtype=factor.dtype)
    cross = np.ascontiguousarray(cross)
    n_rows, k = out.shape
    if isinstance(gram, ListedGrams):
        out[:] = factor
        return _listed_passes(out, gram, cross, order, max_passes, shrink)
    padded = np.zeros((k, -(-k // UNROLL) * UNROLL), dtype=out.dtype)
    padded[:, :k] = gram.matrix
    operations = 2.0 * n_rows * k * k * min(max_passes, 3)
    n_threads = team_size(operations)
    if n_threads > 1 and cross.dtype == out.dtype and out.dtype in FLOATS:
        # Blocks that are small enough to keep every thread busy; results of rows do not depend on them.
        block = min(BLOCK, max(SMALLEST_BLOCK, -(-n_rows // (8 * n_threads)) * 8))
        violations = np.zeros(-(-n_rows // block))
        factor = np.ascontiguousarray(factor)
        scalars = np.array([shrink])
        numbers = [n_rows, k, padded.shape[1], len(order), max_passes, block]
        arrays = (out, padded, cross, order, violations, scalars, factor)
        done = run(
            task_of(out.dtype), numbers, arrays, n_rows, chunk_size=block, operations=operations, parts=2,
            n_threads=n_threads,
        )  # fmt: skip
        if done:
            return out, float(violations.sum())
    violations = np.zeros(max(1, -(-n_rows // BLOCK)))

    def work(start: int, stop: int) -> None:
        out[start:stop] = factor[start:stop]
        row = np.empty(BLOCK, dtype=np.int64)
        hals_block(out, padded, cross, order, max_passes, shrink, start, stop, row, violations)

    # Rows stop on their own, most of them after about three passes.
    parallel_for(work, n_rows, chunk_size=BLOCK, operations=operations)
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
