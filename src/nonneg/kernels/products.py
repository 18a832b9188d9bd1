"""Products of dense NumPy arrays on several threads, each calling BLAS without the interpreter."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numba
import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 (the products of compiled code are SciPy's)
from llvmlite import ir
from numba import carray
from numba.core import cgutils, types
from numba.extending import intrinsic

from nonneg._blas import is_held, single_threaded_blas
from nonneg._threads import team_size
from nonneg.kernels.team import FLOATS, Task, pointer, run

# BLAS does several operations in the time of one in our kernels.
BLAS = 0.2
# What the task reads: see `multiply`.
KIND, TURNED, M, N, K, LDA, LDB, LDC, A_STEP, B_STEP, C_STEP, OVER, SIZE, A, B, C = range(16)
M_ROWS, K_ROWS = 0, 1
# How BLAS reads a factor of a product.
PLAIN, TURNED_OVER = ord("n"), ord("t")

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)


@intrinsic
def gemm(typing_context, kind, a_turned, b_turned, m, n, k, a, lda, b, ldb, c, ldc):
    """Write the product of A and B, or of their transposes, into C; all of them by rows."""

    def generate(context, builder, signature, values):
        kind, a_turned, b_turned, m, n, k, a, lda, b, ldb, c, ldc = values
        form = ir.FunctionType(
            ir.IntType(32),
            [_BYTE] * 3 + [_WORD] * 3 + [_BYTE.as_pointer()] * 2 + [_WORD]
            + [_BYTE.as_pointer(), _WORD] + [_BYTE.as_pointer()] * 2 + [_WORD],
        )  # fmt: skip
        function = cgutils.get_or_insert_function(builder.module, form, "numba_xxgemm")
        single = builder.icmp_unsigned("==", kind, ir.Constant(_WORD, ord("s")))

        def scalar(value):
            kinds = ir.FloatType(), ir.DoubleType()
            slots = [cgutils.alloca_once_value(builder, ir.Constant(kind, value)) for kind in kinds]
            return builder.select(single, *(builder.bitcast(slot, _BYTE.as_pointer()) for slot in slots))

        def byte(value):
            return builder.trunc(value, _BYTE)

        def place(address):
            return builder.inttoptr(address, _BYTE.as_pointer())

        # BLAS reads arrays by columns: what it computes is the transpose of the product.
        builder.call(
            function,
            (byte(kind), byte(b_turned), byte(a_turned), n, m, k, scalar(1.0), place(b), ldb, place(a), lda,
             scalar(0.0), place(c), ldc),
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


@Task
def _product(address, start, stop):
    given = carray(pointer(address), (16,), np.int64)
    m, k, slot = given[M], given[K], start
    if given[OVER] == M_ROWS:
        m = stop - start
    else:
        k = stop - start
        slot = start // given[SIZE]
    gemm(
        given[KIND],
        given[TURNED],
        PLAIN,
        m,
        given[N],
        k,
        given[A] + start * given[A_STEP],
        given[LDA],
        given[B] + start * given[B_STEP],
        given[LDB],
        given[C] + slot * given[C_STEP],
        given[LDC],
    )


def multiply(
    A: Any, B: Any, out: Any, *, turned: bool = False, chunk_size: int = 16, n_threads: int | None = None
) -> bool:
    """Write A B or A' B into `out`, parts of its rows on every thread; False where that does not pay."""
    m, n = out.shape
    k, itemsize = B.shape[0], out.itemsize
    if out.dtype not in FLOATS or A.dtype != out.dtype or B.dtype != out.dtype or 0 in (m, n, k):
        return False
    if numba.config.DISABLE_JIT:
        return False
    if A.strides[1] != itemsize:
        A, turned = A.T, not turned
    if A.strides[1] != itemsize or A.strides[0] < itemsize * A.shape[1] or not A.flags.aligned:
        return False
    if B.strides != (itemsize * n, itemsize) or not B.flags.aligned:
        B = np.array(B, order="C")
    lda = A.strides[0] // itemsize
    numbers = [
        ord("s" if itemsize == 4 else "d"), ord("t" if turned else "n"), m, n, k, lda, n, n,
        itemsize if turned else A.strides[0], 0, itemsize * n, M_ROWS,
    ]  # fmt: skip
    with nullcontext() if is_held() else single_threaded_blas():
        return run(
            _product, numbers, (A, B, out), m, chunk_size=chunk_size, operations=2.0 * BLAS * m * n * k,
            n_threads=n_threads,
        )  # fmt: skip


def inner_product(A: Any, B: Any) -> Any:
    """Return A' B for tall arrays, parts of their rows on every thread; None where that does not pay."""
    (n_rows, m), n, itemsize = A.shape, B.shape[1], A.itemsize
    if A.dtype not in FLOATS or A.dtype != B.dtype or 0 in (m, n) or numba.config.DISABLE_JIT:
        return None
    if not all(array.flags.c_contiguous and array.flags.aligned for array in (A, B)):
        return None
    operations = 2.0 * BLAS * n_rows * m * n
    n_threads = max(2, team_size(operations))
    parts = np.zeros((n_threads, m, n), dtype=A.dtype)
    numbers = [
        ord("s" if itemsize == 4 else "d"), ord("t"), m, n, 0, m, n, n,
        itemsize * m, itemsize * n, itemsize * m * n, K_ROWS,
    ]  # fmt: skip
    with nullcontext() if is_held() else single_threaded_blas():
        done = run(
            _product, numbers, (A, B, parts), n_rows, chunk_size=64, operations=operations,
            n_threads=n_threads,
        )  # fmt: skip
    return parts.sum(axis=0) if done else None
