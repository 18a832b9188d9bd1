"""A digest of the data, so that a checkpoint is resumed with its own data only."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from nonneg._arrays import numpy_dtype, to_numpy
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix


def fingerprint(data: DataMatrix, *sample_arrays: SampleArray) -> str:
    """Return a digest of entries, weights, mask and arrays with one row per sample, from one pass."""
    # Blocks of a file begin elsewhere when there is other memory: one hash goes through all of them. Chunks
    # of Dask, which are worked on side by side, have one each.
    hashes: dict[Any, Any] | None = None if data.container == "dask" else {}
    digests = data.reduce_rows(_hashed, *sample_arrays, hashes=hashes)
    # Weights of the entries are added up block by block, and so to rounding.
    weight = f"{data.observed_weight():.10g}"
    digest = digests if hashes is None else digests[-1]
    known = data.shape, numpy_dtype(data.dtype), data.n_missing, weight, digest
    return hashlib.sha256(str(known).encode()).hexdigest()


def _hashed(block: LocalMatrix, *sample_arrays: Array, hashes: dict[Any, Any] | None) -> list[Any]:
    """Hash the arrays of a block, each kind for itself; missing entries are zeros."""
    hashes = {} if hashes is None else hashes

    def add(name: Any, array: Any) -> None:
        hashes.setdefault(name, hashlib.sha256()).update(np.ascontiguousarray(to_numpy(array)).data)

    if (csr := getattr(block, "csr", None)) is None:
        for start, stop in block.row_blocks(1 << 20):
            add("values", block.dense_rows(start, stop))
    else:
        kind = np.int32 if block.shape[1] < 2**31 else np.int64  # whatever the indices of a block are
        add("lengths", np.diff(to_numpy(csr.indptr)).astype(np.int64, copy=False))
        add("columns", to_numpy(csr.indices).astype(kind, copy=False))
        add("values", csr.data)
    if block.weights is not None:
        add("weights", block.weights)
    for number, array in enumerate(sample_arrays):
        add(number, array)
    return [{name: value.hexdigest() for name, value in hashes.items()}]
