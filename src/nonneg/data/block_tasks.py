"""What runs on a worker for a group of chunks: the blocks, one pass over them, and sums of small results.

At the end, for the scheduler: where groups go, and tasks that may run anywhere.
"""

from __future__ import annotations

import dataclasses
import importlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj

from nonneg._arrays import from_torch, is_cuda_tensor, on_gpu, to_device, to_numpy
from nonneg._devices import free_memory
from nonneg._threads import serial
from nonneg.data.local import local_matrix
from nonneg.data.matrix import LocalMatrix, RowFunction
from nonneg.data.sparse_array import on_host

# Results that one task adds up: a power of two. Sums are pairwise over consecutive chunks, so that they have
# the same digits on threads and on any cluster, whatever groups the chunks are in.
FAN_IN = 8
_LOADING = threading.Lock()


class Block:
    """A chunk in its local container, with weights and mask; it knows its size, by which Dask schedules."""

    def __init__(self, matrix: LocalMatrix) -> None:
        self.matrix = matrix

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
    """What a pass made of a group of chunks."""

    rows: tuple[tuple[Any, ...], ...]  # new sample arrays, for each chunk
    small: tuple[Any, ...]  # summands
    forms: tuple[tuple[int, Any], ...] = ()  # columns and dtype of the rows


class Rows:
    """The rows that one pass left beside the chunks: a result per group of chunks, or a future of it."""

    def __init__(self, items: list[Any], depth: int = 0, copies: set[Any] | None = None) -> None:
        self.items = items
        self.depth = depth  # passes that would have to be repeated, see `cluster.py`
        self.copies = copies or set()  # kept alive while that may happen


def make_block(entries: Any, weights: Any, mask: Any) -> Block:
    """Wrap a chunk; one of CuPy becomes a PyTorch tensor in the same memory, which more kernels take."""
    block = Block(local_matrix(entries, weights=weights, mask=mask))
    if on_gpu(block.values):
        block = Block(block.matrix.as_torch())  # type: ignore[arg-type]
        _load_linear_algebra(block.values.device)
    return block


def _load_linear_algebra(device: Any) -> None:
    # PyTorch loads it on first use, and fails where two threads of a worker do so at once.
    import torch

    with _LOADING:
        torch.linalg.cholesky_ex(torch.ones((1, 1), device=device))


def make_blocks(entries: Sequence[Any], weights: Sequence[Any], masks: Sequence[Any]) -> tuple[Block, ...]:
    """Wrap the chunks of a group."""
    return tuple(make_block(*chunk) for chunk in zip(entries, weights, masks, strict=True))


def size_of(block: Block) -> tuple[int, float | None]:
    """Return the number of bytes of a block, and those that are free on its GPU, where it is on one."""
    on_device = is_cuda_tensor(block.values)
    return block.__sizeof__(), free_memory(block.values.device) if on_device else None


def as_result(rows: Sequence[Any]) -> Result:
    """Return rows of a group that did not come out of a pass as if they had."""
    return Result(tuple((one,) for one in rows), ())


def run_blocks(
    blocks: Sequence[Block], *states: Result, picks: Sequence[tuple[int, int]], **options: Any
) -> Result:
    """Call the function with each block of a group.

    `picks` says in which state, and where in it, each sample array is.
    """
    results = (
        _run_block(block, [states[state].rows[at][index] for state, index in picks], **options)
        for at, block in enumerate(blocks)
    )
    rows: list[tuple[Any, ...]] = []
    forms: tuple[tuple[int, Any], ...] = ()

    def smalls() -> Iterator[tuple[Any, ...]]:
        nonlocal forms
        for result in results:
            rows.extend(result.rows)
            forms = result.forms
            yield result.small

    small = _pairwise_sum(smalls())
    return Result(tuple(rows), small, forms)


