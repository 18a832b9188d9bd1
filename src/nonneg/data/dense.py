"""Dense entries: NumPy, PyTorch, CuPy or any other array of the array API."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cuda_tensor, numpy_view, to_device
from nonneg._lazy import cached_property
from nonneg._threads import parallel_for
from nonneg._typing import Array, Namespace, SampleArray
from nonneg.data.matrix import LocalMatrix
from nonneg.data.observed import Observed
from nonneg.kernels.products import multiply

# Entries of another namespace than NumPy's that are read at once: 32 MB of float64.
BLOCK_ENTRIES = 1 << 22


class DenseMatrix(LocalMatrix):
    """A dense array; missing entries hold zero."""

    def __init__(
        self, array: Array, xp: Namespace, *, weights: Array | None = None, observed: Observed | None = None
    ) -> None:
        self.array = array
        self.xp = xp
        self.container = "dense" if isinstance(array, np.ndarray) else "array"
        self.part_entries = 1 << 17 if self.container == "dense" else BLOCK_ENTRIES
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = array.dtype
        self.weights = weights
        self.observed = observed
        self.is_weighted = observed is not None and not observed.is_mask

    @cached_property
    def products(self) -> Array:
        """The entries times their weights: what products with the data are made of."""
        if not self.is_weighted or self.observed is None:
            return self.array
        return self.array * self.observed.dense_rows(0, self.shape[0])

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        X = self.products
        if is_cuda_tensor(X):
            # The transpose of the product: written component by component, as kernels on a GPU read it.
            return (Ht.T @ X.T).T
        if self.container != "dense":
            return X @ Ht
        out = np.empty((self.shape[0], Ht.shape[1]), dtype=self.dtype)
        return out if multiply(X, Ht, out) else X @ Ht

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        W, X = self.weighted(W), self.products
        if is_cuda_tensor(X):
            return (W.T @ X).T
        if self.container != "dense":
            return X.T @ W
        out = np.empty((self.shape[1], W.shape[1]), dtype=self.dtype)
        # Else its transpose: BLAS writes that faster, because the long side is the contiguous one.
        return out if multiply(X.T, W, out) else np.ascontiguousarray((W.T @ X).T)

    @cached_property
    def _column_squares(self) -> Array:
        return sum(self._squares("ij,ij->j", np.float64))

    @cached_property
    def _squared_norm(self) -> float:
        plain = self.container == "dense" and not self.is_weighted and self.weights is None
        return float(self._column_squares.sum()) if plain else super()._squared_norm

    def column_powers(self, power: float) -> Array:
        """Return the weighted sum of a power of the entries of every column, in float64."""
        plain = self.container == "dense" and power == 2.0 and self.weights is None
        return self._column_squares if plain else super().column_powers(power)

    def squared_row_norms(self) -> Array:
        """Return the sum of the squared entries of every row."""
        plain = self.container == "dense"
        return np.concatenate(self._squares("ij,ij->i", self.dtype)) if plain else super().squared_row_norms()

    def _squares(self, sums: str, dtype: Any) -> list[Array]:
        def work(start: int, stop: int) -> Array:
            return np.einsum(sums, *[self.array[start:stop, :]] * 2, dtype=dtype)

        return parallel_for(work, self.shape[0], chunk_size=1, operations=2.0 * self.array.size)

    @cached_property
    def _n_nonzero(self) -> int:
        blocks = (self.array[start:stop, :] for start, stop in self.row_blocks(self.part_entries))
        return int(sum(self.xp.count_nonzero(block) for block in blocks))

    def count_nonzero(self) -> int:
        """Return the number of entries other than zero."""
        return self._n_nonzero

    def _compute_extremes(self) -> tuple[float, float]:
        return float(self.xp.min(self.array)), float(self.xp.max(self.array))

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype and on the device of the data."""
        return to_device(array, self.array, self.dtype)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        index = self.xp.asarray(np.asarray(rows, dtype=np.int64), device=self.array.device)
        return self.xp.take(self.array, index, axis=0)

    def sample_matrix(self, W: SampleArray) -> DenseMatrix:
        """Return an array with one row per sample as data, with the same row weights."""
        weights = None if self.weights is None else self.xp.astype(self.weights, W.dtype)
        return DenseMatrix(W, self.xp, weights=weights)

    def raw_rows(self) -> Any:
        """Return the entries as compiled kernels read them."""
        rows = numpy_view(self.array)
        return rows if isinstance(rows, np.ndarray) and rows.flags.c_contiguous else None

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows."""
        return self.array[start:stop, :]

    def select(self, rows: Any) -> DenseMatrix:
        """Return some rows."""
        return DenseMatrix(
            self.array[rows, :],
            self.xp,
            weights=None if self.weights is None else self.weights[rows],
            observed=None if self.observed is None else self.observed.rows(rows),
        )
