"""Views of the data with scaled rows or columns, or transposed: the entries are neither changed nor copied.

Several families ask for samples of unit length, samples that sum to one, or the transpose. A view scales the
small factors of a product instead of the data, so that it costs as much as the data themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import Any

import numpy as np

from nonneg._arrays import computed, to_device
from nonneg._typing import Array, SampleArray
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import BlockedMatrix, DataMatrix, LocalMatrix, RowFunction
from nonneg.data.sparse import SparseRows


class ScaledMatrix(LocalMatrix):
    """The matrix diag(row_scale) X diag(column_scale) of a local X, without a copy of its entries."""

    # Row weights and observed entries are those of X: they count rows and entries, whatever their size.

    container = "scaled"

    def __init__(
        self, base: LocalMatrix, row_scale: Array | None = None, column_scale: Array | None = None
    ) -> None:
        self.base = base
        self.row_scale = row_scale
        self.column_scale = column_scale
        self.shape, self.dtype, self.xp = base.shape, base.dtype, base.xp
        self.weights, self.observed, self.is_weighted = base.weights, base.observed, base.is_weighted

    def _rows(self, W: Array) -> Array:
        return W if self.row_scale is None else W * self.row_scale

    def _to_base(self, Ht: Array) -> Array:
        return Ht if self.column_scale is None else Ht * self.column_scale[:, None]

    def _from_base(self, product: Array) -> Array:
        return self._to_base(product)

    def _expanded(self, rows: Array) -> Array:
        return rows if self.column_scale is None else rows * self.column_scale[None, :]

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        return self._rows(self.base.times(self._to_base(Ht)))

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        return self._from_base(self.base.transposed_times(self._rows(W)))

    def materialized(self) -> LocalMatrix:
        """Return the same matrix with scaled entries stored."""
        if isinstance(self.base, SparseRows):
            return self.base.scaled(self.row_scale, self.column_scale)
        entries = self.dense_rows(0, self.shape[0])
        return DenseMatrix(entries, self.xp, weights=self.weights, observed=self.observed)

    def entry_sum(self, function: Callable[[Array], Array]) -> float:
        """Return the weighted sum of a function of the entries that is 0 at 0, in float64."""
        return self.materialized().entry_sum(function) if self.base.is_sparse else super().entry_sum(function)

    def row_powers(self, power: float) -> Array:
        """Return the sum of a power of the absolute entries of every row, in float64."""
        if self.column_scale is not None:
            return self.materialized().row_powers(power) if self.base.is_sparse else super().row_powers(power)
        sums = self.base.row_powers(power)
        return sums if self.row_scale is None else sums * abs(self.row_scale[:, 0]) ** power

    def count_nonzero(self) -> int:
        """Return the number of entries of X that are not zero."""
        return self.base.count_nonzero()

    def _compute_extremes(self) -> tuple[float, float]:
        return self.materialized().extremes() if self.base.is_sparse else super()._compute_extremes()

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype and on the device of the data."""
        return self.base.to_device(array)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows, scaled."""
        selected = self.base.take_rows(rows)
        if self.row_scale is not None:
            index = to_device(np.asarray(rows, dtype=np.int64), self.row_scale)
            selected = selected * self.xp.take(self.row_scale, index, axis=0)
        return self._expanded(selected)

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows, scaled and dense."""
        rows = self.base.dense_rows(start, stop)
        return self._expanded(rows if self.row_scale is None else rows * self.row_scale[start:stop, :])

    def select(self, rows: Any) -> ScaledMatrix:
        """Return a view of some rows."""
        scale = None if self.row_scale is None else self.row_scale[rows, :]
        return ScaledMatrix(self.base.select(rows), row_scale=scale, column_scale=self.column_scale)


