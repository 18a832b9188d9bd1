"""What runs on a worker for one chunk: the block, one pass over it, and sums of small results."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj

from nonneg._arrays import from_torch, is_cuda_tensor, on_gpu, to_device, to_numpy
from nonneg._devices import free_memory
from nonneg._threads import serial
from nonneg.data.local import local_matrix
from nonneg.data.matrix import LocalMatrix, RowFunction
from nonneg.data.sparse_array import on_host

# Results that one task adds up. The tree is over consecutive chunks, so that sums have the same digits on
# threads and on any cluster.
FAN_IN = 8


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
    """What a pass made of one chunk."""

    rows: tuple[Any, ...]  # new sample arrays
    small: tuple[Any, ...]  # summands
    forms: tuple[tuple[int, Any], ...] = ()  # columns and dtype of the rows


class Rows:
    """The rows that one pass left beside the chunks: a result per chunk, or a future of it."""

    def __init__(self, items: list[Any], depth: int = 0, copies: set[Any] | None = None) -> None:
        self.items = items
        self.depth = depth  # passes that would have to be repeated, see `cluster.py`
        self.copies = copies or set()  # kept alive while that may happen


def make_block(entries: Any, weights: Any, mask: Any) -> Block:
    """Wrap a chunk; one of CuPy becomes a PyTorch tensor in the same memory, which more kernels take."""
    block = Block(local_matrix(entries, weights=weights, mask=mask))
    return Block(block.matrix.as_torch()) if on_gpu(block.values) else block  # type: ignore[arg-type]


def size_of(block: Block) -> tuple[int, float | None]:
    """Return the number of bytes of a block, and those that are free on its GPU, where it is on one."""
    on_device = is_cuda_tensor(block.values)
    return block.__sizeof__(), free_memory(block.values.device) if on_device else None


def as_result(rows: Any) -> Result:
    """Return rows that did not come out of a pass as if they had."""
    return Result((rows,), ())


def run_block(
    block: Block, *states: Result, function: RowFunction, picks: Sequence[tuple[int, int]], shared: Any
) -> Result:
    """Call the function with a block; `picks` says in which state, and where in it, each sample array is."""
    sample_arrays = [states[state].rows[index] for state, index in picks]
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
    return Result(tuple(rows), small, tuple((row.shape[1], _dtype_of(row)) for row in rows))


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
    return run_block(make_block(entries, weights, mask), *states, **options)


def without_rows(result: Result) -> Result:
    """Drop the rows, so that a result can travel."""
    return Result((), result.small, result.forms)


def add_results(results: Sequence[Result]) -> Result:
    """Add the small results in their order."""
    first = results[0]
    sums = first.small
    for other in results[1:]:
        sums = tuple(a + b for a, b in zip(sums, other.small, strict=True))
    return Result((), sums, first.forms)


def tree_sum(results: Sequence[Result]) -> Result:
    """Add results as the workers of a cluster do."""
    while len(results) > 1:
        results = [add_results(results[at : at + FAN_IN]) for at in range(0, len(results), FAN_IN)]
    return without_rows(results[0])


def same(value: Any) -> Any:
    """Return the argument: a task that places a value on another worker."""
    return value


def packed(result: Result) -> bytes:
    """Return rows as bytes, which pass through a client that has no GPU."""
    return pickle.dumps(result.rows, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(rows: bytes) -> Result:
    """Return rows from their bytes."""
    return Result(pickle.loads(rows), ())


def pick(result: Result, index: int, library: str) -> Any:
    """Return one sample array of a result, as an array of the library of the chunks."""
    rows = result.rows[index]
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
        return Block(matrix)  # type: ignore[arg-type]
    rows = to_numpy(matrix.dense_rows(0, matrix.shape[0]))  # type: ignore[attr-defined]
    weights = None if matrix.weights is None else to_numpy(matrix.weights)
    seen = None if matrix.observed is None else to_numpy(matrix.observed.dense_rows(0, matrix.shape[0])) != 0
    return make_block(rows, weights, seen)
