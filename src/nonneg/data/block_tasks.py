"""What runs on a worker for one chunk: the block, one pass over it, and sums of small results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nonneg._threads import serial
from nonneg.data.local import local_matrix
from nonneg.data.matrix import LocalMatrix, RowFunction

# Results that one task adds up. The tree is over consecutive chunks, so that sums have the same digits on
# threads and on any cluster.
FAN_IN = 8


class Block:
    """A chunk in its local container, with weights and mask; it knows its size, by which Dask schedules."""

    def __init__(self, matrix: LocalMatrix) -> None:
        self.matrix = matrix

    def __sizeof__(self) -> int:
        csr = getattr(self.matrix, "csr", None)
        # A sparse chunk also keeps its transpose after the first product with it.
        n_bytes = 2 * (csr.data.nbytes + csr.indices.nbytes) if csr is not None else self.matrix.array.nbytes  # type: ignore[attr-defined]
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
    """Wrap a chunk."""
    return Block(local_matrix(entries, weights=weights, mask=mask))


def size_of(block: Block) -> int:
    """Return the number of bytes of a block."""
    return block.__sizeof__()


def as_result(rows: Any) -> Result:
    """Return rows that did not come out of a pass as if they had."""
    return Result((rows,), ())


def run_block(
    block: Block, *states: Result, function: RowFunction, picks: Sequence[tuple[int, int]], shared: Any
) -> Result:
    """Call the function with a block; `picks` says in which state, and where in it, each sample array is."""
    sample_arrays = [states[state].rows[index] for state, index in picks]
    # Workers run several blocks side by side: a block must not start threads of its own.
    with serial():
        rows, small = function(block.matrix, *sample_arrays, **shared)
    return Result(tuple(rows), tuple(small), tuple((row.shape[1], row.dtype) for row in rows))


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


def pick(result: Result, index: int) -> Any:
    """Return one sample array of a result."""
    return result.rows[index]


def take(block: Block, rows: Any) -> Any:
    """Return some rows of a block."""
    return block.matrix.take_rows(rows)
