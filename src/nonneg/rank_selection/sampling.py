"""Parts of the data in local memory: a random sample of rows, blocks, and data with entries hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import computed
from nonneg._typing import IntArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.local import local_matrix
from nonneg.data.observed import ArrayObserved, ListedObserved, MissingEntries
from nonneg.data.sparse import SparseMatrix
from nonneg.data.streamed import StreamedMatrix
from nonneg.data.views import ScaledMatrix
from nonneg.exceptions import UnsupportedInputError


def sample(data: DataMatrix, max_samples: int | None, rng: np.random.Generator) -> LocalMatrix:
    """Return up to `max_samples` samples in local memory, drawn without replacement."""
    if data.weights is not None:
        raise UnsupportedInputError(
            "Cross-validation and stability do not support sample weights. Use "
            "method='singular-value-ratio', or repeat the samples."
        )
    if data.has_mask:
        raise UnsupportedInputError(
            "Cross-validation and stability do not support chunked data with missing entries. Compute the "
            "data first, or use method='singular-value-ratio'."
        )
    n_rows = data.shape[0]
    rows = None
    if max_samples is not None and n_rows > max_samples:
        rows = np.sort(rng.choice(n_rows, max_samples, replace=False))
    return _local(data, rows)


def _local(data: DataMatrix, rows: IntArray | None) -> LocalMatrix:
    base = getattr(data, "base", None)
    if base is not None:
        part = _local(base, rows)
        scale: Any = data.row_scale if rows is None else data.row_scale[rows]  # type: ignore[attr-defined]
        scale = computed(scale)
        return _materialized(part, scale)
    if isinstance(data, StreamedMatrix):
        return data.select(np.arange(data.shape[0]) if rows is None else rows)
    if not isinstance(data, LocalMatrix):
        array: Any = data.array  # type: ignore[attr-defined]
        return local_matrix((array if rows is None else array[rows]).compute())
    if rows is None:
        return data
    if isinstance(data, SparseMatrix):
        return data.select(rows)
    return DenseMatrix(_taken(data, rows, 0), data.xp, observed=_observed_rows(data, rows))


def _observed_rows(data: LocalMatrix, rows: IntArray) -> Any:
    observed = data.observed
    if isinstance(observed, ArrayObserved):
        index = data.xp.asarray(rows, device=observed.mask.device)
        return ArrayObserved(data.xp.take(observed.mask, index, axis=0), data.xp)
    return None if observed is None else observed.rows(rows)


def _taken(data: Any, index: IntArray, axis: int) -> Any:
    place = data.xp.asarray(np.asarray(index, dtype=np.int64), device=data.array.device)
    return data.xp.take(data.array, place, axis=axis)


def _materialized(part: LocalMatrix, scale: Any) -> LocalMatrix:
    if isinstance(part, SparseMatrix):
        csr = part.csr.copy()
        csr.data = csr.data * np.repeat(scale[:, 0], np.diff(csr.indptr)).astype(csr.dtype)
        return SparseMatrix(csr, observed=part.observed)
    return DenseMatrix(part.array * scale, part.xp, observed=part.observed)  # type: ignore[attr-defined]


def block(data: LocalMatrix, rows: IntArray, columns: IntArray) -> LocalMatrix:
    """Return some rows and columns of complete data."""
    if isinstance(data, SparseMatrix):
        return SparseMatrix(data.csr[rows][:, columns].tocsr())
    part = DenseMatrix(_taken(data, rows, 0), data.xp)
    return DenseMatrix(_taken(part, columns, 1), data.xp)


def without(data: LocalMatrix, rows: IntArray, columns: IntArray) -> LocalMatrix:
    """Return the data with some entries hidden."""
    ones = np.ones(len(rows), dtype=np.int8)
    hidden = sp.csr_array((ones, (rows, columns)), shape=data.shape)
    before = data.observed
    if isinstance(data, SparseMatrix):
        kept = data.csr - data.csr.multiply(hidden.astype(data.dtype))
        kept = sp.csr_array(kept)
        kept.eliminate_zeros()
        kept.sort_indices()
        return SparseMatrix(kept, observed=_more_missing(before, hidden))
    if isinstance(data, ScaledMatrix) or not isinstance(data, DenseMatrix):
        raise UnsupportedInputError(f"Expected dense or sparse data, got {type(data).__name__}.")
    if data.container == "dense":
        array = data.array.copy()
        array[rows, columns] = 0
        return DenseMatrix(array, data.xp, observed=_more_missing(before, hidden))
    seen = np.ones(data.shape, dtype=bool)
    seen[rows, columns] = False
    mask = data.xp.asarray(seen, dtype=data.dtype, device=data.array.device)
    if isinstance(before, ArrayObserved):
        mask = mask * before.mask
    return DenseMatrix(data.array * mask, data.xp, observed=ArrayObserved(mask, data.xp))


def _more_missing(before: Any, hidden: Any) -> Any:
    if before is None:
        return ListedObserved(MissingEntries(hidden))
    if before.lists_observed:
        listed = before.listed.astype(np.int8)
        rest = listed - listed.multiply(hidden)
        rest.eliminate_zeros()
        return ListedObserved(rest)
    return ListedObserved(MissingEntries(before.listed.astype(np.int8) + hidden))
