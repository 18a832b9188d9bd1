"""Tasks on the workers: shards of chunks, a pass over them, and sums of small results."""

from __future__ import annotations

import dataclasses
import functools
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
from array_api_compat import is_array_api_obj
from dask.array.dispatch import concatenate_lookup

from nonneg._arrays import from_torch, is_cuda_tensor, on_gpu, to_device, to_numpy, to_torch
from nonneg._threads import serial
from nonneg.data.local import local_matrix
from nonneg.data.matrix import LocalMatrix, RowFunction
from nonneg.data.sparse import on_host

_LOADING = threading.Lock()


def _register_torch() -> None:
    # So that Dask can join tensors when W is computed, here or on a worker; it knows CuPy's arrays by itself.
    import torch

    concatenate_lookup.register(torch.Tensor, torch.cat)


concatenate_lookup.register_lazy("torch", _register_torch)


class Shard:
    """Neighboring chunks in their local containers; it knows its size, by which Dask schedules."""

    def __init__(self, blocks: list[LocalMatrix]) -> None:
        self.blocks = blocks

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for block in self.blocks:
            for holder in (block, getattr(block, "csr", None)):
                own = getattr(holder, "__dict__", {})
                own.update({name: _aligned(value) for name, value in own.items()})

    def __sizeof__(self) -> int:
        n_bytes = 0
        for block in self.blocks:
            csr = getattr(block, "csr", None)
            # A sparse chunk also keeps its transpose after the first product with it.
            own = values_of(block).nbytes if csr is None else 2 * (csr.data.nbytes + csr.indices.nbytes)
            n_bytes += int(own) * (2 if block.observed is not None else 1)
        return n_bytes


class Work(NamedTuple):
    """Work of a pass on every chunk."""

    function: RowFunction
    picks: Sequence[tuple[int, int]]  # of each sample array: which of the results has it, and where
    shared: dict[str, Any]


class Result(NamedTuple):
    """Result of a pass on a shard."""

    rows: list[tuple[Any, ...]]  # new sample arrays of each chunk
    sums: tuple[Any, ...]  # of small results
    forms: tuple[tuple[int, Any], ...] = ()  # columns and dtype of the rows


@dataclasses.dataclass(eq=False)
class Rows:
    """The rows that one pass left beside the shards: a result for each, or what stands for it."""

    items: list[Any]
    depth: int = 0  # passes that a lost worker makes others repeat, see `cluster.py`


def values_of(block: Any) -> Any:
    """Return the entries, or those that a sparse chunk stores: an array of its library, on its device."""
    csr = getattr(block, "csr", None)
    return block.array if csr is None else csr.data


def make_shard(*chunks: tuple[Any, Any, Any]) -> Shard:
    """Wrap entries, weights and mask of some chunks."""
    return Shard([_make_block(*chunk) for chunk in chunks])


def _make_block(entries: Any, weights: Any, mask: Any) -> LocalMatrix:
    # A chunk of CuPy becomes a PyTorch tensor in the same memory, which more kernels take.
    block = local_matrix(to_torch(entries) if on_gpu(entries) else entries, weights=weights, mask=mask)
    if not on_gpu(values_of(block)):
        return block
    import torch

    with _LOADING:
        # PyTorch loads its linear algebra on first use, and fails where two threads do so at once.
        torch.linalg.cholesky_ex(torch.ones((1, 1), device=values_of(block).device))
    return block


def run_shard(work: Work, shard: Shard, *results: Result) -> Result:
    """Do the work of a pass with a shard and the results that hold its rows of the sample arrays."""
    made = []
    for i, block in enumerate(shard.blocks):
        rows, small = _run_block(block, work, [results[which].rows[i][index] for which, index in work.picks])
        made.append(Result([rows], small, tuple((row.shape[1], dtype_of(row)) for row in rows)))
    return added(*made)._replace(rows=[rows for result in made for rows in result.rows])


