"""Row-chunked Dask entries: each chunk is a local container on its worker. The only importer of Dask.

A pass is one computation: new rows of W stay on the workers, and small results are fetched and summed in the
order of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import to_numpy
from nonneg._threads import serial
from nonneg._typing import Array, SampleArray
from nonneg.data.local import local_matrix
from nonneg.data.matrix import DataMatrix, LocalMatrix, RowFunction
from nonneg.exceptions import ShapeError


def _on_block(
    function: RowFunction,
    entries: Any,
    weights: Any,
    mask: Any,
    sample_arrays: list[Any],
    shared: dict[str, Any],
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    # Workers run several blocks side by side: a block must not start threads of its own.
    with serial():
        rows, small = function(local_matrix(entries, weights=weights, mask=mask), *sample_arrays, **shared)
    return rows, (small, [(row.shape[1], row.dtype) for row in rows])


def _pick(result: Any, group: int, index: int | None) -> Any:
    part = result[group]
    return part if index is None else part[index]


class ChunkedMatrix(DataMatrix):
    """A Dask array chunked by rows."""

    container = "dask"

    def __init__(self, array: Any, *, weights: Any = None, mask: Any = None) -> None:
        if any(np.isnan(size) for size in array.shape):
            # On a copy: dask writes the sizes into the array it is asked of.
            array = array.copy().compute_chunk_sizes()
        if 0 in array.chunks[0] and array.shape[0]:
            array = array.rechunk({0: tuple(size for size in array.chunks[0] if size)})
        if array.numblocks[1] > 1:
            array = array.rechunk({1: -1})
        dtype = np.dtype(array.dtype)
        if dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = array.dtype
        meta = getattr(array, "_meta", None)
        self.xp = array_namespace(meta if hasattr(meta, "__array_namespace__") else np.empty(0))
        self.row_chunks: tuple[int, ...] = tuple(int(size) for size in array.chunks[0])
        self._edges = np.concatenate([[0], np.cumsum(self.row_chunks)]).astype(int)
        self._entries = array.to_delayed().ravel().tolist()
        self.weights = None if weights is None else np.asarray(weights, dtype=self.dtype)
        self._weights = [None] * len(self._entries) if weights is None else self._cut(self.weights)
        self._masks: list[Any] = [None] * len(self._entries)
        self.has_mask = mask is not None
        self._cached_statistics: Any = None
        if mask is not None:
            chunks = (self.row_chunks, (self.shape[1],))
            mask = mask.rechunk(chunks) if isinstance(mask, da.Array) else da.from_array(mask, chunks=chunks)
            self._masks = mask.to_delayed().ravel().tolist()

    def _cut(self, array: Any) -> list[Any]:
        return [array[a:b] for a, b in zip(self._edges[:-1], self._edges[1:], strict=True)]

    def _sample_blocks(self, W: SampleArray) -> list[Any]:
        if not isinstance(W, da.Array) or tuple(W.chunks[0]) != self.row_chunks:
            raise ShapeError(f"Expected a dask array with row chunks {self.row_chunks}, got {W!r}.")
        return W.to_delayed().ravel().tolist()

    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function on every chunk, on the workers."""
        parts = [self._sample_blocks(W) for W in sample_arrays]
        sent = dask.delayed(shared, pure=False, traverse=False)
        call = dask.delayed(_on_block, pure=False)
        blocks = zip(self._entries, self._weights, self._masks, strict=True)
        results = [
            call(function, entries, weights, mask, [part[i] for part in parts], sent)
            for i, (entries, weights, mask) in enumerate(blocks)
        ]
        pick = dask.delayed(_pick, pure=False)
        n_chunks = len(results)
        wanted = [pick(result, 0, index) for index in range(n_out) for result in results]
        # Rows and small results are separate items, so that a worker drops the small ones once fetched.
        done = dask.persist(*wanted, *(pick(result, 1, None) for result in results))
        smalls = dask.compute(*done[n_out * n_chunks :])
        kept = [done[index * n_chunks : (index + 1) * n_chunks] for index in range(n_out)]
        new = tuple(self._assemble(group, smalls[0][1][index]) for index, group in enumerate(kept))
        sums = smalls[0][0]
        for other, _ in smalls[1:]:
            sums = tuple(a + b for a, b in zip(sums, other, strict=True))
        return new, sums

    def _assemble(self, blocks: Any, form: tuple[int, Any]) -> Any:
        columns, dtype = form
        meta = self.xp.empty((0, columns), dtype=dtype)
        arrays = [
            da.from_delayed(block, shape=(rows, columns), dtype=dtype, meta=meta)
            for block, rows in zip(blocks, self.row_chunks, strict=True)
        ]
        return da.concatenate(arrays, axis=0)

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        (product,), _ = self.map_reduce_rows(_times, Ht=Ht)
        return product

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        return self.map_reduce_rows(_transposed_times, W, n_out=0)[1][0]

    def weighted_gram(self, W: SampleArray) -> Array:
        """Return W' diag(weights) W."""
        return self.map_reduce_rows(_weighted_gram, W, n_out=0)[1][0]

    def _statistics(self) -> tuple[float, float, float, int]:
        if self._cached_statistics is None:
            self._cached_statistics = self.map_reduce_rows(_statistics, n_out=0)[1]
        return self._cached_statistics

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries."""
        return self._statistics()[0]

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        return self._statistics()[1]

    def observed_weight(self) -> float:
        """Return the weighted number of observed entries."""
        return self._statistics()[2]

    def count_nonzero(self) -> int:
        """Return the number of entries that are not zero."""
        return int(self._statistics()[3])

    def _compute_extremes(self) -> tuple[float, float]:
        found = self.map_reduce_rows(_extremes, n_out=0)[1][0]
        return float(np.min([low for low, _ in found])), float(np.max([high for _, high in found]))

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample, chunked as the data."""
        if isinstance(array, da.Array):
            return array.rechunk((self.row_chunks, -1)).astype(self.dtype)
        array = self.to_device(array)
        return da.from_array(array, chunks=(self.row_chunks, array.shape[1]))

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype of the chunks."""
        return self.xp.asarray(np.ascontiguousarray(to_numpy(array)), dtype=self.dtype)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the chunks one by one, computed in this process."""
        for entries, weights, mask in zip(self._entries, self._weights, self._masks, strict=True):
            entries, mask = dask.compute(entries, mask)
            yield local_matrix(entries, weights=weights, mask=mask)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        taken = self.array[np.asarray(rows, dtype=np.int64)].compute()
        return taken.toarray() if hasattr(taken, "toarray") else taken


def _times(block: LocalMatrix, *, Ht: Array) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (block.times(Ht),), ()


def _transposed_times(block: LocalMatrix, W: Array) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (), (block.transposed_times(W),)


def _weighted_gram(block: LocalMatrix, W: Array) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (), (block.weighted_gram(W),)


def _statistics(block: LocalMatrix) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (), (block.squared_norm(), block.total(), block.observed_weight(), block.count_nonzero())


def _extremes(block: LocalMatrix) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return (), ([block.extremes()],)
