"""Exact nonnegative least squares by block principal pivoting, one row after another, written for LLVM."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir

from nonneg._threads import parallel_for
from nonneg.kernels.grams import Gram, gram_matrices
from nonneg.kernels.machine_code import FLAGS, WORD, Builder, MachineCode, arguments
from nonneg.kernels.team import FLOATS, run

# What is read at the address of the arguments: numbers, then addresses of arrays.
N_ROWS, K, N_SYSTEMS, MAX_PIVOTS, _, FACTOR, SYSTEMS, CROSS, UNSOLVED = range(9)
# Exchanges of all wrong components that may bring no progress (Kim & Park 2011, Algorithm 1).
PATIENCE = 3
# Norm of a component's part of a row below which it is rounding, as a share of the largest of them.
NEGLIGIBLE = 1e-14


@functools.cache
def row_minimizers(dtype: Any) -> MachineCode:
    """Return the replacement of a range of rows of a factor of this dtype by their minimizers.

    Entries that are above zero on entry are the first guess of the support. The systems are float64, one for
    all rows or one per row. Rows that were not solved are flagged, and stay as they are.
    """
    return MachineCode(pivoting_rows, np.dtype(dtype).itemsize)


def pivoting_rows(b: Builder, itemsize: int) -> None:
    """Write the solution of a range of rows."""
    single, double, byte = ir.FloatType(), ir.DoubleType(), ir.IntType(8)
    real = double if itemsize == 8 else single
    zero, one = WORD(0), WORD(1)
    k, n_systems, max_pivots = (b.argument(i) for i in (K, N_SYSTEMS, MAX_PIVOTS))
    factor, cross = b.argument(FACTOR, real), b.argument(CROSS, real)
    systems, unsolved = b.argument(SYSTEMS, double), b.argument(UNSOLVED, byte)
    # Scratch space: a triangular matrix, five vectors of numbers and three of integers.
    memory = b.allocate(b.mul(b.mul(k, b.add(k, WORD(8))), WORD(8)))
    lower = b.inttoptr(memory, double.as_pointer())
    after = b.at(lower, (k, k))
    inverse, solution, target, x = (b.at(after, (k, WORD(i))) for i in range(4))
    integers = b.bitcast(b.at(after, (k, WORD(4))), WORD.as_pointer())
    passive, is_passive, wrong = (b.at(integers, (k, WORD(i))) for i in range(3))

    def less(total: Any, left: Any, right: Any) -> None:
        """Subtract a product from a variable."""
        b.store(b.fsub(b.load(total), b.fmul(left, right, flags=FLAGS), flags=FLAGS), total)

    def number(value: Any) -> Any:
        return value if itemsize == 8 else b.fpext(value, double)

    def solve(gram: Any, n: Any) -> Any:
        """Solve the equations of the passive components by Cholesky; tell whether they are regular."""
        regular = b.variable(one)
        b.store(one, regular)
        total = b.variable(double(0))
        with b.loop(n) as a:
            row = b.at(lower, (a, k))
            gram_a = b.at(gram, (b.load(b.at(passive, a)), k))
            with b.loop(a) as other:
                b.store(b.load(b.at(gram_a, b.load(b.at(passive, other)))), total)
                with b.loop(other) as c:
                    less(total, b.load(b.at(row, c)), b.load(b.at(lower, (other, k), c)))
                b.store(b.fmul(b.load(total), b.load(b.at(inverse, other))), b.at(row, other))
            pivot = b.load(b.at(gram_a, b.load(b.at(passive, a))))
            b.store(pivot, total)
            with b.loop(a) as c:
                less(total, b.load(b.at(row, c)), b.load(b.at(row, c)))
            is_regular = b.fcmp_ordered(">", b.load(total), b.fmul(pivot, double(1e-13)))
            b.store(b.and_(b.load(regular), b.zext(is_regular, WORD)), regular)
            root = b.call(b.module.declare_intrinsic("llvm.sqrt", (double,)), [b.load(total)])
            b.store(b.fdiv(double(1), root), b.at(inverse, a))
        with b.loop(n) as a:
            b.store(b.load(b.at(target, b.load(b.at(passive, a)))), total)
            with b.loop(a) as c:
                less(total, b.load(b.at(lower, (a, k), c)), b.load(b.at(solution, c)))
            b.store(b.fmul(b.load(total), b.load(b.at(inverse, a))), b.at(solution, a))
        with b.loop(n) as turn:
            a = b.sub(b.sub(n, one), turn)
            b.store(b.load(b.at(solution, a)), total)
            with b.loop(n, b.add(a, one)) as c:
                less(total, b.load(b.at(lower, (c, k), a)), b.load(b.at(solution, c)))
            b.store(b.fmul(b.load(total), b.load(b.at(inverse, a))), b.at(solution, a))
        return b.icmp_signed("==", b.load(regular), one)

    def find_wrong(gram: Any, n: Any, tolerance: Any) -> tuple[Any, Any]:
        """Flag components on the wrong side; return their number and the last of them."""
        with b.loop(k) as a:
            b.store(double(0), b.at(x, a))
        with b.loop(n) as a:
            b.store(b.load(b.at(solution, a)), b.at(x, b.load(b.at(passive, a))))
        n_wrong, last, flag, slope = (b.variable(v) for v in (zero, zero, zero, double(0)))
        b.store(zero, n_wrong)
        b.store(WORD(-1), last)
        with b.loop(k) as a:
            with b.if_else(b.icmp_signed("!=", b.load(b.at(is_passive, a)), zero)) as (inside, outside):
                with inside:
                    b.store(b.zext(b.fcmp_ordered("<", b.load(b.at(x, a)), double(0)), WORD), flag)
                with outside:
                    gram_a = b.at(gram, (a, k))
                    # The sum that is subtracted from the target is minus the slope.
                    b.store(b.load(b.at(target, a)), slope)
                    with b.loop(n) as c:
                        less(slope, b.load(b.at(gram_a, b.load(b.at(passive, c)))), b.load(b.at(solution, c)))
                    falls = b.fcmp_ordered(">", b.load(slope), tolerance)
                    curved = b.fcmp_ordered(">", b.load(b.at(gram_a, a)), double(0))
                    b.store(b.zext(b.and_(falls, curved), WORD), flag)
            b.store(b.load(flag), b.at(wrong, a))
            b.store(b.add(b.load(n_wrong), b.load(flag)), n_wrong)
            is_wrong = b.icmp_signed("!=", b.load(flag), zero)
            b.store(b.select(is_wrong, a, b.load(last)), last)
        return b.load(n_wrong), b.load(last)

    def exchange(n_wrong: Any, last: Any, fewest: Any, patience: Any) -> None:
        """Exchange all wrong components while that makes progress, else the last one, which always ends."""
        better = b.icmp_signed("<", n_wrong, b.load(fewest))
        patient = b.icmp_signed(">", b.load(patience), zero)
        alone = b.not_(b.or_(better, patient))
        waits = b.select(patient, b.sub(b.load(patience), one), zero)
        b.store(b.select(better, WORD(PATIENCE), waits), patience)
        b.store(b.select(better, n_wrong, b.load(fewest)), fewest)
        with b.loop(k) as a:
            only = b.zext(b.icmp_signed("==", a, last), WORD)
            chosen = b.select(alone, only, b.load(b.at(wrong, a)))
            b.store(b.xor(b.load(b.at(is_passive, a)), chosen), b.at(is_passive, a))

    n, scale, fewest, patience, solved = (b.variable(v) for v in (zero, double(0), zero, zero, zero))
    with b.loop(b.stop, b.start) as i:
        own = b.select(b.icmp_signed(">", n_systems, one), i, zero)
        gram = b.at(systems, (b.mul(own, k), k))
        b.store(double(0), scale)
        with b.loop(k) as a:
            value = number(b.load(b.at(cross, (i, k), a)))
            b.store(value, b.at(target, a))
            b.store(b.larger(b.load(scale), b.larger(value, b.fneg(value))), scale)
            positive = b.fcmp_ordered(">", number(b.load(b.at(factor, (i, k), a))), double(0))
            curved = b.fcmp_ordered(">", b.load(b.at(gram, (a, k), a)), double(0))
            b.store(b.zext(b.and_(positive, curved), WORD), b.at(is_passive, a))
        tolerance = b.fmul(double(1e-14), b.load(scale))
        b.store(b.add(k, one), fewest)
        b.store(WORD(PATIENCE), patience)
        b.store(zero, solved)
        with b.loop_until(max_pivots) as leave:
            b.store(zero, n)
            with b.loop(k) as a:
                b.store(a, b.at(passive, b.load(n)))
                b.store(b.add(b.load(n), b.load(b.at(is_passive, a))), n)
            leave(b.not_(solve(gram, b.load(n))))
            n_wrong, last = find_wrong(gram, b.load(n), tolerance)
            none = b.icmp_signed("==", n_wrong, zero)
            b.store(b.zext(none, WORD), solved)
            leave(none)
            exchange(n_wrong, last, fewest, patience)
        b.store(b.xor(b.trunc(b.load(solved), byte), byte(1)), b.at(unsolved, i))
        with b.if_then(b.icmp_signed("==", b.load(solved), one)):
            # What adds less to the row than its rounding is noise, and nothing is to be fitted to it.
            b.store(double(0), scale)
            for last_turn in (False, True):
                with b.loop(k) as a:
                    value = b.load(b.at(x, a))
                    size = b.fmul(b.fmul(value, value), b.load(b.at(gram, (a, k), a)))
                    if not last_turn:
                        b.store(b.larger(b.load(scale), size), scale)
                        continue
                    counts = b.fcmp_ordered(">", size, b.fmul(double(NEGLIGIBLE**2), b.load(scale)))
                    value = b.select(counts, value, double(0))
                    b.store(value if itemsize == 8 else b.fptrunc(value, single), b.at(factor, (i, k), a))
    b.release(memory)


def is_supported(factor: Any) -> bool:
    """Tell whether the rows are NumPy's."""
    return isinstance(factor, np.ndarray) and factor.dtype in FLOATS


def block_pivoting(factor: Any, gram: Gram, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.block_pivoting.block_pivoting`."""
    n_rows, k = factor.shape
    matrices = gram_matrices(gram)
    systems = np.ascontiguousarray(matrices if matrices.ndim == 3 else matrices[None], dtype=np.float64)
    out = np.array(factor, order="C", copy=True)
    cross = np.ascontiguousarray(cross, dtype=out.dtype)
    unsolved = np.zeros(n_rows, dtype=bool)
    solve = row_minimizers(out.dtype)
    numbers, arrays = [n_rows, k, len(systems), max_pivots], (out, systems, cross, unsolved)
    operations = float(n_rows) * k * k
    # Rows differ in the number of exchanges: chunks enough that no thread waits for another.
    if run(solve, numbers, arrays, n_rows, chunk_size=8, operations=operations, parts=4):
        return out, unsolved
    given, address = arguments(numbers, 0, arrays)
    parallel_for(lambda *rows: solve.dispatcher(address, *rows), n_rows, chunk_size=1, operations=operations)
    del given  # which is read until here
    return out, unsolved
