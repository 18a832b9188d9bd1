"""Advice on the chunks of a Dask array: what slows a fit down, and the call that fixes it."""

from __future__ import annotations

from collections.abc import Sequence

# Dask's scheduler handles a few thousand tasks a second: this many take some seconds in every iteration.
MOST_TASKS = 10_000
# Beside the chunk itself a worker holds, for each of its threads, what is being loaded and rows of W.
CHUNKS_PER_THREAD = 3
# Chunks of this size take tens of milliseconds, far more than the millisecond that a task costs.
GOOD_BYTES = 128e6
# Rows that are moved together from several workers: below this size nobody notices.
SMALL_BYTES = 100e6


def chunk_advice(
    row_chunks: Sequence[int],
    shape: tuple[int, int],
    n_column_chunks: int,
    itemsize: int,
    workers: Sequence[tuple[int, int]],
) -> list[str]:
    """Return what is wrong with the chunks, with remedies; `workers` are pairs of memory and threads."""
    n_rows, n_columns = shape
    row_bytes = n_columns * itemsize
    good = max(1, round(GOOD_BYTES / row_bytes))
    if workers and n_rows * row_bytes < GOOD_BYTES * sum(threads for _, threads in workers):
        good = max(1, -(-n_rows // sum(threads for _, threads in workers)))
    found = []
    if n_column_chunks > 1 and n_rows * row_bytes > SMALL_BYTES:
        found.append(
            f"X is split by columns into {n_column_chunks} parts, which have to be joined before rows can "
            f"be processed. Split it by rows only: X.rechunk(({good}, -1)), or when it is loaded."
        )
    n_tasks = len(row_chunks) * 9 // 8 + 1
    if n_tasks > MOST_TASKS:
        found.append(
            f"X has {len(row_chunks)} chunks of about {max(row_chunks) * row_bytes / 1e6:.3g} MB: a pass "
            f"that loads them takes {n_tasks} tasks, but Dask handles only a few thousand per second. If X "
            f"does "
            "not fit in the memory of the workers, every iteration is such a pass. Use larger chunks: "
            f"X.rechunk(({good}, -1))."
        )
    limits = [memory / threads for memory, threads in workers if memory]
    largest = max(row_chunks, default=0) * row_bytes
    if limits and CHUNKS_PER_THREAD * largest > min(limits):
        fitting = max(1, int(min(limits) / (2 * CHUNKS_PER_THREAD * row_bytes)))
        found.append(
            f"The largest chunk of X has {largest / 1e6:.0f} MB, but a worker has {min(limits) / 1e6:.0f} "
            f"MB of memory per thread: it needs {CHUNKS_PER_THREAD} times the "
            f"chunk. Use smaller chunks, X.rechunk(({min(fitting, good)}, -1)), or workers with more memory."
        )
    return found
