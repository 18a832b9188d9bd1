"""Norms of the rows, and the data with rows of norm 1."""

from __future__ import annotations

import numpy as np

from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.sparse import SparseMatrix
from nonneg.data.sparse_array import SparseArrayMatrix
from nonneg.data.views import BlockView, ScaledMatrix
from nonneg.exceptions import UnknownNameError

NORMS = ("l1", "l2", "max")


def scaled_rows(data: DataMatrix, scale: SampleArray) -> DataMatrix:
    """Return the data with every row multiplied by a factor, without a copy of the entries."""
    if isinstance(data, LocalMatrix):
        return ScaledMatrix(data, row_scale=scale)
    return BlockView(data, ScaledMatrix, scale)


def normalized_rows(data: DataMatrix, norm: str = "l2") -> DataMatrix:
    """Return the data with rows of norm 1, without a copy of the entries; rows of zeros stay."""
    _check_norm(norm)
    (scale,), _ = data.map_reduce_rows(_inverse_norms, norm=norm)
    return scaled_rows(data, scale)


def row_norms(data: DataMatrix, norm: str = "l2") -> SampleArray:
    """Return the norm of every row."""
    _check_norm(norm)
    return data.map_reduce_rows(_norms, norm=norm)[0][0]


def _check_norm(norm: str) -> None:
    if norm not in NORMS:
        raise UnknownNameError.of("norm", norm, NORMS)


def _norms(block: LocalMatrix, *, norm: str) -> tuple[tuple[Array], tuple[()]]:
    xp = block.xp
    if norm == "l2":
        found = xp.sqrt(block.squared_row_norms())
    elif isinstance(block, SparseArrayMatrix):
        if norm == "l1":
            found = block.row_powers(1.0)
        else:  # maxima of rows have no kernel on a GPU
            found = block.to_device(_sparse_norms(block.on_host(), norm))
    elif isinstance(block, SparseMatrix):
        found = _sparse_norms(block, norm)
    else:
        reduce = xp.sum if norm == "l1" else xp.max
        rows = (block.dense_rows(start, stop) for start, stop in block.row_blocks(1 << 20))
        found = xp.concat([reduce(xp.abs(part), axis=1) for part in rows])
    return (xp.astype(found, block.dtype)[:, None],), ()


def _sparse_norms(block: SparseMatrix, norm: str) -> Array:
    sizes = np.abs(block.csr.data.astype(np.float64))
    starts, stops = block.csr.indptr[:-1], block.csr.indptr[1:]
    if norm == "l1":
        # A sum within each row: differences of a running sum would lose small rows after large ones.
        return np.bincount(np.repeat(np.arange(block.shape[0]), stops - starts), sizes, block.shape[0])
    found = np.zeros(block.shape[0])
    filled = np.flatnonzero(stops > starts)
    if filled.size:
        found[filled] = np.maximum.reduceat(sizes, starts[filled])
    return found


def _inverse_norms(block: LocalMatrix, *, norm: str) -> tuple[tuple[Array], tuple[()]]:
    (found,), _ = _norms(block, norm=norm)
    xp = block.xp
    positive = found > 0
    return (xp.where(positive, 1.0 / xp.where(positive, found, xp.ones_like(found)), found),), ()
