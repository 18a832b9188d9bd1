"""How often words weigh together: the word-word correlation of a collection, which is never formed.

With F the weights of words in documents (one document per row), P = F'F / n_documents is as wide and as high
as the vocabulary. Products with it are two products with F.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import as_data_matrix
from nonneg.data.matrix import LocalMatrix
from nonneg.data.sparse import SparseMatrix


class WordCorrelation(LocalMatrix):
    """The matrix F'F / n_documents, one word per row, optionally with rows that sum to one."""

    container = "correlation"

    def __init__(self, weights: Any, *, normalized: bool = False) -> None:
        base = as_data_matrix(weights)
        assert isinstance(base, SparseMatrix)
        self.base = base
        self.n_documents, n_words = base.shape
        self.shape, self.dtype, self.xp = (n_words, n_words), base.dtype, base.xp
        self.row_scale: FloatArray | None = None
        if normalized:
            sums = self.times(np.ones((n_words, 1), dtype=self.dtype))
            self.row_scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)

    def _scaled(self, left: Array) -> Array:
        return left if self.row_scale is None else left * self.row_scale

    def times(self, right: Array) -> SampleArray:
        """Return P right."""
        inner = self.base.times(right) / self.n_documents
        product = self.base.transposed_times(np.ascontiguousarray(inner))
        return self._scaled(product) if hasattr(self, "row_scale") else product

    def transposed_times(self, left: SampleArray) -> Array:
        """Return P' left."""
        inner = self.base.times(np.ascontiguousarray(self._scaled(left))) / self.n_documents
        return self.base.transposed_times(np.ascontiguousarray(inner))

    def take_rows(self, rows: Any) -> Array:
        """Return the rows of some words."""
        words = np.asarray(rows, dtype=np.int64)
        part = (self.base.transposed[words] @ self.base.csr).toarray() / self.n_documents
        return part if self.row_scale is None else part * self.row_scale[words]

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return the rows of a range of words."""
        return self.take_rows(np.arange(start, stop))

    def select(self, rows: Any) -> LocalMatrix:
        """Return a container of the rows of some words."""
        part = sp.csr_array(self.base.transposed[rows] @ self.base.csr) / self.n_documents
        if self.row_scale is not None:
            part = sp.diags_array(self.row_scale[rows, 0]) @ part
        return SparseMatrix(sp.csr_array(part))

    def to_device(self, array: Any) -> Array:
        """Bring an array to the dtype of the data."""
        return self.base.to_device(array)

    def _blocks(self) -> Any:
        return (self.dense_rows(start, stop) for start, stop in self.row_blocks(1 << 20))

    def squared_norm(self) -> float:
        """Return the sum of the squared entries."""
        return float(sum(np.sum(rows * rows, dtype=np.float64) for rows in self._blocks()))

    def total(self) -> float:
        """Return the sum of the entries."""
        return float(np.sum(self.times(np.ones((self.shape[1], 1), dtype=self.dtype)), dtype=np.float64))

    def count_nonzero(self) -> int:
        """Return the number of pairs of words that meet."""
        return int(sum(np.count_nonzero(rows) for rows in self._blocks()))

    def _compute_extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry."""
        found = [(float(rows.min()), float(rows.max())) for rows in self._blocks()]
        return min(low for low, _ in found), max(high for _, high in found)
