"""Division of the rows of a CSR matrix on a GPU: long rows are cut into parts of bounded length."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, to_device, to_numpy

# Entries of a part: few enough that long rows are shared evenly, many enough that the sums of the parts cost
# little. A quarter of it is as fast.
PART = 2048
# Entries of a block of rows: two values at so many of them are in memory at a time, 64 MB in float32.
BLOCK = 1 << 23


@dataclass(frozen=True)
class RowPlan:
    """Parts of rows, in their order, and blocks of rows."""

    n_parts: int
    part: int  # maximum number of entries of a part
    rows: Any  # the row of each part, its first entry, and the first part of each row; None: one part per row
    begins: Any
    starts: Any
    blocks: tuple[tuple[int, int, int, int], ...]  # first and last row, first and last entry of each block


def row_plan(indptr: Any) -> RowPlan | None:
    """Cut rows into parts, and group them into blocks, for arrays on a GPU; the CPU needs no plan."""
    if isinstance(indptr, np.ndarray) or is_cpu_tensor(indptr):
        return None
    places = to_numpy(indptr).astype(np.int64)
    lengths = np.diff(places)
    n_rows = len(lengths)
    edges = np.searchsorted(places, np.arange(BLOCK, places[-1], BLOCK)) if n_rows else np.zeros(0, int)
    edges = np.unique(np.concatenate([[0], edges, [n_rows]]))
    blocks = tuple(
        (int(first), int(last), int(places[first]), int(places[last])) for first, last in pairwise(edges)
    )
    if n_rows == 0 or lengths.max() <= PART:
        return RowPlan(n_rows, PART, None, None, None, blocks)
    counts = np.maximum(1, -(-lengths // PART))
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(n_rows), counts)
    begins = places[rows] + (np.arange(starts[-1]) - starts[rows]) * PART
    rows, begins, firsts = (to_device(array.astype(np.int64), indptr) for array in (rows, begins, starts))
    return RowPlan(int(starts[-1]), PART, rows, begins, firsts, blocks)
