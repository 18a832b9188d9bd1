"""The smoothed row sparsity: a sum over the rows of mu log(mean exp(c / mu)), close to the sum of row maxima.

The largest entry of a row is subtracted in the exponents, so that no mu overflows. Rows without entries have
the value 0 and the gradient 1/n; the gradient differs from that of zero entries only at the stored entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._lazy import cached_property
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError
from nonneg.kernels.self_dictionary.types import PenaltyGradient, TensorPenaltyGradient
from nonneg.kernels.sparse_columns import (
    UNDERFLOW,
    SparseColumns,
    columns_of,
    near_maxima,
    row_facts,
    sums_by_row,
)
from nonneg.kernels.sparse_columns import torch as tensor_columns


@dataclass(frozen=True)
class RowSparsity:
    """Value and gradient of the smoothed row sparsity at a matrix with few entries."""

    value: float  # the sum over the rows
    base: FloatArray  # the gradient at entries that are zero
    # The entries near the largest of their row, column by column; at others the gradient is the base.
    indptr: IntArray
    rows: IntArray
    shares: FloatArray  # the gradients at them: exp(c / mu) divided by the sum of the row
    inner: FloatArray  # gradient times entry, summed over each column

    def penalty_gradient(self, lam: float) -> PenaltyGradient:
        """Return lam times the gradient, for the oracle."""
        extra = lam * (self.shares - self.base[self.rows])
        return PenaltyGradient(lam * self.base, self.indptr, self.rows, extra)


def row_sparsity(
    columns: SparseColumns, mu: float, *, row_max: Any = None, row_count: IntArray | None = None
) -> RowSparsity:
    """Evaluate the smoothed row sparsity of a matrix and its gradient."""
    # The work is linear in the number of entries; exponentials are computed only near the largest of each
    # row. Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable NMF", Lemma 2
    # and (18).
    from nonneg.kernels.sparse_columns.numba import entry_slopes, row_slopes  # loaded with the first fit

    n, total = columns.n_columns, columns.total or 1.0
    if row_max is None or row_count is None:
        row_max, row_count = row_facts(columns)
    # The weights are in units of 1 / total; a scale near the smallest number would have no inverse.
    scale = max(mu * total, 1e-300)
    near = near_maxima(columns, row_max, scale)
    sums, base = sums_by_row(near, n), np.empty(n)
    value = float(row_slopes(row_max, row_count, sums, scale, total, mu, base))
    shares, inner = np.empty(len(near.rows)), np.empty(n)
    entry_slopes(near.indptr, near.rows, near.weights, near.values, sums, total, shares, inner)
    return RowSparsity(value, base, near.indptr, near.rows, shares, inner)


def smoothed_row_sparsity(C: Any, mu: float) -> float:
    """Return the sum over the rows of mu log(mean exp(c / mu))."""
    if not mu > 0:
        raise InvalidParameterError(f"mu must be a number above 0, got {mu!r}.")
    return row_sparsity(columns_of(C), mu).value


@dataclass(frozen=True)
class SparsityOnLine:
    """The smoothed row sparsity on a line through a matrix with few entries."""

    rows: IntArray  # the rows of the entries that are or become positive, in any order
    entries: FloatArray  # the origin of the line and its direction
    directions: FloatArray
    n: int  # number of rows and columns of the matrix
    mu: float  # the smoothing

    @cached_property
    def _filled(self) -> tuple[IntArray, FloatArray]:
        count = np.bincount(self.rows, minlength=self.n)
        filled = np.flatnonzero(count)
        return filled, (self.n - count[filled]).astype(np.float64)

    def at(self, size: float) -> tuple[float, float]:
        """Return value and derivative at a step size."""
        from nonneg.kernels.sparse_columns.numba import row_sums, row_tops  # loaded with the first fit

        inverse = 1.0 / max(self.mu, 1e-300)
        tops, sums, slopes = np.zeros(self.n), np.empty(self.n), np.zeros(self.n)
        row_tops(self.rows, self.entries, self.directions, size, tops, sums)
        row_sums(self.rows, self.entries, self.directions, size, inverse, tops, sums, slopes)
        filled, zeros = self._filled
        with np.errstate(under="ignore", over="ignore"):
            whole = sums[filled] + zeros * np.exp(-(tops[filled] * inverse))
        value = float(np.sum(tops[filled])) + self.mu * float(np.sum(np.log(whole / self.n)))
        return value, float(np.sum(slopes[filled] / whole))


@dataclass(frozen=True)
class TensorRowSparsity:
    """Value and gradient of the smoothed row sparsity, as tensors."""

    value: Array  # the sum over the rows
    base: Array  # the gradient at entries that are zero
    rows: Array  # the entries near the largest of their row; at others the gradient is the base
    columns: Array
    shares: Array  # the gradients at them
    inner: Array  # gradient times entry, summed over each column

    def penalty_gradient(self, lam: float) -> TensorPenaltyGradient:
        """Return lam times the gradient, for the oracle."""
        extra = lam * (self.shares - self.base[self.rows])
        return TensorPenaltyGradient(lam * self.base, self.rows, self.columns, extra, len(self.inner))


def tensor_row_sparsity(
    columns: SparseColumns, mu: float, row_max: Array, row_count: Array
) -> TensorRowSparsity:
    """Evaluate the smoothed row sparsity of a matrix and its gradient."""
    n, total = columns.n_columns, columns.total or 1.0
    # The weights are in units of 1 / total; a scale near the smallest number would have no inverse.
    scale = max(mu * total, 1e-300)
    near = tensor_columns.near_maxima(columns, row_max, scale)
    height = row_max.double() / scale
    at_zero = (-height).exp() * (height < UNDERFLOW)
    sums = tensor_columns.exact_sums(near.rows, near.values, n) + (n - row_count) * at_zero
    filled = row_count > 0
    logs = ((sums / n).log() * filled).sum()
    value = (row_max.double() / total).sum() + mu * logs
    shares = near.values / sums[near.rows]
    inner = tensor_columns.exact_sums(near.columns, shares * (near.weights.double() / total), n)
    return TensorRowSparsity(value, at_zero / sums, near.rows, near.columns, shares, inner)
