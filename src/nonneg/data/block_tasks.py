"""What runs on a worker: blocks of chunks, one pass over them, and sums of small results."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from dask.array.dispatch import concatenate_lookup

from nonneg._arrays import from_torch, is_cuda_tensor, on_gpu, to_device, to_numpy
from nonneg._devices import free_memory
from nonneg._threads import serial
from nonneg.data.local import local_matrix
from nonneg.data.matrix import LocalMatrix, RowFunction
from nonneg.data.sparse_array import on_host

FAN_IN = 8  # results that one task adds up
# Rows of a dense chunk that are worked on at a time, so that the second product of a pass finds them in the
# cache. Between 2 and 8 MB a pass over 100 MB took 15% less (Neoverse-N1).
PART_BYTES = 4e6
_LOADING = threading.Lock()


def _register_torch() -> None:
    # So that Dask can join tensors when W is computed, here or on a worker; it knows CuPy's arrays by itself.
    import torch

    concatenate_lookup.register(torch.Tensor, torch.cat)


concatenate_lookup.register_lazy("torch", _register_torch)


class Block:
    """A chunk in its local container, with weights and mask; it knows its size, by which Dask schedules."""

    def __init__(self, matrix: LocalMatrix, chunk: int = 0) -> None:
        self.matrix = matrix
        self.chunk = chunk  # its number
        self._parts: list[LocalMatrix] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parts": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for holder in (self.matrix, getattr(self.matrix, "csr", None)):
            own = getattr(holder, "__dict__", {})
            own.update({name: _aligned(value) for name, value in own.items()})

    @property
    def parts(self) -> list[LocalMatrix]:
        """The chunk, a large dense one in pieces of some megabytes, which remember what they computed."""
        if self._parts is None:
            matrix = self.matrix
            whole = not isinstance(getattr(matrix, "array", None), np.ndarray) or matrix.observed is not None
            rows = (
                matrix.shape[0] if whole else int(PART_BYTES / (matrix.shape[1] * matrix.dtype.itemsize)) + 1
            )
            if 4 * rows > matrix.shape[0]:
                self._parts = [matrix]
            else:
                cuts = [slice(at, at + rows) for at in range(0, matrix.shape[0], rows)]
                weights = [None if matrix.weights is None else matrix.weights[cut] for cut in cuts]
                found = zip(cuts, weights, strict=True)
                self._parts = [local_matrix(self.values[cut], weights=one) for cut, one in found]
        return self._parts

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


class Result(NamedTuple):
    """What a pass made of some chunks."""

    rows: dict[int, tuple[Any, ...]]  # new sample arrays, by the number of the chunk
    sums: dict[tuple[int, int], tuple[Any, ...]]  # of small results, see `_add`
    forms: tuple[tuple[int, Any], ...] = ()  # columns and dtype of the rows


class Work(NamedTuple):
    """What a pass does with every chunk."""

    function: RowFunction
    picks: Sequence[tuple[int, int]]  # in which state, and where in its rows, each sample array is
    shared: dict[str, Any]
    ranks: Sequence[int]  # of the chunks, in the tree of sums


class Rows:
    """The rows that one pass left beside the chunks: results for some chunks each, or futures of them."""

    def __init__(
        self,
        items: list[Any],
        members: Sequence[Sequence[int]],
        depth: int = 0,
    ) -> None:
        self.items = items
        self.members = members  # the chunks of each item
        self.depth = depth  # passes that would have to be repeated, see `cluster.py`
        self.places = {chunk: item for item, one in enumerate(members) for chunk in one}

    def of(self, chunks: Sequence[int]) -> list[Any]:
        """Return the items with the rows of some chunks."""
        return [self.items[item] for item in dict.fromkeys(self.places[chunk] for chunk in chunks)]


def make_block(chunk: int, entries: Any, weights: Any, mask: Any) -> Block:
    """Wrap a chunk; one of CuPy becomes a PyTorch tensor in the same memory, which more kernels take."""
    block = Block(local_matrix(entries, weights=weights, mask=mask), chunk)
    if on_gpu(block.values):
        block = Block(block.matrix.as_torch(), chunk)  # type: ignore[arg-type]
        _load_linear_algebra(block.values.device)
    return block


def _load_linear_algebra(device: Any) -> None:
    # PyTorch loads it on first use, and fails where two threads of a worker do so at once.
    import torch

    with _LOADING:
        torch.linalg.cholesky_ex(torch.ones((1, 1), device=device))


def size_of(block: Block) -> tuple[int, float | None]:
    """Return the number of bytes of a block, and those that are free on its GPU, where it is on one."""
    on_device = is_cuda_tensor(block.values)
    return block.__sizeof__(), free_memory(block.values.device) if on_device else None


def as_result(chunk: int, rows: Any) -> Result:
    """Return rows of a chunk that did not come out of a pass as if they had."""
    return Result({chunk: (rows,)}, {})


def run_blocks(work: Work, counts: str, *given: Any) -> Result:
    """Do the work of a pass with some blocks and the rows that belong to them.

    `counts` says how many blocks, and how many results of each state, follow: all in one row, because a list
    takes more room in the scheduler than all that is in it.
    """
    left = iter(given)
    blocks, *results = [[next(left) for _ in range(int(number))] for number in counts.split()]
    states = [{chunk: rows for result in state for chunk, rows in result.rows.items()} for state in results]
    rows: dict[int, tuple[Any, ...]] = {}
    sums: dict[tuple[int, int], tuple[Any, ...]] = {}
    forms: tuple[tuple[int, Any], ...] = ()
    for block in blocks:
        before = [states[state][block.chunk][index] for state, index in work.picks]
        rows[block.chunk], small, forms = _run_block(block, before, work.function, work.shared)
        _add(sums, 0, work.ranks[block.chunk], small)
    return Result(rows, sums, forms)


def _run_block(
    block: Block, sample_arrays: list[Any], function: RowFunction, shared: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[tuple[int, Any], ...]]:
    like = block.values
    host = isinstance(like, np.ndarray)
    if host:
        sample_arrays, shared = mapped(_aligned, sample_arrays), mapped(_aligned, shared)
    else:
        # The client and the sums have NumPy arrays, whatever the chunks are. Rows stay where the chunk is.
        sample_arrays = [mapped(lambda array: to_device(array, like), rows) for rows in sample_arrays]
        shared = mapped(lambda array: to_device(array, like) if _is_real(array) else array, shared)
    # Workers run several blocks side by side: a block must not start threads of its own.
    with serial():
        takes_whole = getattr(function, "takes_whole", None)
        if (takes_whole is not None and takes_whole(block.matrix, **shared)) or len(block.parts) == 1:
            rows, small = function(block.matrix, *sample_arrays, **shared)
        else:
            rows, small = _run_parts(block.parts, sample_arrays, function, shared)
    small = tuple(small) if host else mapped(lambda array: to_numpy(array)[()], tuple(small))
    return tuple(rows), small, tuple((row.shape[1], _dtype_of(row)) for row in rows)


def _run_parts(
    parts: list[LocalMatrix], sample_arrays: list[Any], function: RowFunction, shared: Any
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    sums: tuple[Any, ...] = ()
    start = 0
    for part in parts:
        stop = start + part.shape[0]
        rows, small = function(part, *(array[start:stop] for array in sample_arrays), **shared)
        found.append(tuple(rows))
        sums = _plus(sums, tuple(small)) if start else tuple(small)
        start = stop
    return tuple(np.concatenate(pieces) for pieces in zip(*found, strict=True)), sums


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


def _dtype_of(array: Any) -> np.dtype[Any]:
    return np.dtype(str(array.dtype).removeprefix("torch."))


def load_and_run(
    chunk: int, entries: Any, weights: Any, mask: Any, work: Work, counts: str, *states: Result
) -> Result:
    """Do the same with a chunk that is not kept in memory."""
    return run_blocks(work, f"1 {counts}", make_block(chunk, entries, weights, mask), *states)


def flattened(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the arguments of `run_blocks` after the first: how many of each kind, and all of them."""
    return [" ".join(str(len(one)) for one in lists), *(value for one in lists for value in one)]


