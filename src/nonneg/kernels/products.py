"""Products of dense NumPy arrays on several threads, each calling BLAS without the interpreter.

Arrays are cut by their shape alone, and the same BLAS is called on one thread: no digit of a product depends
on the number of threads. Iterations in float32 would take other turns.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any

import numba
import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 (the products of compiled code are SciPy's)
from llvmlite import ir
from numba.core import cgutils

from nonneg._blas import is_held, single_threaded_blas
from nonneg._threads import BLAS, SMALL_PRODUCT, team_size
from nonneg.kernels.machine_code import WORD, Builder, MachineCode
from nonneg.kernels.team import FLOATS, run_at

# Parts have at least so many operations, about 25 microseconds, of which a call takes one; and there are at
# most so many: three for each of 16 threads.
PART, MOST_PARTS = 1e5, 48
# What the task reads: see `multiply`.
TURNED, M, N, K, LDA, LDB, LDC, A_STEP, B_STEP, C_STEP, OVER, SIZE, A, B, C = range(15)
M_ROWS, K_ROWS = 0, 1
# How BLAS reads a factor of a product.
PLAIN, TURNED_OVER = ord("n"), ord("t")

_BYTE = ir.IntType(8)


def gemm(
    b: Builder, itemsize: int, a_turned: Any, b_turned: Any, m: Any, n: Any, k: Any, A: Any, lda: Any, B: Any,
    ldb: Any, C: Any, ldc: Any,
) -> None:  # fmt: skip
    """Write the product of A and B, or of their transposes, into C; all of them by rows, at addresses."""
    real = ir.DoubleType() if itemsize == 8 else ir.FloatType()
    form = ir.FunctionType(
        ir.IntType(32),
        [_BYTE] * 3 + [WORD] * 3 + [_BYTE.as_pointer()] * 2 + [WORD]
        + [_BYTE.as_pointer(), WORD] + [_BYTE.as_pointer()] * 2 + [WORD],
    )  # fmt: skip
    function = cgutils.get_or_insert_function(b.module, form, "numba_xxgemm")

    def scalar(value: float) -> Any:
        return b.bitcast(b.variable(real(value)), _BYTE.as_pointer())

    def place(address: Any) -> Any:
        return b.inttoptr(address, _BYTE.as_pointer())

    kind = _BYTE(ord("d" if itemsize == 8 else "s"))
    # BLAS reads arrays by columns: what it computes is the transpose of the product.
    b.call(
        function,
        (kind, b.trunc(b_turned, _BYTE), b.trunc(a_turned, _BYTE), n, m, k, scalar(1.0), place(B), ldb,
         place(A), lda, scalar(0.0), place(C), ldc),
    )  # fmt: skip


def product_rows(b: Builder, itemsize: int) -> None:
    """Write the products of a range, part by part."""
    given = [b.argument(i) for i in range(C + 1)]
    of_m = b.icmp_signed("==", given[OVER], WORD(M_ROWS))
    with b.loop(b.stop, b.start, given[SIZE]) as begin:
        left = b.sub(b.stop, begin)
        n_rows = b.select(b.icmp_signed("<", left, given[SIZE]), left, given[SIZE])
        # Parts of the rows of C, or of the sum: then each part is a matrix of its own.
        slot = b.select(of_m, begin, b.sdiv(begin, given[SIZE]))
        A_at, B_at, C_at = (
            b.add(given[array], b.mul(index, given[step]))
            for array, index, step in ((A, begin, A_STEP), (B, begin, B_STEP), (C, slot, C_STEP))
        )
        gemm(
            b, itemsize, given[TURNED], WORD(PLAIN), b.select(of_m, n_rows, given[M]), given[N],
            b.select(of_m, given[K], n_rows), A_at, given[LDA], B_at, given[LDB], C_at, given[LDC],
        )  # fmt: skip


@functools.cache
def _products(dtype: Any) -> MachineCode:
    return MachineCode(product_rows, np.dtype(dtype).itemsize)


def part_size(n_rows: int, operations: float, least: int) -> int:
    """Return how many rows are multiplied at once: whole multiples of `least`, whatever the threads."""
    n_parts = max(1, min(MOST_PARTS, int(operations / PART)))
    return least * -(-n_rows // (n_parts * least))


def _run(numbers: list[int], arrays: tuple[Any, ...], n_rows: int, size: int, operations: float) -> None:
    given = np.array([*numbers, size, *(array.ctypes.data for array in arrays)], dtype=np.int64)
    task, address = _products(arrays[0].dtype), given.ctypes.data
    n_threads = team_size(operations)
    with nullcontext() if is_held() else single_threaded_blas():
        run_at(task, address, n_rows, size, operations=operations, n_threads=n_threads)


def multiply(A: Any, B: Any, out: Any, *, turned: bool = False, chunk_size: int = 16) -> bool:
    """Write A B or A' B into `out`, parts of its rows on every thread; False where that does not pay."""
    m, n = out.shape
    k, itemsize = B.shape[0], out.itemsize
    operations = 2.0 * BLAS * m * n * k
    if not operations or operations < SMALL_PRODUCT or numba.config.DISABLE_JIT:
        return False
    if out.dtype not in FLOATS or A.dtype != out.dtype or B.dtype != out.dtype:
        return False
    if A.strides[1] != itemsize:
        A, turned = A.T, not turned
    if A.strides[1] != itemsize or A.strides[0] < itemsize * A.shape[1] or not A.flags.aligned:
        return False
    if B.strides != (itemsize * n, itemsize) or not B.flags.aligned:
        B = np.array(B, order="C")
    lda = A.strides[0] // itemsize
    numbers = [
        ord("t" if turned else "n"), m, n, k, lda, n, n, itemsize if turned else A.strides[0], 0,
        itemsize * n, M_ROWS,
    ]  # fmt: skip
    _run(numbers, (A, B, out), m, part_size(m, operations, chunk_size), operations)
    return True


def inner_product(A: Any, B: Any) -> Any:
    """Return A' B for tall arrays, parts of their rows on every thread; None where that does not pay."""
    (n_rows, m), n, itemsize = A.shape, B.shape[1], A.itemsize
    operations = 2.0 * BLAS * n_rows * m * n
    if not operations or operations < SMALL_PRODUCT or numba.config.DISABLE_JIT:
        return None
    if A.dtype not in FLOATS or A.dtype != B.dtype:
        return None
    if not all(array.flags.c_contiguous and array.flags.aligned for array in (A, B)):
        return None
    size = part_size(n_rows, operations, 64)
    parts = np.empty((-(-n_rows // size), m, n), dtype=A.dtype)
    numbers = [
        ord("t"), m, n, 0, m, n, n, itemsize * m, itemsize * n, itemsize * m * n, K_ROWS,
    ]  # fmt: skip
    _run(numbers, (A, B, parts), n_rows, size, operations)
    return parts.sum(axis=0)
