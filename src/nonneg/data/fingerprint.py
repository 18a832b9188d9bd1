"""A digest of the data, so that a checkpoint is resumed with its own data only."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_only


def fingerprint(data: DataMatrix, *sample_arrays: SampleArray) -> str:
    """Return a digest of entries, weights, mask and arrays with one row per sample."""
    # One pass over the data, at the speed of hashing (about 1 GB a second). A file had its pass already.
    if (known := data.digest()) is not None:
        _, (digests,) = data.map_reduce_rows(_digest_of_rows, *sample_arrays, n_out=0)
        return hashlib.sha256("".join([known, *digests]).encode()).hexdigest()
    _, (digests,) = data.map_reduce_rows(_digest, *sample_arrays, n_out=0)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _digest(block: LocalMatrix, *sample_arrays: Array) -> tuple[tuple[()], tuple[list[str]]]:
    found = hashlib.sha256(f"{block.shape} {block.dtype}".encode())

    def add(array: Any) -> None:
        found.update(np.ascontiguousarray(to_float64(array)).tobytes())

    csr = getattr(block, "csr", None)
    if csr is not None:
        for part in (csr.indptr, csr.indices, csr.data):
            add(part)
    for start, stop in block.row_blocks(1 << 20):
        if csr is None:
            add(block.dense_rows(start, stop))
        if block.observed is not None:
            add(block.observed.dense_rows(start, stop) != 0)
    for array in (block.weights, *sample_arrays):
        if array is not None:
            add(array)
    return (), ([found.hexdigest()],)


@rows_only
def _digest_of_rows(block: LocalMatrix, *sample_arrays: Array) -> tuple[tuple[()], tuple[list[str]]]:
    parts = (np.ascontiguousarray(to_float64(array)).tobytes() for array in sample_arrays)
    return (), ([hashlib.sha256(part).hexdigest() for part in parts],)
