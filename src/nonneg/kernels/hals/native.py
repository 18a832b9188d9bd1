"""The inner loop of coordinate descent on rows that share one Gram matrix, written for LLVM.

Every first fit waits for it: numba compiles it from Python in 1.5 s, LLVM alone in a tenth of a second. Rows
are the lanes of long vectors, so that a slope stays in registers while all components are added to it. Every
row stops on its own, and rows that have stopped leave the block: the result for a row does not depend on
other rows, on threads or on chunks.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

import numpy as np
from llvmlite import ir

from nonneg.kernels.machine_code import FLAGS, WORD, Builder, MachineCode

# Rows that are held in cache together, and components that are added to a slope in one turn of its loop: the
# Gram matrix comes padded with zeros to a multiple of it.
BLOCK, UNROLL = 128, 4
# Bytes of a vector: eight registers, whose sums keep a core's units busy, of NEON or of AVX2.
VECTOR = 256 if platform.machine().lower() in ("x86_64", "amd64") else 128
# What is read at the address of the arguments: numbers, then addresses of arrays.
(N_ROWS, K, PADDED, N_ORDER, MAX_PASSES, ROWS, _, FACTOR, GRAM, CROSS, ORDER, VIOLATIONS, SHRINK,
 INITIAL) = range(14)  # fmt: skip


@functools.cache
def row_updates(dtype: Any) -> MachineCode:
    """Return the update of a range of rows of arrays of this dtype.

    It reads rows of the initial array and writes those of the factor. One sum of violations is written for
    every ROWS rows, which are at most BLOCK.
    """
    return MachineCode(hals_rows, np.dtype(dtype).itemsize)


def hals_rows(b: Builder, itemsize: int) -> None:
    """Write the update of a range of rows."""
    real = ir.DoubleType() if itemsize == 8 else ir.FloatType()
    vector = ir.VectorType(real, VECTOR // itemsize)
    lanes = WORD(vector.count)
    zero, one = WORD(0), WORD(1)
    none = ir.Constant(vector, None)
    k, padded, n_order, max_passes, rows = (b.argument(i) for i in (K, PADDED, N_ORDER, MAX_PASSES, ROWS))
    factor, gram, cross, initial = (b.argument(i, real) for i in (FACTOR, GRAM, CROSS, INITIAL))
    order, violations = b.argument(ORDER, WORD), b.argument(VIOLATIONS, ir.DoubleType())
    shrink = b.load(b.argument(SHRINK, ir.DoubleType()))
    shrink2 = b.fmul(shrink, shrink)
    shrink2 = shrink2 if itemsize == 8 else b.fptrunc(shrink2, real)
    # Nearly the largest number, so that the unit of the data does not matter.
    huge = ir.Constant(vector, [real(1e308 if itemsize == 8 else 3e38)] * vector.count)

    # Entries of rows and of their cross terms as (vector, component, lane), notes as (vector, lane).
    entries = b.mul(WORD(BLOCK), b.add(b.add(k, padded), WORD(3)))
    size = b.add(b.mul(entries, WORD(itemsize)), WORD(8 * BLOCK))
    memory = b.allocate(size)
    row = b.inttoptr(memory, WORD.as_pointer())
    f = b.inttoptr(b.add(memory, WORD(8 * BLOCK)), real.as_pointer())
    c = b.at(f, (padded, WORD(BLOCK)))
    change = b.at(c, (k, WORD(BLOCK)))
    first, violation = b.at(change, WORD(BLOCK)), b.at(change, WORD(2 * BLOCK))

    def entry(array: Any, height: Any, r: Any) -> Any:
        """Return where the first component of row r is."""
        return b.at(array, (b.mul(b.udiv(r, lanes), height), lanes), b.urem(r, lanes))

    def read(array: Any, *index: Any) -> Any:
        return b.load(b.whole(b.at(array, *index), vector), align=itemsize)

    def write(value: Any, array: Any, *index: Any) -> None:
        b.store(value, b.whole(b.at(array, *index), vector), align=itemsize)

    def one_pass(n: Any, is_first: Any) -> None:
        with b.loop(n, step=lanes) as begin:
            rows_f, rows_c = b.at(f, (begin, padded)), b.at(c, (begin, k))
            changed, violated = b.variable(none), b.variable(none)
            b.store(none, changed)
            b.store(none, violated)
            with b.loop(n_order) as turn:
                a = b.load(b.at(order, turn))
                gram_a = b.at(gram, (a, padded))
                curvature = b.load(b.at(gram_a, a))
                with b.if_then(b.fcmp_unordered(">", curvature, real(0))):
                    inverse = b.spread(b.fdiv(real(1), curvature, flags=FLAGS), vector)
                    slope = b.variable(none)
                    b.store(read(rows_c, (a, lanes)), slope)
                    with b.loop(padded, step=WORD(UNROLL)) as other:
                        s = b.load(slope)
                        for i in range(UNROLL):
                            at = b.add(other, WORD(i))
                            g = b.spread(b.load(b.at(gram_a, at)), vector)
                            s = b.fadd(s, b.fmul(g, read(rows_f, (at, lanes)), flags=FLAGS), flags=FLAGS)
                        b.store(s, slope)
                    s, old = b.load(slope), read(rows_f, (a, lanes))
                    with b.if_then(is_first):
                        # At a zero entry only a negative slope counts: min(slope, 0).
                        counts = b.smaller(s, b.fmul(old, huge, flags=FLAGS))
                        magnitude = b.larger(counts, b.fneg(counts))
                        b.store(b.fadd(b.load(violated), magnitude, flags=FLAGS), violated)
                    new = b.larger(b.fsub(old, b.fmul(s, inverse, flags=FLAGS), flags=FLAGS), none)
                    write(new, rows_f, (a, lanes))
                    step = b.fsub(new, old, flags=FLAGS)
                    square = b.fmul(step, step, flags=FLAGS)
                    b.store(b.fadd(b.load(changed), square, flags=FLAGS), changed)
            write(b.load(changed), change, begin)
            with b.if_then(is_first):
                write(b.load(violated), violation, begin)

    def leave(n: Any, is_first: Any, is_last: Any, total: Any) -> Any:
        """Write rows that have converged to the factor; move the others up and return their number."""
        kept = b.variable(zero)
        b.store(zero, kept)
        with b.loop(n) as r:
            moved = b.load(b.at(change, r))
            with b.if_then(is_first):
                value = b.load(b.at(violation, r))
                value = value if itemsize == 8 else b.fpext(value, ir.DoubleType())
                b.store(b.fadd(b.load(total), value), total)
                b.store(b.fmul(shrink2, moved, flags=FLAGS), b.at(first, r))
            limit, i = b.load(b.at(first, r)), b.load(b.at(row, r))
            from_f, from_c = entry(f, padded, r), entry(c, k, r)
            stays = b.and_(b.not_(is_last), b.fcmp_ordered(">", moved, limit))
            with b.if_else(stays) as (then, otherwise):
                with then:
                    to = b.load(kept)
                    b.store(b.add(to, one), kept)
                    # After the first pass, all of them stay where they are.
                    with b.if_then(b.icmp_signed("!=", to, r)):
                        b.store(limit, b.at(first, to))
                        b.store(i, b.at(row, to))
                        to_f, to_c = entry(f, padded, to), entry(c, k, to)
                        with b.loop(k) as a:
                            b.store(b.load(b.at(from_f, (a, lanes))), b.at(to_f, (a, lanes)))
                            b.store(b.load(b.at(from_c, (a, lanes))), b.at(to_c, (a, lanes)))
                with otherwise, b.loop(k) as a:
                    b.store(b.load(b.at(from_f, (a, lanes))), b.at(factor, (i, k), a))
        return b.load(kept)

    with b.loop(b.stop, b.start, rows) as begin:
        left = b.sub(b.stop, begin)
        n = b.variable(zero)
        b.store(b.select(b.icmp_signed("<", left, rows), left, rows), n)
        # Lanes without a row, and components that only pad, are zero.
        used = b.mul(b.udiv(b.add(b.load(n), WORD(vector.count - 1)), lanes), lanes)
        for array, height in ((f, padded), (c, k)):
            with b.loop(b.mul(used, height), step=lanes) as place:
                write(none, array, place)
        with b.loop(b.load(n)) as r:
            i = b.add(begin, r)
            b.store(i, b.at(row, r))
            to_f, to_c = entry(f, padded, r), entry(c, k, r)
            with b.loop(k) as a:
                b.store(b.load(b.at(initial, (i, k), a)), b.at(to_f, (a, lanes)))
                b.store(b.fneg(b.load(b.at(cross, (i, k), a))), b.at(to_c, (a, lanes)))
        total = b.variable(ir.DoubleType()(0))
        b.store(ir.DoubleType()(0), total)
        with b.loop(max_passes) as sweep:
            # The loop over no rows costs nothing.
            is_first = b.icmp_signed("==", sweep, zero)
            is_last = b.icmp_signed("==", sweep, b.sub(max_passes, one))
            one_pass(b.load(n), is_first)
            b.store(leave(b.load(n), is_first, is_last, total), n)
        b.store(b.load(total), b.at(violations, b.sdiv(begin, rows)))
    b.release(memory)