class CompressedMatrix(ScaledMatrix):
    """The matrix X V V' for a few orthonormal columns V, held as X V, or one block of it."""

    def __init__(self, projected: LocalMatrix, V: Array) -> None:
        super().__init__(projected, column_scale=V)
        self._V = DenseMatrix(V, projected.xp)
        self.container, self.shape = projected.container, (projected.shape[0], int(V.shape[0]))

    def _to_base(self, Ht: Array) -> Array:
        return self._V.transposed_times(Ht)

    def _from_base(self, product: Array) -> Array:
        return self._V.times(product)

    def _expanded(self, rows: Array) -> Array:
        return rows @ self._V.array.T

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries; V is orthonormal."""
        return self.base.squared_norm()

    def select(self, rows: Any) -> CompressedMatrix:
        """Return some rows."""
        return CompressedMatrix(self.base.select(rows), self._V.array)


def transposed(data: LocalMatrix) -> LocalMatrix:
    """Return the transpose of local data without weights of rows and entries; dense ones are not copied."""
    if isinstance(data, ScaledMatrix):
        row_scale = None if data.column_scale is None else data.column_scale[:, None]
        column_scale = None if data.row_scale is None else data.row_scale[:, 0]
        return ScaledMatrix(transposed(data.base), row_scale=row_scale, column_scale=column_scale)
    if isinstance(data, DenseMatrix):
        return DenseMatrix(data.array.T, data.xp)
    assert isinstance(data, SparseRows)
    return type(data)(data.transposed, transposed=data.csr)


def tall(data: DataMatrix) -> DataMatrix:
    """Return the transpose of data that are wider than tall; those that have none as they are."""
    if not isinstance(data, LocalMatrix) or data.weights is not None or data.observed is not None:
        return data
    return transposed(data) if data.shape[0] < data.shape[1] else data


class BlockView(BlockedMatrix):
    """A view of data in blocks: each block becomes `view(block, *rows, **options)` where it is."""

    def __init__(
        self,
        base: DataMatrix,
        view: Callable[..., LocalMatrix],
        *rows: SampleArray,
        n_columns: int | None = None,
        **options: Any,
    ) -> None:
        self.base, self.view, self.rows, self.options = base, view, rows, options
        self.container, self.dtype, self.xp = base.container, base.dtype, base.xp
        self.weights, self.has_mask, self.is_weighted = base.weights, base.has_mask, base.is_weighted
        self.shape = (base.shape[0], n_columns or base.shape[1])

    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function on the view of every block."""
        called = {"view": self.view, "n_own": len(self.rows), "options": self.options, "inner": function}
        arrays = (*self.rows, *sample_arrays)
        return self.base.map_reduce_rows(_on_view, *arrays, n_out=n_out, **called, shared=shared)

    def weighted_gram(self, W: SampleArray) -> Array:
        """Return W' diag(weights) W."""
        return self.base.weighted_gram(W)

    def sample_matrix(self, W: SampleArray) -> DataMatrix | None:
        """Return an array with one row per sample as data, with the same row weights."""
        return self.base.sample_matrix(W)

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample, in the blocks of the data."""
        return self.base.to_sample_array(array)

    def to_device(self, array: Any) -> Array:
        """Return a small array in the namespace and dtype of the blocks."""
        return self.base.to_device(array)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the views of the blocks one by one, in this process."""
        start = 0
        for block in self.base.local_blocks():
            stop = start + block.shape[0]
            yield self.view(block, *(computed(array[start:stop]) for array in self.rows), **self.options)
            start = stop

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        index = np.asarray(rows, dtype=np.int64)
        block = DenseMatrix(self.base.take_rows(rows), self.xp)
        own = (computed(array[index]) for array in self.rows)
        return self.view(block, *own, **self.options).dense_rows(0, len(index))


