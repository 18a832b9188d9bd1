"""Update of a factor: coordinate descent or exact minimizers, extrapolation, and the sums that come with it.

The compiled core does all of it in one call, a block of rows after another while it is cached: each phase
alone is over before sixteen threads have begun.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array
from nonneg._compiled import core
from nonneg._lazy import cached_property
from nonneg._threads import BLAS, is_held, single_threaded_blas, team_size
from nonneg._typing import Array
from nonneg.kernels.grams import Gram, SharedGram, quadratic_form
from nonneg.kernels.hals import hals_passes
from nonneg.kernels.products import SUMS_SHARE
from nonneg.kernels.rows import absolute_sum, extrapolated, product_sum

# Rows that are done at once: so many blocks for each of 16 threads keep all of them busy, whatever the number
# of threads, on which no digit may depend. Products of more rows than LONGEST gain nothing. Sums of more than
# MOST_BLOCKS take memory. Blocks are whole vectors of coordinate descent, two at least: products of fewer
# rows are mostly calls.
SHARES, USUAL_THREADS, LONGEST, MOST_BLOCKS, VECTOR_BYTES = 2, 16, 320, 128, 512

# Returns updated rows and the sum of their absolute projected gradients, given rows, Gram matrices and cross
# products.
Update: TypeAlias = Callable[[Any, Gram, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class CoordinateDescent:
    """The update of rows by passes of coordinate descent; see `kernels.hals.hals_passes`."""

    order: tuple[int, ...]
    max_passes: int = 1
    shrink: float = 0.0

    @cached_property
    def turns(self) -> Any:
        """The order as the core reads it."""
        return np.asarray(self.order, dtype=np.int64)

    def __call__(self, factor: Array, gram: Gram, cross: Array) -> tuple[Any, Any]:
        return hals_passes(
            factor, gram, cross, order=self.order, max_passes=self.max_passes, shrink=self.shrink
        )


class Updated(NamedTuple):
    """Result of an update; numbers on a GPU stay there."""

    new: Any  # the updated rows
    chosen: Any  # the same, extrapolated
    violation: Any  # sum of the absolute projected gradients at the initial rows, less rounding
    dot: Any  # sum of the products with the data times `new`
    quadratic: Array = None  # sum of f G f' over the rows f of `new`, where it was asked for
    gram: Any = None  # chosen' chosen, where it came with the update
    products: Any = None  # data' chosen, where it came with the update


def update_factor(
    update: Update,
    factor: Array,
    gram: Gram,
    other: Any,
    *,
    data: Any = None,
    l1: float = 0.0,
    old: Any = None,
    momentum: Any = 0.0,
    quadratic: bool = False,
) -> Updated:
    """Update the rows of a factor, and extrapolate them.

    Parameters
    ----------
    update : callable
        How: `CoordinateDescent`, or another function of rows, Gram matrices and cross products.
    factor : array of shape (n_rows, k)
        The initial rows; not modified.
    gram : Gram
        Gram matrices of the other factor, with the L2 penalty.
    other : array of shape (n_rows, k) or (n_columns, k)
        The products of the data with the other factor; with `data`, the other factor.
    data : array of shape (n_rows, n_columns), optional
        A NumPy array that `compiled_entries` returned, or its transpose.
    l1 : float, default 0
        The L1 penalty.
    old : array of shape (n_rows, k), optional
        The updated rows of the iteration before; without them nothing is extrapolated.
    momentum : float or 0-d array, default 0
        The part of the last change that is added again.
    quadratic : bool, default False
        Whether to return the sum of f G f' over the updated rows f, instead of products.

    Returns
    -------
    Updated
        The rows, and sums over them.
    """
    if _takes(update, factor, gram):
        return _compiled(update, factor, gram, other, data, l1, old, momentum, quadratic)
    target = other - l1 if l1 else other
    new, violation = update(factor, gram, target)
    violation = violation - rounding(target)
    del target
    product = product_sum(other, new)
    del other  # its memory serves the extrapolated rows
    chosen = new if old is None else extrapolated(new, old, momentum)
    return Updated(new, chosen, violation, product, quadratic_form(new, gram) if quadratic else None)


def compiled_entries(update: Update, factor: Array, gram: Gram, block: Any) -> Any:
    """Return the entries of a block where `update_factor` multiplies with them itself; else None."""
    X = getattr(block, "array", None)
    if block.weights is not None or not isinstance(X, np.ndarray) or not _takes(update, factor, gram):
        return None
    contiguous = X.flags.c_contiguous or X.flags.f_contiguous
    return X if contiguous and X.dtype == factor.dtype else None


def rounding(cross: Array) -> Any:
    """Return what rounding alone adds to a violation, so that an optimum has none."""
    return 8 * float(array_namespace(cross).finfo(cross.dtype).eps) * absolute_sum(cross)


def block_of(n_rows: int, itemsize: int) -> int:
    """Return how many rows are done at once."""
    lanes = VECTOR_BYTES // itemsize
    usual = lanes * -(-n_rows // (SHARES * USUAL_THREADS * lanes))
    return max(min(usual, max(LONGEST, lanes)), lanes * -(-n_rows // (MOST_BLOCKS * lanes)))


def _takes(update: Update, factor: Array, gram: Gram) -> bool:
    plain = isinstance(update, CoordinateDescent) and isinstance(gram, SharedGram)
    return plain and is_float_array(factor) and core() is not None


def _compiled(
    update: Any, factor: Array, gram: Any, other: Any, data: Any, l1: float, old: Any, momentum: float,
    quadratic: bool,
) -> Updated:  # fmt: skip
    (n_rows, k), dtype = factor.shape, factor.dtype
    new = np.empty((n_rows, k), dtype=dtype)
    chosen = new if old is None else np.empty((n_rows, k), dtype=dtype)
    own_gram, matrix = np.empty((k, k), dtype=dtype), np.ascontiguousarray(gram.matrix, dtype=dtype)
    new_gram = np.empty((k, k), dtype=dtype) if quadratic and old is not None else None
    rows = block_of(n_rows, new.itemsize)
    read, products = 0, None
    if data is not None:
        read = data.shape[1]
        # Products X' W are formed with the update of W, which has just read the rows of X.
        if not quadratic and -(-n_rows // rows) * k <= SUMS_SHARE * n_rows:
            products = np.empty((read, k), dtype=dtype)
            read *= 2
        other = np.ascontiguousarray(other)
    elif other.strides[1] != other.itemsize:  # a single column counts as contiguous whatever its strides are
        other = other.copy(order="C")
    operations = 2.0 * n_rows * k * (BLAS * (read + k) + k * min(update.max_passes, 3))
    with nullcontext() if is_held() else single_threaded_blas():
        violation, absolute, dot = core().factor_update(
            data, other, matrix, update.turns, update.max_passes, update.shrink, l1,
            np.ascontiguousarray(factor), None if old is None else np.ascontiguousarray(old), momentum, rows,
            new, chosen, own_gram, new_gram, products, team_size(operations),
        )  # fmt: skip
    violation -= 8 * float(np.finfo(dtype).eps) * absolute
    form = None
    if quadratic:
        pair = (own_gram if new_gram is None else new_gram, matrix)
        form = float(np.vdot(*(part.astype(np.float64, copy=False) for part in pair)))
    return Updated(new, chosen, violation, dot, form, own_gram, products)
