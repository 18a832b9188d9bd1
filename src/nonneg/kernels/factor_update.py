"""The update of a factor as one compiled task: a range of rows goes through all phases while it is cached.

A product with the data, coordinate descent, extrapolation, and the sums that the other factor and the loss
need. Each of them alone is over before sixteen threads have begun; together they need one hand-over.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numba import carray

from nonneg._blas import is_held, single_threaded_blas
from nonneg._threads import team_size
from nonneg.kernels.hals import native
from nonneg.kernels.jit import jit
from nonneg.kernels.products import BLAS, PLAIN, TURNED_OVER, gemm
from nonneg.kernels.team import Task, call, pointer, run_at

# Rows that are done at once: so many blocks per thread keep all of them busy. Products of more rows than
# LONGEST on 16 threads, ALONE on few, gain nothing. Products of few rows take a tenth longer, because BLAS
# copies the other factor for each of them. Sums of more than MOST_BLOCKS take memory.
SHARES, LONGEST, ALONE, MOST_BLOCKS = 3, 320, 1024, 128
# Blocks are made for so many threads where numbers must not depend on their number.
USUAL_THREADS = 16
# What the task reads.
(
    INNER, K, KIND, FORM, LDA, MOVES, OF_NEW, WIDE, BLOCK, HALS, DATA, OTHER, FACTOR, OLD, CROSS, NEW, CHOSEN,
    NEW_GRAMS, GRAMS, PRODUCTS, SUMS, SCALARS, ARGUMENTS, VIOLATIONS,
) = range(24)  # fmt: skip
# What coordinate descent reads.
TILE, HALS_ARGUMENTS = native.BLOCK, native.INITIAL + 1
# How the data lie: by rows of the factor, by rows of the other one, or not at all (the products are given).
BY_ROWS, BY_COLUMNS, GIVEN = 0, 1, 2
VIOLATION, ABSOLUTE, DOT = range(3)
MOMENTUM, L1, SHRINK = range(3)


@jit(fastmath={"contract", "nsz", "arcp", "reassoc"}, error_model="numpy")
def _sums(cross, new, l1):
    """Return the sums of |cross| and of (cross + l1) new, in float64."""
    absolute = dot = 0.0
    for i in range(len(cross)):
        absolute += abs(np.float64(cross[i]))
        dot += (np.float64(cross[i]) + l1) * np.float64(new[i])
    return absolute, dot


@functools.cache
def _task_of(dtype: Any) -> Task:
    kind = np.dtype(dtype).type
    item = np.dtype(dtype).itemsize

    def update_task(address, start, stop):
        given = carray(pointer(address), (24,), np.int64)
        n, k, inner, form, lda = stop - start, given[K], given[INNER], given[FORM], given[LDA]
        letter, block = given[KIND], given[BLOCK]
        scalars = carray(pointer(given[SCALARS]), (3,), np.float64)
        # Entries of this range.
        shift = start * k * item
        size = n * k
        cross = carray(pointer(given[CROSS] + shift), (n, k), kind)
        flat = carray(pointer(given[CROSS] + shift), (size,), kind)
        flat_new = carray(pointer(given[NEW] + shift), (size,), kind)
        l1 = kind(scalars[L1])
        place = given[DATA] + start * item * (lda if form == BY_ROWS else 1)
        if form == GIVEN:
            products = carray(pointer(given[OTHER] + shift), (size,), kind)
            for i in range(size):
                flat[i] = products[i] - l1
        else:
            # The transpose of the products: BLAS is faster where the long side is the contiguous one, by a
            # tenth, in float32 by a third. It lies where the extrapolated rows will be.
            turned = carray(pointer(given[CHOSEN] + shift), (k, n), kind)
            lies = TURNED_OVER if form == BY_ROWS else PLAIN
            to = given[CHOSEN] + shift
            gemm(letter, TURNED_OVER, lies, k, n, inner, given[OTHER], k, place, lda, to, n)
            for i in range(n):
                for a in range(k):
                    cross[i, a] = turned[a, i] - l1
        # Coordinate descent as the task that it is: called by its address it is not compiled once more.
        arguments = given[ARGUMENTS] + 8 * HALS_ARGUMENTS * (start // block)
        of_hals = carray(pointer(arguments), (HALS_ARGUMENTS,), np.int64)
        of_hals[native.N_ROWS], of_hals[native.ROWS] = n, min(TILE, n)
        of_hals[native.FACTOR], of_hals[native.CROSS] = given[NEW] + shift, given[CROSS] + shift
        of_hals[native.VIOLATIONS] = given[VIOLATIONS] + 8 * start
        of_hals[native.INITIAL] = given[FACTOR] + shift
        call(given[HALS], arguments, 0, n)
        chosen = given[NEW]
        if given[MOVES]:
            chosen = given[CHOSEN]
            momentum = kind(scalars[MOMENTUM])
            old = carray(pointer(given[OLD] + shift), (size,), kind)
            moved = carray(pointer(chosen + shift), (size,), kind)
            for i in range(size):
                moved[i] = max(flat_new[i] + momentum * (flat_new[i] - old[i]), kind(0))
        slot = start // block
        sums = carray(pointer(given[SUMS] + slot * 24), (3,), np.float64)
        sums[ABSOLUTE], sums[DOT] = _sums(flat, flat_new, np.float64(l1))
        violations = carray(pointer(given[VIOLATIONS] + 8 * start), (n,), np.float64)
        sums[VIOLATION] = 0.0
        for i in range((n + TILE - 1) // TILE):
            sums[VIOLATION] += violations[i]
        f, to = chosen + shift, slot * k * k * item
        gemm(letter, TURNED_OVER, PLAIN, k, k, n, f, k, f, k, given[GRAMS] + to, k)
        if given[OF_NEW]:
            f = given[NEW] + shift
            gemm(letter, TURNED_OVER, PLAIN, k, k, n, f, k, f, k, given[NEW_GRAMS] + to, k)
        if given[WIDE]:
            lies = PLAIN if form == BY_ROWS else TURNED_OVER
            to = given[PRODUCTS] + slot * inner * k * item
            gemm(letter, TURNED_OVER, lies, k, inner, n, chosen + shift, k, place, lda, to, inner)

    return Task(update_task)


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


def block_of(n_rows: int, itemsize: int, n_threads: int = USUAL_THREADS) -> int:
    """Return how many rows are done at once: whole vectors of coordinate descent."""
    lanes = native.VECTOR // itemsize
    wanted = lanes * -(-n_rows // (SHARES * n_threads * lanes))
    longest = min(ALONE, LONGEST * USUAL_THREADS // n_threads)
    return max(min(wanted, max(longest, lanes)), lanes * -(-n_rows // (MOST_BLOCKS * lanes)))


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
        n_threads: int = USUAL_THREADS,
    ) -> None:
        # `data` has one row per row of the factor; None if the products come ready. What the task writes
        # besides factors is kept for the next one. Blocks are made for `n_threads`.
        form, lda = (GIVEN, 0) if data is None else form_of(data) or (GIVEN, 0)
        inner = 0 if data is None else data.shape[1]
        self.dtype, self.shape, self.wide, self.of_new = np.dtype(dtype), (n_rows, k), wide, of_new
        self.block = block_of(n_rows, self.dtype.itemsize, n_threads)
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
        given[KIND] = ord("s" if self.dtype.itemsize == 4 else "d")
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
        # Kept until the task is done.
        arrays = [np.ascontiguousarray(array) for array in (factor, other, old if moves else new)]
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
