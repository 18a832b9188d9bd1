"""Update of a factor in one call of the core: a block of rows goes through all phases while it is cached.

A product with the data, coordinate descent, extrapolation, and the sums that the other factor and the loss
need. Each of them alone is over before sixteen threads have begun; together they need one hand-over.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from nonneg._blas import is_held, single_threaded_blas
from nonneg._compiled import core
from nonneg._threads import BLAS, team_size

# Rows that are done at once: so many blocks for each of 16 threads keep all of them busy, whatever the number
# of threads, on which no digit may depend. Products of more rows than LONGEST gain nothing. Sums of more than
# MOST_BLOCKS take memory. Blocks are whole vectors of coordinate descent.
SHARES, USUAL_THREADS, LONGEST, MOST_BLOCKS, VECTOR_BYTES = 2, 16, 320, 128, 256


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
    """Return how many rows are done at once."""
    lanes = VECTOR_BYTES // itemsize
    wanted = lanes * -(-n_rows // (SHARES * USUAL_THREADS * lanes))
    return max(min(wanted, max(LONGEST, lanes)), lanes * -(-n_rows // (MOST_BLOCKS * lanes)))


def is_by_lines(data: Any) -> bool:
    """Tell whether the rows or the columns of a two-dimensional array lie one after another in memory."""
    for (across, along), length in ((data.strides, data.shape[1]), (data.strides[::-1], data.shape[0])):
        if along == data.itemsize and across >= data.itemsize * length and across % data.itemsize == 0:
            return bool(data.flags.aligned)
    return False


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
        # `data` has one row per row of the factor; None if the products come ready.
        self.data, self.shape, self.dtype, self.of_new, self.wide = data, (n_rows, k), dtype, of_new, wide
        self._descent = (np.asarray(order, dtype=np.int64), max_passes, shrink, l1)
        inner = 0 if data is None else data.shape[1]
        self.operations = (
            2.0 * n_rows * k * (BLAS * (inner * (1 + wide) + (1 + of_new) * k) + k * min(max_passes, 3))
        )

    def __call__(self, factor: Any, gram: Any, other: Any, old: Any = None, momentum: float = 0.0) -> Updated:
        """Update the rows, and extrapolate; `other` is the other factor or, without data, the products."""
        (n_rows, k), dtype = self.shape, self.dtype
        new = np.empty((n_rows, k), dtype=dtype)
        chosen = new if old is None else np.empty_like(new)
        chosen_gram = np.empty((k, k), dtype=dtype)
        new_gram = np.empty_like(chosen_gram) if self.of_new and old is not None else None
        products = np.empty((k, self.data.shape[1]), dtype=dtype) if self.wide else None
        # A single column counts as contiguous whatever its strides are; the core reads them.
        if other.strides[1] != other.itemsize or (self.data is not None and not other.flags.c_contiguous):
            other = other.copy(order="C")
        with nullcontext() if is_held() else single_threaded_blas():
            sums = core().factor_update(
                self.data, other, np.ascontiguousarray(gram, dtype=dtype), *self._descent,
                np.ascontiguousarray(factor), None if old is None else np.ascontiguousarray(old), momentum,
                block_of(n_rows, new.itemsize), new, chosen, chosen_gram, new_gram, products,
                team_size(self.operations),
            )  # fmt: skip
        turned = None if products is None else np.ascontiguousarray(products.T)
        return Updated(new, chosen, chosen_gram, chosen_gram if new_gram is None else new_gram, turned, *sums)