def _on_view(
    block: LocalMatrix,
    *arrays: Array,
    view: Callable[..., LocalMatrix],
    n_own: int,
    options: dict[str, Any],
    inner: RowFunction,
    shared: dict[str, Any],
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return inner(view(block, *arrays[:n_own], **options), *arrays[n_own:], **shared)


def _viewed(
    data: DataMatrix, view: Callable[..., LocalMatrix], *rows: SampleArray, **options: Any
) -> DataMatrix:
    whole = isinstance(data, LocalMatrix)
    return view(data, *rows, **options) if whole else BlockView(data, view, *rows, **options)


def scaled_columns(data: DataMatrix, scale: Array) -> DataMatrix:
    """Return the data with every column multiplied by a factor, without a copy of the entries."""
    return _viewed(data, ScaledMatrix, column_scale=data.to_device(scale))


def normalized_rows(data: DataMatrix, norm: str = "l2") -> DataMatrix:
    """Return the data with rows of l1 or l2 norm 1, without a copy of the entries; rows of zeros stay."""
    scale = data.map_rows(methodcaller("inverse_row_norms", norm))
    return _viewed(data, ScaledMatrix, scale)


def unweighted(data: DataMatrix) -> DataMatrix:
    """Return the data with weights of 0 and 1 for the entries, missing and observed."""
    if not data.is_weighted:
        return data
    view = _viewed(data, _unweighted_block)
    view.is_weighted = False
    return view


def _unweighted_block(block: Any) -> LocalMatrix:
    mask = block.observed.mask()
    if isinstance(block, SparseRows):
        return type(block)(block.csr, weights=block.weights, observed=mask)
    return DenseMatrix(block.array, block.xp, weights=block.weights, observed=mask)


def with_rank_one_weights(data: DataMatrix, beta: float) -> tuple[DataMatrix, Array | None]:
    """Return data with row weights and scaled columns that have the same loss, and the scale; or the same."""
    # D(c x | c v) = c^beta D(x | v): weights of columns scale X and H, and rows keep one Gram matrix. Betas
    # below 1 would need scales of many orders of magnitude, from which their solvers end elsewhere.
    if not isinstance(data, LocalMatrix) or not data.is_weighted or beta < 1 or data.n_missing:
        return data, None
    observed: Any = data.observed
    xp, rows, first = data.xp, [], data.xp.astype(observed.dense_rows(0, 1)[0, :], data.xp.float64)
    for start, stop in data.row_blocks(1 << 20):
        part = xp.astype(observed.dense_rows(start, stop), xp.float64)
        rows.append(part[:, 0] / first[0])
        # What two products in the dtype of the data may differ by.
        if xp.any(xp.abs(part - rows[-1][:, None] * first) > 4 * float(xp.finfo(data.dtype).eps) * part):
            return data, None
    mean = xp.mean(xp.concat(rows))
    weights, scale = (data.to_device(a) for a in (xp.concat(rows) / mean, (first * mean) ** (1 / beta)))
    size = float(xp.max(scale)) * max(map(abs, data.extremes()))
    if not size * size < float(xp.finfo(data.dtype).max) / (data.shape[0] * data.shape[1]):
        return data, None  # squares would overflow
    scaled = ScaledMatrix(_unweighted_block(data), column_scale=scale).materialized()
    scaled.weights = weights if data.weights is None else weights * data.weights
    scaled.numpy_out = data.numpy_out
    return scaled, scale


def column_weights(data: DataMatrix) -> Array:
    """Return the mean weight of the observed entries of every column; 1 where nothing was observed."""
    sums, counts = data.reduce_rows(_column_weights)
    xp = data.xp
    return xp.where(counts > 0, sums / xp.where(counts > 0, counts, xp.ones_like(counts)), xp.ones_like(sums))


def _column_weights(block: LocalMatrix) -> tuple[Array, Array]:
    xp, sums, counts = block.xp, 0.0, 0.0
    for start, stop in block.row_blocks(1 << 20):
        weights = xp.astype(block.observed.dense_rows(start, stop), xp.float64)  # type: ignore[union-attr]
        sums = sums + xp.sum(weights, axis=0)
        counts = counts + xp.sum(xp.astype(weights > 0, xp.float64), axis=0)
    return sums, counts
