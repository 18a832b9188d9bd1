"""Where an entry that meets a condition is, for error messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nonneg._typing import Array
from nonneg.data.matrix import DataMatrix


def locate(data: DataMatrix, condition: Callable[[Any, Array], Array]) -> tuple[int, int, float]:
    """Return row, column and value of the first observed entry that meets a condition."""
    offset = 0
    # Chunk by chunk, so that an error message does not need all data in memory.
    for block in data.local_blocks():
        if block.is_sparse and (stored := _stored_entry(block, condition)) is not None:
            return offset + stored[0], stored[1], stored[2]
        for start, stop in block.row_blocks(1 << 20):
            rows = block.dense_rows(start, stop)
            xp = block.xp
            found = condition(xp, rows)
            if block.observed is not None:
                seen = xp.asarray(block.observed.dense_rows(start, stop))
                found = xp.logical_and(found, seen != 0)
            if bool(xp.any(found)):
                where = xp.nonzero(found)
                i, j = int(where[0][0]), int(where[1][0])
                return offset + start + i, j, float(rows[i, j])
        offset += block.shape[0]
    raise LookupError("no entry meets the condition")


def _stored_entry(block: Any, condition: Callable[[Any, Array], Array]) -> tuple[int, int, float] | None:
    """Return the first stored entry that meets a condition; None if entries that are not stored do too."""
    xp, csr = block.xp, block.csr
    if csr.data.shape[0] == 0 or bool(xp.any(condition(xp, xp.zeros_like(csr.data[:1])))):
        return None
    found = xp.nonzero(condition(xp, csr.data))[0]
    if found.shape[0] == 0:
        return None
    at = int(found[0])
    row = int(xp.sum(xp.astype(csr.indptr <= at, xp.int64))) - 1
    return row, int(csr.indices[at]), float(csr.data[at])
