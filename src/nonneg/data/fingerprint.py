"""A digest of the data, so that a checkpoint is resumed with its own data only."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from nonneg._arrays import numpy_dtype, to_numpy
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import BlockedMatrix, DataMatrix, LocalMatrix, rows_only


def fingerprint(data: DataMatrix, *sample_arrays: SampleArray) -> str:
    """Return a digest of entries, weights, mask and arrays with one row per sample."""
    if isinstance(data, BlockedMatrix):
        n_missing = int(data.statistics.n_missing)
    else:
        n_missing = 0 if data.observed is None else data.observed.n_missing()
    # One pass over the data, at the speed of hashing (about 1 GB a second). A file had its pass already.
    digest = _digest if data.digest is None else _digest_of_rows
    _, (digests,) = data.map_reduce_rows(digest, *sample_arrays, n_out=0)
    # Weights of the entries are added up block by block, and so to rounding.
    weight = f"{data.observed_weight():.10g}"
    known = data.shape, numpy_dtype(data.dtype), n_missing, weight, data.digest, digests
    return hashlib.sha256(str(known).encode()).hexdigest()


class Digest:
    """A digest of rows that come in blocks, wherever these begin; missing entries are zeros."""

    def __init__(self) -> None:
        # Of the lengths and the columns of sparse rows, of values and of row weights.
        self._hashes = [hashlib.sha256() for _ in range(4)]

    def add(self, block: LocalMatrix) -> None:
        """Take the entries and the row weights of the next block."""
        if (csr := getattr(block, "csr", None)) is None:
            for start, stop in block.row_blocks(1 << 20):
                self._update(2, block.dense_rows(start, stop))
        else:
            kind = np.int32 if block.shape[1] < 2**31 else np.int64  # whatever the indices of a block are
            self._update(0, np.diff(to_numpy(csr.indptr)).astype(np.int64, copy=False))
            self._update(1, to_numpy(csr.indices).astype(kind, copy=False))
            self._update(2, csr.data)
        if block.weights is not None:
            self._update(3, block.weights)

    def _update(self, at: int, array: Any) -> None:
        self._hashes[at].update(np.ascontiguousarray(to_numpy(array)).data)

    def __str__(self) -> str:
        return " ".join(one.hexdigest() for one in self._hashes)


def _digest(block: LocalMatrix, *sample_arrays: Array) -> tuple[tuple[()], tuple[list[str]]]:
    digest = Digest()
    digest.add(block)
    return (), ([str(digest), *_digest_of_rows(block, *sample_arrays)[1][0]],)


@rows_only
def _digest_of_rows(block: LocalMatrix, *sample_arrays: Array) -> tuple[tuple[()], tuple[list[str]]]:
    parts = (np.ascontiguousarray(to_numpy(array)).data for array in sample_arrays)
    return (), ([hashlib.sha256(part).hexdigest() for part in parts],)
