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
# while a second product would read the columns of the array, at half the speed.
SUMS_SHARE = 0.5


def part_size(n_rows: int, operations: float, least: int) -> int:
    """Return how many rows are multiplied at once: whole multiples of `least`, whatever the threads."""
    n_parts = max(1, min(MOST_PARTS, int(operations / PART)))
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
    rows = part_size(n_rows, operations, 64)
    with nullcontext() if is_held() else single_threaded_blas():
        if turned and A.flags.c_contiguous and -(-n_rows // rows) * n <= SUMS_SHARE * n_rows:
            # Parts of the rows of A, which lie beside each other: columns are read at half the speed.
            compiled.inner_product(A, B, out, rows, threads)
        else:
            compiled.multiply(A, turned, B, out, part_size(m, operations, chunk_size), threads)
    return True


def inner_product(A: Any, B: Any) -> Any:
    """Return A' B for tall arrays, parts of their rows on every thread; None where that does not pay."""
    (n_rows, m), n = A.shape, B.shape[1]
    operations = 2.0 * BLAS * n_rows * m * n
    plain = A.flags.c_contiguous and B.flags.c_contiguous
    if operations < SMALL_PRODUCT or not plain or not _fits(A, B) or (compiled := core()) is None:
        return None
    out = np.empty((m, n), dtype=A.dtype)
    with nullcontext() if is_held() else single_threaded_blas():
        compiled.inner_product(A, B, out, part_size(n_rows, operations, 64), team_size(operations))
    return out
