"""Chunked data with scaled rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nonneg._arrays import computed
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix, RowFunction
from nonneg.data.views import ScaledMatrix


class ScaledBlocks(DataMatrix):
    """Chunked data with scaled rows: each block becomes a `ScaledMatrix` on its worker."""

    def __init__(self, base: DataMatrix, row_scale: SampleArray) -> None:
        self.base = base
        self.row_scale = row_scale
        self.container = base.container
        self.shape, self.dtype, self.xp, self.weights = base.shape, base.dtype, base.xp, base.weights
        self.has_mask = base.has_mask

    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function on every block, scaled."""
        return self.base.map_reduce_rows(
            _on_scaled, self.row_scale, *sample_arrays, n_out=n_out, inner=function, shared=shared
        )

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        return self.map_reduce_rows(_times, Ht=Ht)[0][0]

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        return self.map_reduce_rows(_transposed_times, W, n_out=0)[1][0]

    def weighted_gram(self, W: SampleArray) -> Array:
        """Return W' diag(weights) W."""
        return self.base.weighted_gram(W)

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries."""
        return float(self.map_reduce_rows(_squared_norm, n_out=0)[1][0])

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        return float(self.map_reduce_rows(_total, n_out=0)[1][0])

    def count_nonzero(self) -> int:
        """Return the number of entries of X that are not zero."""
        return self.base.count_nonzero()

    def _compute_extremes(self) -> tuple[float, float]:
        found = self.map_reduce_rows(_extremes, n_out=0)[1][0]
        return float(np.min([low for low, _ in found])), float(np.max([high for _, high in found]))

    def observed_weight(self) -> float:
        """Return the weighted number of observed entries."""
        return self.base.observed_weight()

    def sample_matrix(self, W: SampleArray) -> DataMatrix | None:
        """Return an array with one row per sample as data, with the same row weights."""
        return self.base.sample_matrix(W)

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample, chunked as the data."""
        return self.base.to_sample_array(array)

    def to_device(self, array: Any) -> Array:
        """Return a small array in the namespace and dtype of the blocks."""
        return self.base.to_device(array)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the blocks one by one, scaled, in this process."""
        start = 0
        for block in self.base.local_blocks():
            stop = start + block.shape[0]
            yield ScaledMatrix(block, row_scale=computed(self.row_scale[start:stop]))
            start = stop

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows, scaled."""
        index = np.asarray(rows, dtype=np.int64)
        scale = self.row_scale[index]
        return self.base.take_rows(rows) * computed(scale)


def _on_scaled(
    block: LocalMatrix, scale: Array, *sample_arrays: Array, inner: RowFunction, shared: dict[str, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return inner(ScaledMatrix(block, row_scale=scale), *sample_arrays, **shared)


def _times(block: LocalMatrix, *, Ht: Array) -> tuple[tuple[Array], tuple[()]]:
    return (block.times(Ht),), ()


def _transposed_times(block: LocalMatrix, W: Array) -> tuple[tuple[()], tuple[Array]]:
    return (), (block.transposed_times(W),)


def _squared_norm(block: LocalMatrix) -> tuple[tuple[()], tuple[float]]:
    return (), (block.squared_norm(),)


def _total(block: LocalMatrix) -> tuple[tuple[()], tuple[float]]:
    return (), (block.total(),)


def _extremes(block: LocalMatrix) -> tuple[tuple[()], tuple[list[tuple[float, float]]]]:
    return (), ([block.extremes()],)
