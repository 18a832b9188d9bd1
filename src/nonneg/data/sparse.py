"""Sparse entries: SciPy CSR, with its transpose computed once, for products with X'."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import to_numpy
from nonneg._lazy import cached_property
from nonneg._threads import parallel_for
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import LocalMatrix, float64_sum
from nonneg.data.observed import ArrayObserved, ListedObserved
from nonneg.kernels.sparse_products import sparse_times


class SparseMatrix(LocalMatrix):
    """A CSR matrix; entries that are not stored are zeros."""

    container = "sparse"
    is_sparse = True
    single_use = False  # a block of a file, whose transpose would be used once and double its memory

    def __init__(self, csr: Any, *, weights: Array | None = None, observed: Any = None) -> None:
        self.csr = csr
        self.xp = array_namespace(csr.data)
        self.shape = (int(csr.shape[0]), int(csr.shape[1]))
        self.dtype = csr.dtype
        self.weights = weights
        self.observed: ListedObserved | ArrayObserved | None = observed
        self.is_weighted = observed is not None and not observed.is_mask

    @cached_property
    def products(self) -> Any:
        """The entries times their weights: what products with the data are made of."""
        if not self.is_weighted:
            return self.csr
        return self._with_data(self.csr.data * self.entry_weights(rows=False).astype(self.dtype))

    def _with_data(self, data: Array) -> Any:
        # Not by the constructor, which would look through the places again.
        found = sp.csr_array(self.shape, dtype=data.dtype)
        found.data, found.indices, found.indptr = data, self.csr.indices, self.csr.indptr
        return found

    @cached_property
    def transposed(self) -> Any:
        """The transpose of `products` in CSR: two more arrays of the nonzeros, made once."""
        return sp.csr_array(self.products.T.tocsr())

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        X = self.products
        return sparse_times(X.indptr, X.indices, X.data, Ht)

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        W = self.weighted(W)
        if self.single_use and "transposed" not in vars(self):
            return self._scattered(W)
        Xt = self.transposed
        return sparse_times(Xt.indptr, Xt.indices, Xt.data, W)

    def _scattered(self, W: Array) -> Array:
        """Return X' W from the rows of X, each thread with a sum of its own."""
        csr, n_columns = self.products, self.shape[1]

        def work(start: int, stop: int) -> Any:
            first, last = csr.indptr[start], csr.indptr[stop]
            # Set one by one: SciPy's constructor copies slices of less than half of an array.
            part = sp.csc_array((n_columns, stop - start), dtype=csr.dtype)
            part.data, part.indices = csr.data[first:last], csr.indices[first:last]
            part.indptr = csr.indptr[start : stop + 1] - first
            return part @ W[start:stop]

        products = parallel_for(work, self.shape[0], chunk_size=256, operations=2.0 * csr.nnz * W.shape[1])
        return sum(products[1:], start=products[0])

    def entry_weights(self, *, rows: bool = True) -> Array:
        """Return the weights of the stored entries, with those of their rows or without."""
        places = self.csr.tocoo()
        found = np.ones(self.csr.nnz)
        if rows and self.weights is not None:
            found = np.asarray(self.weights, dtype=np.float64)[places.row]
        if self.is_weighted and self.observed is not None:
            found = found * self.observed.at(places.row, places.col)
        return found

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries."""
        data = self.csr.data.astype(np.float64, copy=False)
        if self.weights is None and not self.is_weighted:
            return float(data @ data)
        return float(data @ (data * self.entry_weights()))

    def squared_row_norms(self) -> Array:
        """Return the sum of the squared entries of every row."""
        return np.asarray(self.csr.multiply(self.csr).sum(axis=1), dtype=self.dtype).ravel()

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        if self.weights is None and not self.is_weighted:
            return float64_sum(np, self.csr.data)
        return float(self.csr.data @ self.entry_weights())

    def count_nonzero(self) -> int:
        """Return the number of entries that are not zero."""
        return int(np.count_nonzero(self.csr.data))

    def _compute_extremes(self) -> tuple[float, float]:
        data = self.csr.data
        if data.size == 0:
            return 0.0, 0.0
        low, high = float(data.min()), float(data.max())
        if data.size < self.shape[0] * self.shape[1] and low == low:
            low, high = min(low, 0.0), max(high, 0.0)
        return low, high

    def to_device(self, array: Any) -> Array:
        """Return a NumPy array of the dtype of the data."""
        return np.ascontiguousarray(to_numpy(array), dtype=self.dtype)

    def scaled_copy(self, scale: float, dtype: Any) -> SparseMatrix:
        """Return the entries times a power of two in another dtype, at the same places in memory."""
        weights = None if self.weights is None else self.weights.astype(dtype)
        found = SparseMatrix(_scaled(self.csr, scale, dtype), weights=weights)
        found.transposed = _scaled(self.transposed, scale, dtype)
        return found

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        return self.csr[np.asarray(rows, dtype=np.int64)].toarray()

    def raw_rows(self) -> tuple[Any, Any, Any]:
        """Return the entries as compiled kernels read them."""
        return self.csr.indptr, self.csr.indices, self.csr.data

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows, made dense."""
        return self.csr[start:stop].toarray()

    def select(self, rows: Any) -> SparseMatrix:
        """Return some rows."""
        return SparseMatrix(
            self.csr[rows],
            weights=None if self.weights is None else self.weights[rows],
            observed=None if self.observed is None else self.observed.rows(rows),
        )


def _scaled(csr: Any, scale: float, dtype: Any) -> Any:
    # Not by the constructor, which would look through the places again.
    found = sp.csr_array(csr.shape, dtype=dtype)
    found.data = (csr.data * csr.dtype.type(scale)).astype(dtype)
    found.indices, found.indptr = csr.indices, csr.indptr
    return found