def add_results(*results: Result) -> Result:
    """Add the small results, and leave the rows behind, so that the sum can travel."""
    sums: dict[tuple[int, int], tuple[Any, ...]] = {}
    for result in results:
        for (level, index), small in result.sums.items():
            _add(sums, level, index, small)
    return Result({}, sums, results[0].forms)


def sum_tree(name: str, results: Sequence[Any]) -> tuple[dict[str, Any], str]:
    """Return tasks that add up results, and the key of the last one.

    Rows stay on their workers: to the first of a few, only the small results of the others come.
    """
    tasks: dict[str, Any] = {}
    level = 0
    while level == 0 or len(results) > 1:
        above = []
        for at in range(0, len(results), FAN_IN):
            first, *others = results[at : at + FAN_IN]
            if level == 0:
                small = {f"nonneg-small-{name}-{at + n}": one for n, one in enumerate(others)}
                tasks |= {key: (add_results, one) for key, one in small.items()}
                others = list(small)
            above.append(f"nonneg-sum-{name}-{level}-{at}")
            tasks[above[-1]] = (add_results, first, *others)
        results, level = above, level + 1
    return tasks, above[0]


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
    left = sorted(result.sums, key=lambda node: node[1] << node[0])
    total = result.sums[left.pop()]
    while left:
        total = _plus(result.sums[left.pop()], total)
    return total


def _plus(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def same(value: Any) -> Any:
    """Return the argument: a task that places a value on another worker."""
    return value


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
