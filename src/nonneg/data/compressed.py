"""Compressed data: X V V' for a few orthonormal columns V, held as the sample array X V and the small V.

A product costs l (n_rows + n_columns) operations per column instead of n_rows n_columns, and a pass over
compressed data does not read X: for data out of memory it costs no pass over the disk. V nearly spans the
leading right singular vectors, so that X V V' is little worse than the best approximation of rank l.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import DataMatrix, LocalMatrix, float64_sum
from nonneg.data.spectral import Float64Array, apply_gram
from nonneg.data.views import BlockView


def leading_range(data: DataMatrix, width: int) -> Float64Array:
    """Return orthonormal columns that nearly span the leading right singular vectors, from one pass."""
    # Halko, Martinsson & Tropp (2011), SIAM Review 53(2), Algorithm 4.3 with one power iteration, on X'. The
    # draw depends on the number of columns alone: neither the order of rows nor the container matters.
    n_columns = data.shape[1]
    drawn = np.random.default_rng([n_columns, width]).standard_normal((n_columns, width))
    return np.linalg.qr(apply_gram(data, drawn))[0]


def compressed(data: DataMatrix, width: int, *, dtype: Any, scale: float = 1.0) -> DataMatrix | None:
    """Return `scale` X V V' in another dtype, from two passes; None where the container has no such form."""
    if data.has_missing:
        return None
    V = leading_range(data, width)
    (rows,), _ = data.map_reduce_rows(_project, V=data.to_device(V), dtype=dtype, scale=scale)
    projected = data.sample_matrix(rows)
    if projected is None:
        return None
    held = data.xp.astype(data.to_device(V), dtype)
    if isinstance(projected, LocalMatrix):
        return CompressedMatrix(projected, held)
    return BlockView(projected, CompressedMatrix, n_columns=data.shape[1], V=held)


def _project(block: LocalMatrix, *, V: Array, dtype: Any, scale: float) -> tuple[tuple[Array], tuple[()]]:
    return (block.xp.astype(block.times(V) * scale, dtype),), ()


class CompressedMatrix(LocalMatrix):
    """X V V' in this process, or one block of it."""

    def __init__(self, projected: LocalMatrix, V: Array) -> None:
        self.projected, self.V = projected, V
        self._right = DenseMatrix(V, projected.xp)
        self.container, self.xp, self.dtype = projected.container, projected.xp, projected.dtype
        self.shape = (projected.shape[0], int(V.shape[0]))
        self.weights = projected.weights

    def times(self, Ht: Array) -> SampleArray:
        """Return X V V' Ht."""
        return self.projected.times(self._right.transposed_times(Ht))

    def transposed_times(self, W: SampleArray) -> Array:
        """Return V V' X' diag(weights) W."""
        return self._right.times(self.projected.transposed_times(W))

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries; V is orthonormal."""
        return self.projected.squared_norm()

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        sums = self.to_device(np.ones((self.shape[1], 1)))
        return float64_sum(self.xp, self.weighted(self.times(sums)))

    def count_nonzero(self) -> int:
        """Return the number of entries that a product reads."""
        return int(self.V.shape[1]) * (self.shape[0] + self.shape[1])

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype and on the device of the data."""
        return self.projected.to_device(array)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        return self.projected.take_rows(rows) @ self.V.T

    def raw_factors(self) -> tuple[Any, Any] | None:
        """Return X V and V."""
        left = self.projected.raw_factors()
        return None if left is None else (left[0], self.V)

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows."""
        return self.projected.dense_rows(start, stop) @ self.V.T

    def select(self, rows: Any) -> CompressedMatrix:
        """Return some rows."""
        return CompressedMatrix(self.projected.select(rows), self.V)