def _run_block(
    block: LocalMatrix, work: Work, sample_arrays: list[Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    like, shared = values_of(block), work.shared
    host = isinstance(like, np.ndarray)
    if host:
        sample_arrays, shared = mapped(_aligned, sample_arrays), mapped(_aligned, shared)
    else:
        # The client and the sums have NumPy arrays, whatever the chunks are. Rows stay where the chunk is.
        # Integers and booleans choose rows, columns and components: they are NumPy's with tensors too.
        sample_arrays = mapped(lambda array: to_device(array, like), sample_arrays)
        shared = mapped(lambda a: to_device(a, like) if "float" in str(a.dtype) else a, shared)
    # Workers run several shards side by side: a block must not start threads of its own.
    with serial():
        rows, small = work.function(block, *sample_arrays, **shared)
    return tuple(rows), tuple(small) if host else mapped(lambda array: to_numpy(array)[()], tuple(small))


def added(*results: Result) -> Result:
    """Add the small results, and leave the rows behind, so that the sum can travel."""
    # Pairs of neighbors: with powers of two of them in shards and tasks, all digits follow from the chunks.
    sums = [result.sums for result in results]
    while len(sums) > 1:
        pairs = (zip(*sums[at : at + 2], strict=True) for at in range(0, len(sums), 2))
        sums = [tuple(functools.reduce(operator.add, parts) for parts in pair) for pair in pairs]
    return Result([], sums[0], results[0].forms)


def pass_tasks(shards: Sequence[Any], work: Any, rows: Sequence[Rows]) -> list[Any]:
    """Return the tasks of a pass over shards that have to be loaded, one for each."""
    call = dask.delayed(run_shard, pure=False)
    return [call(work, shard, *(held.items[number] for held in rows)) for number, shard in enumerate(shards)]


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Call a function on all arrays in what a pass is given or returns."""
    if is_array_api_obj(value) and not isinstance(value, np.generic):
        return function(value)
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [mapped(function, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        new = {name: mapped(function, part) for name, part in old.items()}
        same_parts = all(new[name] is old[name] for name in old)
        return value if same_parts else dataclasses.replace(value, **new)
    return value


def _aligned(array: Any) -> Any:
    # What came from another worker may begin at any byte. NumPy adds such numbers in another order.
    return array.copy(order="K") if isinstance(array, np.ndarray) and not array.flags.aligned else array


def same(value: Any) -> Any:
    """Return the argument: a task that places a value on another worker."""
    return value


def as_result(chunks: list[Any]) -> Result:
    """Return rows of the chunks of a shard that did not come out of a pass as if they had."""
    return Result([(rows,) for rows in chunks], ())


def pick(result: Result, chunk: int, index: int, library: str) -> Any:
    """Return one sample array of a chunk, as an array of the library of the chunks."""
    rows = result.rows[chunk][index]
    if library != "cupy" or not is_cuda_tensor(rows):
        return rows
    import cupy

    return from_torch(rows, cupy.empty(0))


def take(shard: Shard, chunk: int, rows: Any) -> Any:
    """Return some rows of a chunk as a NumPy array."""
    return to_numpy(shard.blocks[chunk].take_rows(rows))


def hosted(shard: Shard, chunk: int) -> LocalMatrix:
    """Return a chunk in NumPy's or SciPy's container."""
    block: Any = on_host(shard.blocks[chunk])
    if isinstance(values_of(block), np.ndarray):
        return block
    seen = None if block.observed is None else to_numpy(block.observed.dense_rows(0, block.shape[0])) != 0
    weights = None if block.weights is None else to_numpy(block.weights)
    return local_matrix(to_numpy(block.array), weights=weights, mask=seen)


def dtype_of(array: Any) -> np.dtype[Any]:
    """Return NumPy's name for the dtype of an array or tensor."""
    return np.dtype(str(array.dtype).removeprefix("torch."))
