"""Tasks on the workers: blocks of chunks, a pass over them, and sums of small results."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
from array_api_compat import is_array_api_obj
from dask.array.dispatch import concatenate_lookup

from nonneg._arrays import from_torch, is_cuda_tensor, on_gpu, to_device, to_numpy
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


class Block:
    """A chunk in its local container, with weights and mask; it knows its size, by which Dask schedules."""

    def __init__(self, matrix: LocalMatrix, chunk: int) -> None:
        self.matrix, self.chunk = matrix, chunk  # and its number

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for holder in (self.matrix, getattr(self.matrix, "csr", None)):
            own = getattr(holder, "__dict__", {})
            own.update({name: _aligned(value) for name, value in own.items()})

    @property
    def values(self) -> Any:
        """The entries, or those that a sparse chunk stores: an array of its library, on its device."""
        csr = getattr(self.matrix, "csr", None)
        return self.matrix.array if csr is None else csr.data  # type: ignore[attr-defined]

    def __sizeof__(self) -> int:
        csr = getattr(self.matrix, "csr", None)
        # A sparse chunk also keeps its transpose after the first product with it.
        n_bytes = self.values.nbytes if csr is None else 2 * (csr.data.nbytes + csr.indices.nbytes)
        return int(n_bytes) * (2 if self.matrix.observed is not None else 1)


class Work(NamedTuple):
    """What a pass does with every chunk."""

    name: str  # of the pass
    function: RowFunction
    picks: Sequence[tuple[str, int]]  # the pass that made each sample array, and its place among the rows
    shared: dict[str, Any]


class Result(NamedTuple):
    """What a pass made of some chunks."""

    name: str  # of the pass
    rows: dict[int, tuple[Any, ...]]  # new sample arrays, by the number of the chunk
    sums: dict[tuple[int, int], tuple[Any, ...]]  # of small results, see `_add`
    forms: tuple[tuple[int, Any], ...] = ()  # columns and dtype of the rows


class Rows:
    """The rows that one pass left beside the chunks: a result for some chunks each, or what stands for it."""

    def __init__(self, name: str, items: list[Any], members: Sequence[Sequence[int]], depth: int = 0) -> None:
        self.name, self.items = name, items
        self.members = members  # the chunks of each item
        self.depth = depth  # passes that a lost worker makes others repeat, see `cluster.py`
        self.places = {chunk: item for item, one in enumerate(members) for chunk in one}

    def of(self, chunks: Sequence[int]) -> list[Any]:
        """Return the items with the rows of some chunks."""
        return [self.items[item] for item in dict.fromkeys(self.places[chunk] for chunk in chunks)]


def make_block(chunk: int, entries: Any, weights: Any, mask: Any) -> Block:
    """Wrap a chunk; one of CuPy becomes a PyTorch tensor in the same memory, which more kernels take."""
    block = Block(local_matrix(entries, weights=weights, mask=mask), chunk)
    if on_gpu(block.values):
        import torch

        block = Block(block.matrix.as_torch(), chunk)  # type: ignore[arg-type]
        with _LOADING:
            # PyTorch loads its linear algebra on first use, and fails where two threads do so at once.
            torch.linalg.cholesky_ex(torch.ones((1, 1), device=block.values.device))
    return block


def run_blocks(work: Work, *given: Block | Result) -> Result:
    """Do the work of a pass with some blocks and the results that hold their rows of the sample arrays."""
    before = {
        (result.name, chunk): rows
        for result in given
        if isinstance(result, Result)
        for chunk, rows in result.rows.items()
    }
    made = Result(work.name, {}, {})
    for block in (one for one in given if isinstance(one, Block)):
        sample_arrays = [before[name, block.chunk][index] for name, index in work.picks]
        rows, small = _run_block(block, work, sample_arrays)
        made.rows[block.chunk] = rows
        _add(made.sums, 0, block.chunk, small)
        made = made._replace(forms=tuple((row.shape[1], dtype_of(row)) for row in rows))
    return made


def _run_block(block: Block, work: Work, sample_arrays: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    like, shared = block.values, work.shared
    host = isinstance(like, np.ndarray)
    if host:
        sample_arrays, shared = mapped(_aligned, sample_arrays), mapped(_aligned, shared)
    else:
        # The client and the sums have NumPy arrays, whatever the chunks are. Rows stay where the chunk is.
        sample_arrays = mapped(lambda array: to_device(array, like), sample_arrays)
        shared = mapped(lambda array: to_device(array, like) if _is_real(array) else array, shared)
    # Workers run several blocks side by side: a block must not start threads of its own.
    with serial():
        rows, small = work.function(block.matrix, *sample_arrays, **shared)
    return tuple(rows), tuple(small) if host else mapped(lambda array: to_numpy(array)[()], tuple(small))


def added(*results: Result) -> Result:
    """Add the small results, and leave the rows behind, so that the sum can travel."""
    sums: dict[tuple[int, int], tuple[Any, ...]] = {}
    for result in results:
        for (level, index), small in result.sums.items():
            _add(sums, level, index, small)
    return Result(results[0].name, {}, sums, results[0].forms)


def _add(sums: dict[tuple[int, int], Any], level: int, index: int, small: tuple[Any, ...]) -> None:
    """Add a sum of 2**level neighboring chunks to its neighbor, that to its own, and so on.

    So sums have the same digits on threads and on any cluster, whatever chunks a task has, in whatever order.
    """
    while (other := sums.pop((level, index ^ 1), None)) is not None:
        small = _plus(other, small) if index % 2 else _plus(small, other)
        level, index = level + 1, index // 2
    sums[level, index] = small


def total_of(result: Result) -> tuple[Any, ...]:
    """Return the sum over all chunks, whose number need not be a power of two."""
    parts = [result.sums[node] for node in sorted(result.sums, key=lambda node: node[1] << node[0])]
    return functools.reduce(lambda total, part: _plus(part, total), reversed(parts))


def _plus(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def pass_tasks(blocks: Sequence[Any], work: Any, rows: Sequence[Rows]) -> list[Any]:
    """Return the tasks of a pass over blocks that have to be loaded, one for each."""
    call = dask.delayed(run_blocks, pure=False)
    return [
        call(work, block, *(item for one in rows for item in one.of([at]))) for at, block in enumerate(blocks)
    ]


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Call a function on all arrays in what a pass is given or returns."""
    if is_array_api_obj(value) and not isinstance(value, np.generic):
        return function(value)
    if isinstance(value, dict):
        return {key: mapped(function, one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        parts = [mapped(function, one) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        old = {name: getattr(value, name) for name in names}
        new = {name: mapped(function, one) for name, one in old.items()}
        same_parts = all(new[name] is old[name] for name in names)
        return value if same_parts else dataclasses.replace(value, **new)
    return value


def _aligned(array: Any) -> Any:
    # What came from another worker may begin at any byte. NumPy adds such numbers in another order.
    return array.copy(order="K") if isinstance(array, np.ndarray) and not array.flags.aligned else array


def _is_real(array: Any) -> bool:
    # Integers and booleans choose rows, columns and components: they are NumPy's with tensors too.
    return "float" in str(array.dtype)


def same(value: Any) -> Any:
    """Return the argument: a task that places a value on another worker."""
    return value


def as_result(name: str, chunk: int, rows: Any) -> Result:
    """Return rows of a chunk that did not come out of a pass as if they had."""
    return Result(name, {chunk: (rows,)}, {})


def pick(result: Result, chunk: int, index: int, library: str) -> Any:
    """Return one sample array of a chunk, as an array of the library of the chunks."""
    rows = result.rows[chunk][index]
    if library != "cupy" or not is_cuda_tensor(rows):
        return rows
    import cupy

    return from_torch(rows, cupy.empty(0))


def take(block: Block, rows: Any) -> Any:
    """Return some rows of a block as a NumPy array."""
    return to_numpy(block.matrix.take_rows(rows))


def hosted(block: Block) -> Block:
    """Return a block in NumPy's or SciPy's container."""
    if isinstance(block.values, np.ndarray):
        return block
    matrix = on_host(block.matrix)
    if matrix is not block.matrix:
        return Block(matrix, block.chunk)  # type: ignore[arg-type]
    rows = to_numpy(matrix.dense_rows(0, matrix.shape[0]))
    weights = None if matrix.weights is None else to_numpy(matrix.weights)
    seen = None if matrix.observed is None else to_numpy(matrix.observed.dense_rows(0, matrix.shape[0])) != 0
    return make_block(block.chunk, rows, weights, seen)


def dtype_of(array: Any) -> np.dtype[Any]:
    """Return NumPy's name for the dtype of an array or tensor."""
    return np.dtype(str(array.dtype).removeprefix("torch."))
