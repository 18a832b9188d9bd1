"""Products of dense NumPy arrays in parts, on several threads.

Arrays are cut by their shape alone, and each part is one call of BLAS on one thread: no digit of a product
depends on the number of threads. Iterations in float32 would take other turns.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._threads import BLAS, SMALL_PRODUCT, is_held, single_threaded_blas, team_size

# Parts have at least so many operations, about 25 microseconds, of which a call takes one; and there are at
# most so many: three for each of 16 threads.
PART, MOST_PARTS = 1e5, 48
# Sums of parts of rows may take this part of the memory of the array that is read: they are written and read,
# while a second product would read the columns of the array, at half the speed. Where these are fewer parts
# than one for each of 16 threads, parts have columns of the array.
SUMS_SHARE, SUMS = 0.5, 16


def part_size(n_rows: int, operations: float, least: int, most: int = MOST_PARTS) -> int:
    """Return how many rows are multiplied at once: whole multiples of `least`, whatever the threads."""
    n_parts = max(1, min(most, int(operations / PART)))
    return least * -(-n_rows // (n_parts * least))


def _fits(*arrays: Any) -> bool:
    same = all(is_float_array(array) and array.dtype == arrays[0].dtype for array in arrays)
    return same and all(array.flags.aligned for array in arrays)


def multiply(A: Any, B: Any, out: Any, *, turned: bool = False, chunk_size: int = 16) -> bool:
    """Write A B or A' B into `out`, parts of its rows on every thread; False where that does not pay."""
    m, n = out.shape
    operations = 2.0 * BLAS * m * n * B.shape[0]
    if operations < SMALL_PRODUCT or not _fits(A, B, out) or (compiled := core()) is None:
        return False
    if A.strides[1] != A.itemsize:
        A, turned = A.T, not turned
    if A.strides[1] != A.itemsize or A.strides[0] < A.itemsize * A.shape[1]:
        return False
    B, n_rows, threads = np.ascontiguousarray(B), len(A), team_size(operations)
    n_sums = int(min(MOST_PARTS, SUMS_SHARE * n_rows / n))
    with nullcontext() if is_held() else single_threaded_blas():
        if turned and A.flags.c_contiguous and n_sums >= min(SUMS, int(operations / PART)):
            # Parts of the rows of A, which lie beside each other: columns are read at half the speed.
            compiled.inner_product(A, B, out, part_size(n_rows, operations, 64, n_sums), threads)
        else:
            compiled.multiply(A, turned, B, out, part_size(m, operations, chunk_size), threads)
    return True


def inner_product(A: Any, B: Any) -> Any:
    """Return A' B for tall arrays, in parts on every thread; None where that does not pay."""
    out = np.empty((A.shape[1], B.shape[1]), dtype=A.dtype)
    return out if multiply(A, B, out, turned=True) else None
