"""The smoothed row sparsity of columns whose lists are PyTorch tensors; see `losses.row_sparsity`."""

from __future__ import annotations

from dataclasses import dataclass

from nonneg._typing import Array
from nonneg.kernels.self_dictionary.torch_slope import TensorSlope
from nonneg.kernels.sparse_columns import UNDERFLOW, SparseColumns
from nonneg.kernels.sparse_columns.torch import exact_sums, near_maxima


@dataclass(frozen=True)
class TensorRowSparsity:
    """Value and slope of the smoothed row sparsity, as tensors."""

    value: Array  # the sum over the rows
    base: Array  # the slope at entries that are zero
    rows: Array  # the entries near their row's largest; at others the slope is the base
    columns: Array
    shares: Array  # the slopes at them
    inner: Array  # slope times entry, summed over each column

    def slope(self, lam: float) -> TensorSlope:
        """Return lam times the slope, as the scan takes it."""
        extra = lam * (self.shares - self.base[self.rows])
        return TensorSlope(lam * self.base, self.rows, self.columns, extra, len(self.inner))


def tensor_row_sparsity(
    columns: SparseColumns, mu: float, row_max: Array, row_count: Array
) -> TensorRowSparsity:
    """Evaluate the smoothed row sparsity of a matrix and its slope."""
    n, total = columns.n_columns, columns.total or 1.0
    # The weights count in units of 1 / total; a scale near the smallest number would have no inverse.
    scale = max(mu * total, 1e-300)
    near = near_maxima(columns, row_max, scale)
    height = row_max.double() / scale
    at_zero = (-height).exp() * (height < UNDERFLOW)
    sums = exact_sums(near.rows, near.values, n) + (n - row_count) * at_zero
    filled = row_count > 0
    logs = ((sums / n).log() * filled).sum()
    value = (row_max.double() / total).sum() + mu * logs
    shares = near.values / sums[near.rows]
    inner = exact_sums(near.columns, shares * (near.weights.double() / total), n)
    return TensorRowSparsity(value, at_zero / sums, near.rows, near.columns, shares, inner)
