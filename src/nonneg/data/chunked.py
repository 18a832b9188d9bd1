"""Row-chunked Dask entries: each chunk is a local container, on its worker where there is a cluster.

A pass is one computation: a task for each shard of chunks, whose new rows of W stay where they are, and sums
of the small results in a tree. On a cluster `cluster.py` keeps the shards in memory and sees to lost workers;
in this process Dask's threads do the tasks, one for each chunk.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import numpy as array_api_numpy
from dask.highlevelgraph import HighLevelGraph

from nonneg._arrays import library_of, to_numpy
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.data.block_tasks import (
    Rows,
    Work,
    added,
    as_result,
    dtype_of,
    hosted,
    make_shard,
    pass_tasks,
    pick,
    take,
)
from nonneg.data.matrix import BlockedMatrix, LocalMatrix, RowFunction
from nonneg.data.observed import EntryWeights
from nonneg.exceptions import ShapeError

if TYPE_CHECKING:
    from nonneg.data.cluster import Cluster

# Chunks of this size take tens of milliseconds, far more than the millisecond that a task costs.
GOOD_BYTES = 128e6


def chunked_rows(X: Any, n_threads: int, reader: Callable[[int, int], Any] | None = None) -> Any:
    """Return a matrix as a Dask array, in chunks for a number of threads.

    A `reader` of ranges of rows lets the workers read them; otherwise they are sent.
    """
    n_rows, n_columns = X.shape
    # Two chunks for each thread even out what one of them may be slower; none is larger than advised.
    n_chunks = max(2 * n_threads, -(-n_rows * n_columns * 8 // int(GOOD_BYTES)))
    cuts = [*range(0, n_rows, -(-n_rows // n_chunks)), n_rows]
    X = X.tocsr() if sp.issparse(X) else X
    load = dask.delayed(reader, pure=False) if reader else (lambda start, stop: dask.delayed(X[start:stop]))
    meta = reader(0, 1)[:0] if reader else X[:0]
    parts = [da.from_delayed(load(a, b), (b - a, n_columns), meta=meta) for a, b in pairwise(cuts)]
    return da.concatenate(parts)


class ChunkedMatrix(BlockedMatrix):
    """A Dask array chunked by rows: NumPy arrays, tensors, CuPy arrays or sparse matrices.

    Whatever the chunks are, H and all small results are NumPy arrays, and rows of W are where the chunk is.
    """

    container = "dask"

    def __init__(self, array: Any, *, weights: Any = None, mask: Any = None) -> None:
        if 0 in array.chunks[0] and array.shape[0]:
            array = array.rechunk({0: tuple(size for size in array.chunks[0] if size)})
        if array.numblocks[1] > 1:
            array = array.rechunk({1: -1})
        # Of the chunks, as Dask knows it; what goes with the sparse matrices of cupyx are arrays of CuPy.
        self.library = library_of(array._meta.__class__).replace("cupyx", "cupy")
        dtype = dtype_of(array)
        if dtype not in (np.float32, np.float64):
            dtype = np.dtype(np.float64)
            # Dask cannot convert tensors; a block of them does it by itself.
            array = array if self.library == "torch" else array.astype(dtype)
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = dtype
        self.xp: Any = array_api_numpy
        self.row_chunks: tuple[int, ...] = tuple(int(size) for size in array.chunks[0])
        self._edges = np.concatenate([[0], np.cumsum(self.row_chunks)]).astype(int)
        entries = array.to_delayed().ravel().tolist()
        self.weights = None if weights is None else np.asarray(weights, dtype=self.dtype)
        parts: list[Any] = [None] * len(entries)
        if self.weights is not None:
            parts = [self.weights[start:stop] for start, stop in pairwise(self._edges)]
        masks: list[Any] = [None] * len(entries)
        self.has_mask, self.is_weighted = mask is not None, isinstance(mask, EntryWeights)
        if isinstance(mask.values if self.is_weighted else mask, da.Array):
            whole = mask.dense() if self.is_weighted else mask
            masks = whole.rechunk((self.row_chunks, (self.shape[1],))).to_delayed().ravel().tolist()
            if self.is_weighted:
                masks = [dask.delayed(EntryWeights)(chunk) for chunk in masks]
        elif mask is not None:
            masks = [mask[start:stop] for start, stop in pairwise(self._edges.tolist())]
        self._chunks = list(zip(entries, parts, masks, strict=True))
        self._single = self._cut(len(entries))
        self._held: Cluster | None = None

    @property
    def _cluster(self) -> Cluster | None:
        """The chunks on the workers of the current cluster, loaded on first use; None without a cluster."""
        # Where Dask would compute: a method of the client, or a function of its own.
        client: Any = getattr(dask.base.get_scheduler(collections=[self.array]), "__self__", None)
        if type(client).__module__.partition(".")[0] != "distributed":
            return None
        held = self._held
        if held is None or held.client is not client or held.is_lost:
            from nonneg.data.cluster import Cluster, SendFromGPU, check_versions

            check_versions(client)
            if self.library in ("torch", "cupy"):
                client.register_plugin(SendFromGPU(self.library))
            n_bytes = self.array.nbytes if type(self.array._meta) is np.ndarray else None
            self._held = Cluster(client, self._single, self._cut, n_bytes)
        return self._held

    def _cut(self, n_shards: int) -> list[Any]:
        """Return tasks that load the chunks in at least this number of shards, less than twice as many."""
        make, n_chunks = dask.delayed(make_shard, pure=False), len(self._chunks)
        n_shards = -(-n_chunks >> (n_chunks // n_shards).bit_length() - 1)
        return [make(*(self._chunks[chunk] for chunk in part)) for part in self._members(n_shards)]

    def _members(self, n_shards: int) -> list[list[int]]:
        """Return the numbers of the chunks of each shard: a power of two of them, see `added`."""
        numbers = range(len(self._chunks))
        size = 1 << ((len(numbers) - 1) // n_shards).bit_length()
        return [list(numbers[first : first + size]) for first in numbers[::size]]

    def _rows_of(self, W: SampleArray, cluster: Cluster | None) -> tuple[Rows, int]:
        if not isinstance(W, da.Array) or tuple(W.chunks[0]) != self.row_chunks:
            raise ShapeError(f"Expected a Dask array with row chunks {self.row_chunks}, got {W!r}.")
        owner, rows, index = getattr(W, "_nonneg_rows", (None, None, 0))
        if rows is not None and owner is cluster:
            return rows, index
        call, blocks = dask.delayed(as_result, pure=False), W.to_delayed().ravel().tolist()
        shards = self._single if cluster is None else cluster.shards
        items = [call([blocks[chunk] for chunk in part]) for part in self._members(len(shards))]
        if cluster is None:
            return Rows(items), 0
        rows = Rows(cluster.compute(items))
        W._nonneg_rows = (cluster, rows, 0)
        return rows, 0

    def map_reduce_rows(
        self, function: RowFunction, *sample_arrays: SampleArray, n_out: int = 1, **shared: Any
    ) -> tuple[tuple[SampleArray, ...], tuple[Any, ...]]:
        """Call the function on every chunk, on the workers."""
        cluster = self._cluster
        held = [self._rows_of(W, cluster) for W in sample_arrays]
        rows = list({id(rows): rows for rows, _ in held}.values())
        work = Work(function, [(rows.index(item), index) for item, index in held], shared)
        if cluster is None:
            sent = dask.delayed(work, pure=False, traverse=False)
            results = dask.compute(*pass_tasks(self._single, sent, rows))
            made, total = Rows(list(results)), added(*results)
        else:
            made, total = cluster.run(work, rows)
        new = tuple(self._assemble(made, index, *total.forms[index], cluster) for index in range(n_out))
        return new, total.sums

    def _assemble(self, rows: Rows, index: int, columns: int, dtype: Any, cluster: Cluster | None) -> Any:
        name = f"nonneg-rows-{uuid.uuid4().hex}"
        tasks = {
            (name, chunk, 0): (pick, item, place, index, self.library)
            for item, part in zip(rows.items, self._members(len(rows.items)), strict=True)
            for place, chunk in enumerate(part)
        }
        graph = HighLevelGraph.from_collections(name, tasks, dependencies=[])
        # What tells Dask the library and the dtype of the rows: of sparse chunks that of their values.
        meta = self.array._meta
        xp = array_namespace(meta.data if hasattr(meta, "nnz") else meta)
        meta = xp.empty((0, columns), dtype=getattr(xp, np.dtype(dtype).name))
        array = da.Array(graph, name, (self.row_chunks, (columns,)), meta=meta)
        array._nonneg_rows = (cluster, rows, index)
        return array

    def sample_matrix(self, W: SampleArray) -> ChunkedMatrix:
        """Return an array with one row per sample as data, with the same row weights."""
        return ChunkedMatrix(W, weights=self.weights)

    def to_sample_array(self, array: Any) -> SampleArray:
        """Return an array with one row per sample, chunked as the data."""
        if isinstance(array, da.Array):
            array = array.rechunk((self.row_chunks, -1))
            return array if dtype_of(array) == self.dtype else array.astype(self.dtype)
        array = self.to_device(array)
        return da.from_array(array, chunks=(self.row_chunks, array.shape[1]))

    def to_device(self, array: Any) -> Array:
        """Return a NumPy array of the dtype of the chunks."""
        return np.ascontiguousarray(to_numpy(array), dtype=self.dtype)

    def local_blocks(self) -> Iterator[LocalMatrix]:
        """Yield the chunks one by one, computed in this process."""
        fetch = dask.delayed(hosted, pure=False)
        for shard, place in self._places():
            yield fetch(shard, place).compute()

    def _places(self) -> list[tuple[Any, int]]:
        """Return the shard of each chunk, and its number there."""
        shards = self._single if (cluster := self._cluster) is None else cluster.shards
        parts = zip(shards, self._members(len(shards)), strict=True)
        return [(shard, place) for shard, part in parts for place in range(len(part))]

    def select(self, rows: IntArray) -> ChunkedMatrix:
        """Return the given rows as data of their own; chunk by chunk, if they are in order."""
        if np.any(np.diff(rows) < 0):
            return ChunkedMatrix(self.array[rows])
        # Not by Dask's indexing, which joined parts of sparse chunks as dense arrays in 2024.
        cuts = enumerate(pairwise(np.searchsorted(rows, self._edges)))
        parts = [self.array.blocks[chunk][rows[a:b] - self._edges[chunk]] for chunk, (a, b) in cuts if b > a]
        return ChunkedMatrix(da.concatenate(parts))

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        index = np.asarray(rows, dtype=np.int64).ravel()
        index = np.where(index < 0, index + self.shape[0], index)
        chunk_of = np.searchsorted(self._edges, index, side="right") - 1
        call, places, chunks = dask.delayed(take, pure=False), self._places(), np.unique(chunk_of)
        parts = [call(*places[chunk], index[chunk_of == chunk] - self._edges[chunk]) for chunk in chunks]
        order = np.argsort(chunk_of, kind="stable")
        rows = np.concatenate(dask.compute(*parts))
        return rows[np.argsort(order, kind="stable")]
