"""Rows of a sparse matrix times a tall dense one, written for LLVM: sums stay in registers, columns in cache.

The columns of the dense matrix are taken a cache line at a time, its rows in ranges that fit in the first
cache of a core. A column of the product does not depend on which others are beside it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from nonneg._threads import parallel_for
from nonneg.kernels.hals.native import VECTOR
from nonneg.kernels.machine_code import FLAGS, WORD, Builder, MachineCode, arguments

# Bytes of the columns that are taken at a time.
LINE = 64
# Entries of a row that are added to sums of their own, which keeps a core's units busy.
UNROLL = VECTOR // LINE
# Rows of the dense matrix in a range: 160 kB. With fewer entries of a row in a range than this, fetching the
# sums costs more than it saves.
RANGE, ENTRIES = 2500, 32
# Rows of the product that stay in cache while the ranges are added to them.
CHUNK = 512
# What is read at the address of the arguments: numbers, then addresses of arrays.
K, N_LINES, N_RANGES, N_COLUMNS, N_ROWS, _, EDGES, INDICES, DATA, LINES, OUT = range(11)


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
    """Multiply; see `kernels.sparse_products.sparse_times`."""
    n_rows, (n_columns, k) = len(indptr) - 1, Bt.shape
    data, indices = np.ascontiguousarray(data, dtype=Bt.dtype), np.ascontiguousarray(indices)
    if ranges is None:
        edges = np.array([indptr[:-1], indptr[1:]], dtype=np.int64)
    else:
        edges = ranges.edges
    width = LINE // Bt.itemsize
    n_lines = -(-k // width)
    lines = np.empty((n_lines, n_columns, width), dtype=Bt.dtype)
    for at in range(n_lines):
        part = Bt[:, at * width : (at + 1) * width]
        lines[at, :, : part.shape[1]] = part
        lines[at, :, part.shape[1] :] = 0
    out = np.empty((n_rows, k), dtype=Bt.dtype)
    update = row_products(Bt.dtype, indices.dtype)
    numbers = [k, n_lines, len(edges) - 1, n_columns, n_rows]
    given, address = arguments(numbers, 0, (edges, indices, data, lines, out))
    parallel_for(
        lambda *rows: update.dispatcher(address, *rows),
        n_rows,
        chunk_size=1,
        operations=2.0 * len(data) * k,
    )
    del given  # which is read until here
    return out


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
    vector = ir.VectorType(real, LINE // itemsize)
    width, zero, none = WORD(vector.count), WORD(0), ir.Constant(vector, None)
    k, n_lines, n_ranges, n_columns, n_rows = (
        b.argument(i) for i in (K, N_LINES, N_RANGES, N_COLUMNS, N_ROWS)
    )
    edges, indices = b.argument(EDGES, WORD), b.argument(INDICES, index)
    data, lines, out = (b.argument(i, real) for i in (DATA, LINES, OUT))
    sums = [b.variable(none) for _ in range(UNROLL)]
    last = b.variable(none)  # the columns after which a row of the product ends
    last_at = b.bitcast(last, real.as_pointer())

    def add_entry(total: Any, line: Any, p: Any) -> None:
        j = b.load(b.at(indices, p))
        j = j if index is WORD else b.sext(j, WORD)
        x = b.spread(b.load(b.at(data, p)), vector)
        row = b.load(b.whole(b.at(line, (j, width)), vector), align=itemsize)
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

    def add_rows(range_: Any, number: Any, start: Any, stop: Any) -> None:
        line = b.at(lines, (b.mul(number, n_columns), width))
        first = b.mul(number, width)
        n = b.select(b.icmp_signed("<", b.sub(k, first), width), b.sub(k, first), width)
        is_whole, goes_on = b.icmp_signed("==", n, width), b.icmp_signed(">", range_, zero)
        begins = b.at(edges, (range_, n_rows))
        with b.loop(stop, start) as row:
            place = b.at(out, (row, k), first)
            at_once = b.whole(place, vector)
            b.store(none, sums[0])
            with b.if_then(goes_on), b.if_else(is_whole) as (then, otherwise):
                with then:
                    b.store(b.load(at_once, align=itemsize), sums[0])
                with otherwise:
                    b.store(none, last)
                    with b.loop(n) as a:
                        b.store(b.load(b.at(place, a)), b.at(last_at, a))
                    b.store(b.load(last), sums[0])
            begin, end = b.load(b.at(begins, row)), b.load(b.at(begins, n_rows, row))
            total = add_range(line, begin, end)
            with b.if_else(is_whole) as (then, otherwise):
                with then:
                    b.store(total, at_once, align=itemsize)
                with otherwise:
                    b.store(total, last)
                    with b.loop(n) as a:
                        b.store(b.load(b.at(last_at, a)), b.at(place, a))

    with b.loop(b.stop, b.start, WORD(CHUNK)) as start:
        after = b.add(start, WORD(CHUNK))
        stop = b.select(b.icmp_signed("<", after, b.stop), after, b.stop)
        with b.loop(n_ranges) as range_, b.loop(n_lines) as number:
            add_rows(range_, number, start, stop)
