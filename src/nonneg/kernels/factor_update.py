"""The update of a factor as one compiled task: a range of rows goes through all phases while it is cached.

A product with the data, coordinate descent, extrapolation, and the sums that the other factor and the loss
need. Each of them alone is over before sixteen threads have begun; together they need one hand-over. On one
thread it is one call instead of fourteen. Written for LLVM directly, as every first fit waits for it.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from nonneg._blas import is_held, single_threaded_blas
from nonneg._threads import BLAS, team_size
from nonneg.kernels.hals import native
from nonneg.kernels.machine_code import FLAGS, SUM, WORD, Builder, MachineCode
from nonneg.kernels.products import PLAIN, TURNED_OVER, gemm
from nonneg.kernels.team import run_at

# Rows that are done at once: so many blocks for each of 16 threads keep all of them busy, whatever the number
# of threads, on which no digit may depend. Products of more rows than LONGEST gain nothing. Sums of more than
# MOST_BLOCKS take memory.
SHARES, USUAL_THREADS, LONGEST, MOST_BLOCKS = 2, 16, 320, 128
# What the task reads.
(
    INNER, K, FORM, LDA, MOVES, OF_NEW, WIDE, BLOCK, HALS, DATA, OTHER, FACTOR, OLD, CROSS, NEW, CHOSEN,
    NEW_GRAMS, GRAMS, PRODUCTS, SUMS, SCALARS, ARGUMENTS, VIOLATIONS,
) = range(23)  # fmt: skip
# What coordinate descent reads.
TILE, HALS_ARGUMENTS = native.BLOCK, native.INITIAL + 1
# How the data lie: by rows of the factor, by rows of the other one, or not at all (the products are given).
BY_ROWS, BY_COLUMNS, GIVEN = 0, 1, 2
VIOLATION, ABSOLUTE, DOT = range(3)
MOMENTUM, L1, SHRINK = range(3)


def updated_rows(b: Builder, itemsize: int) -> None:
    """Write the update of a range of rows, block by block."""
    double = ir.DoubleType()
    real = double if itemsize == 8 else ir.FloatType()
    item = WORD(itemsize)
    k, inner, lda, form, block = (b.argument(i) for i in (K, INNER, LDA, FORM, BLOCK))
    is_given = b.icmp_signed("==", form, WORD(GIVEN))
    by_rows = b.icmp_signed("==", form, WORD(BY_ROWS))
    moves, of_new, wide = (b.icmp_signed("!=", b.argument(i), WORD(0)) for i in (MOVES, OF_NEW, WIDE))
    scalars = b.argument(SCALARS, double)
    momentum, l1 = (b.load(b.at(scalars, WORD(i))) for i in (MOMENTUM, L1))
    l1_real = l1 if itemsize == 8 else b.fptrunc(l1, real)
    momentum = momentum if itemsize == 8 else b.fptrunc(momentum, real)

    def wider(value: Any) -> Any:
        return value if itemsize == 8 else b.fpext(value, double)

    def address(i: int, first: Any) -> Any:
        """Return where the entries of an array begin that belong to a block."""
        return b.add(b.argument(i), b.mul(first, item))

    def entries(i: int, first: Any) -> Any:
        return b.inttoptr(address(i, first), real.as_pointer())

    def products_with_data(begin: Any, n: Any, first: Any) -> None:
        cross = entries(CROSS, first)
        with b.if_else(is_given) as (ready, otherwise):
            with ready:
                # Columns of a wider array, where factors of several restarts share a product.
                products = entries(OTHER, b.mul(begin, lda))
                with b.loop(n) as i, b.loop(k) as a:
                    value = b.load(b.at(products, (i, lda), a))
                    b.store(b.fsub(value, l1_real), b.at(cross, (i, k), a))
            with otherwise:
                # The transpose of the products: BLAS is faster where the long side is the contiguous one, by
                # a tenth, in float32 by a third. It lies where the extrapolated rows will be.
                turned = entries(CHOSEN, first)
                lies = b.select(by_rows, WORD(TURNED_OVER), WORD(PLAIN))
                gemm(
                    b, itemsize, WORD(TURNED_OVER), lies, k, n, inner, b.argument(OTHER), k, line(begin), lda,
                    address(CHOSEN, first), n,
                )  # fmt: skip
                with b.loop(n) as i, b.loop(k) as a:
                    b.store(b.fsub(b.load(b.at(turned, (a, n), i)), l1_real), b.at(cross, (i, k), a))

    def line(begin: Any) -> Any:
        """Return where the data of a block begin."""
        return address(DATA, b.mul(begin, b.select(by_rows, lda, WORD(1))))

    def coordinate_descent(begin: Any, n: Any, first: Any, slot: Any) -> None:
        # As the task that it is, by its address.
        given = b.add(b.argument(ARGUMENTS), b.mul(slot, WORD(8 * HALS_ARGUMENTS)))
        places = b.inttoptr(given, WORD.as_pointer())
        tile = b.select(b.icmp_signed("<", n, WORD(TILE)), n, WORD(TILE))
        violations = b.add(b.argument(VIOLATIONS), b.mul(begin, WORD(8)))
        for i, value in (
            (native.N_ROWS, n), (native.ROWS, tile), (native.FACTOR, address(NEW, first)),
            (native.CROSS, address(CROSS, first)), (native.INITIAL, address(FACTOR, first)),
            (native.VIOLATIONS, violations),
        ):  # fmt: skip
            b.store(value, b.at(places, WORD(i)))
        function = ir.FunctionType(ir.VoidType(), [WORD] * 3).as_pointer()
        b.call(b.inttoptr(b.argument(HALS), function), [given, WORD(0), n])

    def extrapolation(n: Any, first: Any) -> None:
        with b.if_then(moves):
            new, old, moved = (entries(i, first) for i in (NEW, OLD, CHOSEN))
            with b.loop(b.mul(n, k)) as i:
                x = b.load(b.at(new, i))
                change = b.fsub(x, b.load(b.at(old, i)), flags=FLAGS)
                there = b.fadd(x, b.fmul(momentum, change, flags=FLAGS), flags=FLAGS)
                b.store(b.larger(there, real(0)), b.at(moved, i))

    def sums(begin: Any, n: Any, first: Any, slot: Any) -> None:
        cross, new = entries(CROSS, first), entries(NEW, first)
        totals = [b.variable(double(0)) for _ in range(3)]
        for total in totals:
            b.store(double(0), total)

        def add(total: Any, value: Any) -> None:
            b.store(b.fadd(b.load(total), value, flags=SUM), total)

        with b.loop(b.mul(n, k)) as i:
            c = wider(b.load(b.at(cross, i)))
            add(totals[ABSOLUTE], b.larger(c, b.fneg(c)))
            with_l1 = b.fadd(c, l1, flags=FLAGS)
            add(totals[DOT], b.fmul(with_l1, wider(b.load(b.at(new, i))), flags=FLAGS))
        violations = b.at(b.argument(VIOLATIONS, double), begin)
        with b.loop(b.sdiv(b.add(n, WORD(TILE - 1)), WORD(TILE))) as i:
            b.store(b.fadd(b.load(totals[VIOLATION]), b.load(b.at(violations, i))), totals[VIOLATION])
        out = b.at(b.argument(SUMS, double), (slot, WORD(3)))
        for i, total in enumerate(totals):
            b.store(b.load(total), b.at(out, WORD(i)))

    def gram(of: Any, to: int, n: Any, slot: Any) -> None:
        at = address(to, b.mul(slot, b.mul(k, k)))
        gemm(b, itemsize, WORD(TURNED_OVER), WORD(PLAIN), k, k, n, of, k, of, k, at, k)

    with b.loop(b.stop, b.start, block) as begin:
        left = b.sub(b.stop, begin)
        n = b.select(b.icmp_signed("<", left, block), left, block)
        first, slot = b.mul(begin, k), b.sdiv(begin, block)
        products_with_data(begin, n, first)
        coordinate_descent(begin, n, first, slot)
        extrapolation(n, first)
        sums(begin, n, first, slot)
        chosen = b.select(moves, address(CHOSEN, first), address(NEW, first))
        gram(chosen, GRAMS, n, slot)
        with b.if_then(of_new):
            gram(address(NEW, first), NEW_GRAMS, n, slot)
        with b.if_then(wide):
            lies = b.select(by_rows, WORD(PLAIN), WORD(TURNED_OVER))
            to = address(PRODUCTS, b.mul(slot, b.mul(inner, k)))
            gemm(
                b, itemsize, WORD(TURNED_OVER), lies, k, inner, n, chosen, k, line(begin), lda, to, inner
            )  # fmt: skip


@functools.cache
def _task_of(dtype: Any) -> MachineCode:
    return MachineCode(updated_rows, np.dtype(dtype).itemsize, compact=False)


class Updated(NamedTuple):
    """What an update returns."""

    new: Any  # the rows after coordinate descent
    chosen: Any  # the same, extrapolated
    gram: Any  # chosen' chosen
    new_gram: Any  # new' new, if it was asked for or nothing was extrapolated
    products: Any  # data' chosen, where it was asked for
    violation: float  # see `kernels.hals.hals_passes`
    absolute: float  # sum of the absolute products with the data, less l1
    dot: float  # sum of the products with the data times `new`


def block_of(n_rows: int, itemsize: int) -> int:
    """Return how many rows are done at once: whole vectors of coordinate descent."""
    lanes = native.VECTOR // itemsize
    wanted = lanes * -(-n_rows // (SHARES * USUAL_THREADS * lanes))
    return max(min(wanted, max(LONGEST, lanes)), lanes * -(-n_rows // (MOST_BLOCKS * lanes)))


def form_of(data: Any) -> tuple[int, int] | None:
    """Return how a two-dimensional array lies in memory and the length of its lines, None if otherwise."""
    itemsize = data.itemsize
    for form, (across, along) in ((BY_ROWS, data.strides), (BY_COLUMNS, data.strides[::-1])):
        length = data.shape[1] if form == BY_ROWS else data.shape[0]
        if along == itemsize and across >= itemsize * length and across % itemsize == 0:
            return (form, across // itemsize) if data.flags.aligned else None
    return None


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class FactorUpdate:
    """The update of the rows of one factor, given products of the data with the other one."""

    def __init__(
        self,
        data: Any,
        n_rows: int,
        k: int,
        *,
        dtype: Any,
        order: Any,
        max_passes: int,
        shrink: float,
        l1: float = 0.0,
        of_new: bool = False,
        wide: bool = False,
    ) -> None:
        # `data` has one row per row of the factor; None if the products come ready. What the task writes
        # besides factors is kept for the next one.
        form, lda = (GIVEN, 0) if data is None else form_of(data) or (GIVEN, 0)
        inner = 0 if data is None else data.shape[1]
        self.dtype, self.shape, self.wide, self.of_new = np.dtype(dtype), (n_rows, k), wide, of_new
        self.block = block_of(n_rows, self.dtype.itemsize)
        self._task = _task_of(self.dtype)
        slots = -(-n_rows // self.block)
        self._data = np.empty(0, dtype) if data is None else data
        self._order = np.asarray(order, dtype=np.int64)
        self._gram = np.zeros((k, -(-k // native.UNROLL) * native.UNROLL), dtype=dtype)
        self._cross = np.empty((n_rows, k), dtype=dtype)
        self._grams = np.empty((slots, k, k), dtype=dtype)
        self._new_grams = np.empty((slots if of_new else 0, k, k), dtype=dtype)
        self._products = np.empty((slots if wide else 0, k, inner), dtype=dtype)
        self._sums = np.empty((slots, 3))
        self._scalars = np.array([0.0, l1, shrink])
        self._violations = np.empty(n_rows)
        # Arguments of coordinate descent on every range; the task fills in what belongs to the range.
        self._arguments = np.zeros((slots, HALS_ARGUMENTS), dtype=np.int64)
        for place, number in (
            (native.K, k), (native.PADDED, self._gram.shape[1]), (native.N_ORDER, len(self._order)),
            (native.MAX_PASSES, max_passes), (native.GRAM, _address(self._gram)),
            (native.ORDER, _address(self._order)), (native.SHRINK, _address(self._scalars[SHRINK:])),
        ):  # fmt: skip
            self._arguments[:, place] = number
        self._given = given = np.zeros(VIOLATIONS + 1, dtype=np.int64)
        given[INNER], given[K], given[FORM], given[LDA] = inner, k, form, lda
        given[WIDE], given[BLOCK], given[HALS] = wide, self.block, native.row_updates(self.dtype).address
        for place, array in (
            (DATA, self._data), (CROSS, self._cross), (NEW_GRAMS, self._new_grams), (GRAMS, self._grams),
            (PRODUCTS, self._products), (SUMS, self._sums), (SCALARS, self._scalars),
            (ARGUMENTS, self._arguments), (VIOLATIONS, self._violations),
        ):  # fmt: skip
            given[place] = _address(array)
        self._at = _address(given)
        self.operations = (
            2.0 * n_rows * k * (BLAS * (inner * (1 + wide) + (1 + of_new) * k) + k * min(max_passes, 3))
        )

    def use(self, data: Any) -> None:
        """Take other data of the same shape; or none of it, so that it need not be kept."""
        if len(data):
            self._given[FORM], self._given[LDA] = form_of(data) or (GIVEN, 0)
        self._data, self._given[DATA] = data, _address(data)

    def __call__(self, factor: Any, gram: Any, other: Any, old: Any = None, momentum: float = 0.0) -> Updated:
        """Update the rows, and extrapolate; `other` is the other factor or, without data, the products."""
        moves = old is not None
        new = np.empty(self.shape, dtype=self.dtype)
        chosen = np.empty(self.shape, dtype=self.dtype) if moves else new
        k = self.shape[1]
        self._gram[:, :k] = gram
        self._scalars[MOMENTUM] = momentum
        given = self._given
        given[MOVES], given[OF_NEW] = moves, moves and self.of_new
        if given[FORM] == GIVEN:
            if other.strides[1] != other.itemsize:
                other = np.ascontiguousarray(other)
            given[LDA] = other.strides[0] // other.itemsize
        else:
            other = np.ascontiguousarray(other)
        # Kept until the task is done.
        arrays = [np.ascontiguousarray(factor), other, np.ascontiguousarray(old if moves else new)]
        given[FACTOR], given[OTHER], given[OLD] = map(_address, arrays)
        given[NEW], given[CHOSEN] = _address(new), _address(chosen)
        n_rows, n_threads = self.shape[0], team_size(self.operations)
        with nullcontext() if is_held() else single_threaded_blas():
            run_at(self._task, self._at, n_rows, self.block, operations=self.operations, n_threads=n_threads)
        violation, absolute, dot = self._sums.sum(axis=0).tolist()
        gram = self._grams.sum(axis=0)
        return Updated(
            new,
            chosen,
            gram,
            self._new_grams.sum(axis=0) if moves and self.of_new else gram,
            np.ascontiguousarray(self._products.sum(axis=0).T) if self.wide else None,
            violation,
            absolute,
            dot,
        )
