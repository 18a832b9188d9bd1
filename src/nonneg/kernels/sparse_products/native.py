"""Rows of a sparse matrix times a tall dense one, written for LLVM: sums stay in registers, columns in cache.

The columns of the dense matrix are taken some cache lines at a time, its rows in ranges that fit in the
second cache of a core. A column of the product does not depend on which others are beside it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features

from nonneg._threads import parallel_for
from nonneg.kernels.machine_code import FLAGS, WORD, Builder, MachineCode, arguments

# Chosen on the text of the benchmarks (TDT2, 9394 x 36771, k = 30) on one Neoverse-N1 core, where X Ht and
# X' W take 36 ms in float64 and 15 ms in float32; with lines of 64 bytes and without fetching ahead, 58 and
# 26 ms. A matrix that had no part in it (60000 x 3000, 3.9 million entries, k = 20) takes 87 and 54, not 96
# and 59 ms.
# Bytes of the columns that are taken at a time, then half of them and so on for the last columns. With the
# registers of AVX-512, X Ht and X' W of 10000 x 1925 counts with a million entries and 64 columns take a
# fifth less time with lines of 256 bytes than with 128.
LINES = (256, 128, 64) if get_host_cpu_features().get("avx512f") else (128, 64)
# Entries of a row that are added to sums of their own, which keeps a core's units busy.
UNROLL = 2
# So many entries ahead of its turn, what an entry is multiplied with is fetched (of 4, 8, 12 and 24).
AHEAD = 8
# Rows of the dense matrix in a range: 320 kB. With fewer entries of a row in a range than this, fetching the
# sums costs more than it saves.
RANGE, ENTRIES = 2500, 32
# Rows of the product that stay in cache while the ranges are added to them.
CHUNK = 512
# What is read at the address of the arguments: numbers, then addresses of arrays.
(K, N_RANGES, N_COLUMNS, N_ROWS, LAST, _, EDGES, INDICES, DATA, COUNTS, FACTOR, OUT) = range(12)


@dataclass(frozen=True)
class ColumnRanges:
    """Where the entries of every row begin that are in a range of columns: (n_ranges + 1, n_rows)."""

    edges: Any

    @classmethod
    def of(cls, csr: Any) -> ColumnRanges:
        """Return the ranges of a SciPy matrix; one where its rows are not sorted, short or narrow."""
        (n_rows, n_columns), ends = csr.shape, np.asarray(csr.indptr, dtype=np.int64)
        n = min(-(-n_columns // RANGE), csr.nnz // (ENTRIES * max(n_rows, 1)))
        if n < 2 or not csr.has_sorted_indices:
            return cls(np.array([ends[:-1], ends[1:]]))
        width = -(-n_columns // n)
        n = -(-n_columns // width)
        edges = np.empty((n + 1, n_rows), dtype=np.int64)
        edges[0] = ends[:-1]
        # In pieces: the places of entries take twice the memory of the indices.
        for start in range(0, n_rows, CHUNK):
            stop = min(start + CHUNK, n_rows)
            place = np.repeat(np.arange(stop - start) * n, np.diff(ends[start : stop + 1]))
            place += csr.indices[ends[start] : ends[stop]] // width
            counts = np.bincount(place, minlength=(stop - start) * n).reshape(-1, n)
            edges[1:, start:stop] = edges[0, start:stop] + np.cumsum(counts, axis=1).T
        return cls(edges)


def sparse_times(indptr: Any, indices: Any, data: Any, Bt: Any, ranges: ColumnRanges | None) -> Any:
    """Multiply; see `kernels.sparse_products.sparse_times`. `Bt` may be a list: factors beside each other."""
    factors = Bt if isinstance(Bt, list) else [Bt]
    n_rows, n_columns, dtype = len(indptr) - 1, len(factors[0]), factors[0].dtype
    k = sum(factor.shape[1] for factor in factors)
    data, indices = np.ascontiguousarray(data, dtype=dtype), np.ascontiguousarray(indices)
    if ranges is None:
        edges = np.array([indptr[:-1], indptr[1:]], dtype=np.int64)
    else:
        edges = ranges.edges
    counts, lines = _in_lines(factors, k)
    out = np.empty((n_rows, k), dtype=dtype)
    update = row_products(dtype, indices.dtype)
    numbers = [k, len(edges) - 1, n_columns, n_rows, len(indices) - 1]
    given, address = arguments(numbers, 0, (edges, indices, data, counts, lines, out))
    parallel_for(
        lambda *rows: update.dispatcher(address, *rows),
        n_rows,
        chunk_size=1,
        operations=2.0 * len(data) * k,
    )
    del given  # which is read until here
    return out


def _in_lines(factors: list[Any], k: int) -> tuple[Any, Any]:
    """Return the number of lines of each length, and the columns in these, one line after another."""
    n_rows, itemsize = len(factors[0]), factors[0].itemsize
    counts, left = np.zeros(len(LINES), dtype=np.int64), -(-k * itemsize // LINES[-1]) * LINES[-1]
    memory = np.empty(n_rows * left // itemsize, dtype=factors[0].dtype)
    lines, at = [], 0
    for i, length in enumerate(LINES):
        counts[i], left = divmod(left, length)
        width = length // itemsize
        for _ in range(counts[i]):
            lines.append(memory[at * n_rows :][: n_rows * width].reshape(n_rows, width))
            at += width
    number, first = 0, 0  # where the next column goes
    for factor in factors:
        begin = 0
        while begin < factor.shape[1]:
            line = lines[number]
            n = min(factor.shape[1] - begin, line.shape[1] - first)
            line[:, first : first + n] = factor[:, begin : begin + n]
            begin, first = begin + n, first + n
            if first == line.shape[1]:
                number, first = number + 1, 0
    if number < len(lines):
        lines[number][:, first:] = 0
    return counts, memory


@functools.cache
def row_products(dtype: Any, index: Any) -> MachineCode:
    """Return the product of a range of rows, for entries and indices of these dtypes."""
    build = sparse_rows_long if np.dtype(index).itemsize == 8 else sparse_rows
    return MachineCode(build, np.dtype(dtype).itemsize)


def sparse_rows(b: Builder, itemsize: int) -> None:
    """Write the product for indices of 32 bits."""
    _write(b, itemsize, ir.IntType(32))


def sparse_rows_long(b: Builder, itemsize: int) -> None:
    """Write the product for indices of 64 bits."""
    _write(b, itemsize, WORD)


def _write(b: Builder, itemsize: int, index: Any) -> None:
    real = ir.DoubleType() if itemsize == 8 else ir.FloatType()
    k, n_ranges, n_columns, n_rows, last_entry = (b.argument(i) for i in range(LAST + 1))
    edges, indices, counts = b.argument(EDGES, WORD), b.argument(INDICES, index), b.argument(COUNTS, WORD)
    data, lines, out = (b.argument(i, real) for i in (DATA, FACTOR, OUT))
    zero = WORD(0)
    place, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = b.module.declare_intrinsic(
        "llvm.prefetch", (place,), ir.FunctionType(ir.VoidType(), [place, number, number, number])
    )

    def column(p: Any) -> Any:
        found = b.load(b.at(indices, p))
        return found if index is WORD else b.sext(found, WORD)

    def adder(n_bytes: int) -> Any:
        """Return what adds a range of entries of some rows to the product, for lines of `n_bytes`."""
        vector = ir.VectorType(real, n_bytes // itemsize)
        width, none = WORD(vector.count), ir.Constant(vector, None)
        sums = [b.variable(none) for _ in range(UNROLL)]
        rest = b.variable(none)  # the columns after which a row of the product ends
        rest_at = b.bitcast(rest, real.as_pointer())

        def add_entry(total: Any, line: Any, p: Any) -> None:
            later = b.add(p, WORD(AHEAD))
            later = b.select(b.icmp_signed("<", later, last_entry), later, last_entry)
            needed = b.at(line, (column(later), width))
            for first in range(0, n_bytes, 64):
                at = b.bitcast(b.at(needed, WORD(first // itemsize)), place)
                b.call(fetch, [at, number(0), number(3), number(1)])  # to read it, often, data
            x = b.spread(b.load(b.at(data, p)), vector)
            row = b.load(b.whole(b.at(line, (column(p), width)), vector), align=itemsize)
            b.store(b.fadd(b.load(total), b.fmul(x, row, flags=FLAGS), flags=FLAGS), total)

        def add_range(line: Any, begin: Any, end: Any) -> Any:
            """Return the sum of the first variable and of the entries."""
            for total in sums[1:]:
                b.store(none, total)
            whole = b.add(begin, b.mul(b.udiv(b.sub(end, begin), WORD(UNROLL)), WORD(UNROLL)))
            with b.loop(whole, begin, WORD(UNROLL)) as p:
                for i, total in enumerate(sums):
                    add_entry(total, line, b.add(p, WORD(i)))
            with b.loop(end, whole) as p:
                add_entry(sums[0], line, p)
            found = b.load(sums[0])
            for total in sums[1:]:
                found = b.fadd(found, b.load(total), flags=FLAGS)
            return found

        def add_rows(range_: Any, first: Any, start: Any, stop: Any) -> None:
            line = b.at(lines, (first, n_columns))
            left = b.sub(k, first)
            n = b.select(b.icmp_signed("<", left, width), left, width)
            is_whole, goes_on = b.icmp_signed("==", n, width), b.icmp_signed(">", range_, zero)
            begins = b.at(edges, (range_, n_rows))
            with b.loop(stop, start) as row:
                to = b.at(out, (row, k), first)
                at_once = b.whole(to, vector)
                b.store(none, sums[0])
                with b.if_then(goes_on), b.if_else(is_whole) as (then, otherwise):
                    with then:
                        b.store(b.load(at_once, align=itemsize), sums[0])
                    with otherwise:
                        b.store(none, rest)
                        with b.loop(n) as a:
                            b.store(b.load(b.at(to, a)), b.at(rest_at, a))
                        b.store(b.load(rest), sums[0])
                begin, end = b.load(b.at(begins, row)), b.load(b.at(begins, n_rows, row))
                total = add_range(line, begin, end)
                with b.if_else(is_whole) as (then, otherwise):
                    with then:
                        b.store(total, at_once, align=itemsize)
                    with otherwise:
                        b.store(total, rest)
                        with b.loop(n) as a:
                            b.store(b.load(b.at(rest_at, a)), b.at(to, a))

        return add_rows

    adders = [adder(length) for length in LINES]
    with b.loop(b.stop, b.start, WORD(CHUNK)) as start:
        after = b.add(start, WORD(CHUNK))
        stop = b.select(b.icmp_signed("<", after, b.stop), after, b.stop)
        with b.loop(n_ranges) as range_:
            before = zero
            for i, (length, add_rows) in enumerate(zip(LINES, adders, strict=True)):
                n_lines, width = b.load(b.at(counts, WORD(i))), WORD(length // itemsize)
                with b.loop(n_lines) as number_:
                    add_rows(range_, b.add(before, b.mul(number_, width)), start, stop)
                before = b.add(before, b.mul(n_lines, width))