def _run_block(block: Block, sample_arrays: list[Any], *, function: RowFunction, shared: Any) -> Result:
    like = block.values
    host = isinstance(like, np.ndarray)
    if not host:
        # The client and the sums have NumPy arrays, whatever the chunks are. Rows stay where the chunk is.
        sample_arrays = [_mapped(lambda array: to_device(array, like), rows) for rows in sample_arrays]
        shared = _mapped(lambda array: to_device(array, like) if _is_real(array) else array, shared)
    # Workers run several blocks side by side: a block must not start threads of its own.
    with serial():
        rows, small = function(block.matrix, *sample_arrays, **shared)
    small = tuple(small) if host else _mapped(lambda array: to_numpy(array)[()], tuple(small))
    return Result((tuple(rows),), small, tuple((row.shape[1], _dtype_of(row)) for row in rows))


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Call a function on all arrays in what a pass is given or returns."""
    if is_array_api_obj(value) and not isinstance(value, np.generic):
        return function(value)
    if isinstance(value, dict):
        return {key: _mapped(function, one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        parts = [_mapped(function, one) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        old = {name: getattr(value, name) for name in names}
        new = {name: _mapped(function, one) for name, one in old.items()}
        same_parts = all(new[name] is old[name] for name in names)
        return value if same_parts else dataclasses.replace(value, **new)
    return value


def _is_real(array: Any) -> bool:
    # Integers and booleans choose rows, columns and components: they are NumPy's with tensors too.
    return "float" in str(array.dtype)


def _dtype_of(array: Any) -> np.dtype[Any]:
    return np.dtype(str(array.dtype).removeprefix("torch."))


def load_and_run(entries: Any, weights: Any, mask: Any, *states: Result, **options: Any) -> Result:
    """Do the same with a chunk that is not kept in memory."""
    return run_blocks((make_block(entries, weights, mask),), *states, **options)


def add_results(results: Sequence[Result]) -> Result:
    """Add the small results, and leave the rows behind, so that the sum can travel."""
    return Result((), _pairwise_sum(result.small for result in results), results[0].forms)


def _pairwise_sum(summands: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add neighbors, then neighboring sums, and so on, with few of them in memory at a time."""
    sums: list[tuple[int, tuple[Any, ...]]] = []  # of 2**level summands each, the largest first
    for small in summands:
        level = 0
        while sums and sums[-1][0] == level:
            small = _plus(sums.pop()[1], small)
            level += 1
        sums.append((level, small))
    _, total = sums.pop()
    while sums:
        total = _plus(sums.pop()[1], total)
    return total


def _plus(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def same(value: Any) -> Any:
    """Return the argument: a task that places a value on another worker."""
    return value


def packed(result: Result) -> tuple[Any, Any]:
    """Return rows as NumPy arrays, which pass through a client that has no GPU, and where they belong."""
    first = result.rows[0][0]
    return _mapped(to_numpy, result.rows), None if isinstance(first, np.ndarray) else _place_of(first)


def _place_of(array: Any) -> tuple[str, str]:
    return type(array).__module__.partition(".")[0], str(array.device)


def unpacked(value: tuple[Any, Any]) -> Result:
    """Return rows where they were."""
    rows, place = value
    if place is None:
        return Result(rows, ())
    library, device = place
    xp = importlib.import_module(library)
    options = {"device": device} if library == "torch" else {}
    return Result(_mapped(lambda array: xp.asarray(array, **options), rows), ())


def pick(result: Result, at: int, index: int, library: str) -> Any:
    """Return one sample array of a chunk in a group, as an array of the library of the chunks."""
    rows = result.rows[at][index]
    if library != "cupy" or not is_cuda_tensor(rows):
        return rows
    import cupy

    return from_torch(rows, cupy.empty(0))


def take(blocks: Sequence[Block], at: int, rows: Any) -> Any:
    """Return some rows of a block in a group as a NumPy array."""
    return to_numpy(blocks[at].matrix.take_rows(rows))


def hosted(blocks: Sequence[Block], at: int) -> Block:
    """Return a block in a group in NumPy's or SciPy's container."""
    block = blocks[at]
    if isinstance(block.values, np.ndarray):
        return block
    matrix = on_host(block.matrix)
    if matrix is not block.matrix:
        return Block(matrix)  # type: ignore[arg-type]
    rows = to_numpy(matrix.dense_rows(0, matrix.shape[0]))
    weights = None if matrix.weights is None else to_numpy(matrix.weights)
    seen = None if matrix.observed is None else to_numpy(matrix.observed.dense_rows(0, matrix.shape[0])) != 0
    return make_block(rows, weights, seen)


def moves(places: Sequence[str | None], workers: dict[str, int]) -> list[tuple[int, str]]:
    """Return which groups go to which workers, so that each has a part in proportion to its threads."""
    held: dict[str, list[int]] = {worker: [] for worker in workers}
    for index, place in enumerate(places):
        if place in held:
            held[place].append(index)
    found: list[tuple[int, str]] = []
    while True:
        most = max(held, key=lambda worker: len(held[worker]) / workers[worker])
        least = min(held, key=lambda worker: (len(held[worker]) + 1) / workers[worker])
        if (len(held[least]) + 1) / workers[least] >= len(held[most]) / workers[most]:
            return found
        index = held[most].pop()
        held[least].append(index)
        found.append((index, least))


def free_tasks(keys: Sequence[str], dask_scheduler: Any) -> None:
    """On the scheduler: let tasks and all that they depend on run anywhere, if they are done or forgotten."""
    found = {dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks}
    left = list(found)
    while left:
        new = left.pop().dependencies - found
        found |= new
        left += new
    bound = [one for one in found if one.loose_restrictions and one.worker_restrictions]
    # Not those that are about to run: they are where they should be.
    bound = [one for one in bound if one.state in ("memory", "released", "no-worker")]
    for one in bound:
        one.worker_restrictions = None
    forgotten = {one.key: "processing" for one in bound if one.state == "no-worker"}
    dask_scheduler.transitions(forgotten, stimulus_id=f"nonneg-free-{time.time()}")
