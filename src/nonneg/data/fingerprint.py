"""A digest of the data, so that a checkpoint is resumed with its own data only."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import numpy_dtype, to_numpy
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import BlockedMatrix, DataMatrix, LocalMatrix, rows_only
from nonneg.kernels.sparse_products import row_sums

BitSums: TypeAlias = tuple[int, int, int]
"""Number of rows, the sum of the bits of their entries, each times an odd number for its column, and the same
with an odd number for its row: modulo 2^64, so that neither blocks nor devices matter. They tell other data
from the same, and other orders of rows or columns; they do not detect a forgery."""


def fingerprint(data: DataMatrix, *sample_arrays: SampleArray) -> str:
    """Return a digest of entries, weights, mask and arrays with one row per sample."""
    # A file had its pass already.
    blocks = data.bit_sums or data.map_reduce_rows(bit_sums, n_out=0)[1][0]
    if sample_arrays:
        _, (rows,) = data.map_reduce_rows(_row_sums, *sample_arrays, n_out=0)
        blocks = [one + other for one, other in zip(blocks, rows, strict=True)]
    sums = [_joined(list(parts)) for parts in zip(*blocks, strict=True)]
    if isinstance(data, BlockedMatrix):
        n_missing = int(data.statistics.n_missing)
    else:
        n_missing = 0 if data.observed is None else data.observed.n_missing()
    # Weights of the entries are added up block by block, and so to rounding.
    known = data.shape, numpy_dtype(data.dtype), n_missing, f"{data.observed_weight():.10g}", sums
    return hashlib.sha256(str(known).encode()).hexdigest()


def bit_sums(block: LocalMatrix) -> tuple[tuple[()], tuple[list[tuple[BitSums, ...]]]]:
    """Return the sums of a block: of its entries, where missing ones are zeros, and of its row weights."""
    if (csr := getattr(block, "csr", None)) is None:
        parts = block.row_blocks(1 << 20)
        sums = [_joined([_sums(block.dense_rows(*part)) for part in parts])]
    else:
        csr = csr if sp.issparse(csr) else csr.to_scipy()
        values = csr.data.view(f"i{csr.data.itemsize}") * (2 * csr.indices.astype(np.int64) + 1)
        sums = [_row_weighted(row_sums(csr.indptr, values))]
    if block.weights is not None:
        sums.append(_sums(block.weights[:, None]))
    return (), ([tuple(sums)],)


@rows_only
def _row_sums(
    block: LocalMatrix, *sample_arrays: Array
) -> tuple[tuple[()], tuple[list[tuple[BitSums, ...]]]]:
    return (), ([tuple(_sums(array) for array in sample_arrays)],)


def _sums(rows: Any) -> BitSums:
    rows = rows if hasattr(rows, "view") else to_numpy(rows)
    xp = array_namespace(rows)
    bits = rows.view(xp.int32 if numpy_dtype(rows.dtype) == np.float32 else xp.int64)
    columns = 2 * xp.arange(bits.shape[1], dtype=xp.int64, device=bits.device) + 1
    if isinstance(bits, np.ndarray):
        return _row_weighted(np.einsum("ij,j->i", bits, columns, dtype=np.int64))
    return _row_weighted(xp.sum(xp.astype(bits, xp.int64) * columns, axis=1))


def _row_weighted(sums: Array) -> BitSums:
    xp, n_rows = array_namespace(sums), int(sums.shape[0])
    rows = 2 * xp.arange(n_rows, dtype=xp.int64, device=sums.device) + 1
    return n_rows, int(xp.sum(sums)), int(xp.sum(sums * rows))


def _joined(parts: list[BitSums]) -> BitSums:
    """Return the sums of blocks one after another."""
    n_rows, plain, by_row = 0, 0, 0
    for n, sums, weighted in parts:
        by_row += weighted + 2 * n_rows * sums
        n_rows, plain = n_rows + n, plain + sums
    return n_rows, plain % 2**64, by_row % 2**64
