"""Choose the local container for an array or a chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._arrays import is_sparse_array
from nonneg._typing import Array
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import LocalMatrix
from nonneg.data.observed import ArrayObserved, ListedObserved, MissingEntries, Observed
from nonneg.data.sparse import SparseMatrix
from nonneg.data.sparse_array import sparse_array_matrix


def local_matrix(X: Any, *, weights: Any = None, mask: Any = None) -> LocalMatrix:
    """Wrap entries that are in this process."""
    if sp.issparse(X):
        return _sparse(X, weights, mask)
    if is_sparse_array(X):
        return sparse_array_matrix(X, weights, mask)
    xp = array_namespace(X)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    numpy = is_numpy_namespace(xp)
    if weights is not None:
        weights = (
            np.asarray(weights, dtype=X.dtype)
            if numpy
            else xp.asarray(weights, dtype=X.dtype, device=X.device)
        )
    observed: Observed | None = None
    if mask is not None:
        if numpy:
            mask = np.asarray(mask.toarray() if sp.issparse(mask) else mask, dtype=bool)
            X = np.where(mask, X, X.dtype.type(0))
            observed = ListedObserved(mask)
        else:
            mask = mask.toarray() if sp.issparse(mask) else mask
            mask = xp.asarray(mask, dtype=xp.bool, device=X.device)
            X = xp.where(mask, X, xp.zeros_like(X))
            observed = ArrayObserved(xp.astype(mask, X.dtype), xp)
    return DenseMatrix(X, xp, weights=weights, observed=observed)


def _sparse(X: Any, weights: Any, mask: Any) -> SparseMatrix:
    if X.dtype not in (np.float32, np.float64):
        # Before repeated entries are added, which might wrap around in small integers.
        X = X.astype(np.float64)
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is X or np.shares_memory(csr.data, X.data) else csr
        csr.sum_duplicates()
    if weights is not None:
        weights = np.asarray(weights, dtype=csr.dtype)
    observed = None
    if mask is not None:
        if not isinstance(mask, MissingEntries):
            mask = sp.csr_array(mask, dtype=bool)
        observed = ListedObserved(mask)
        csr = _only_observed(csr, mask)
    return SparseMatrix(csr, weights=weights, observed=observed)


def _only_observed(csr: Any, mask: Any) -> Array:
    # A product with 0/1 would keep NaN at missing places; look each entry up instead.
    entries = csr.tocoo()
    if isinstance(mask, MissingEntries):
        seen = ~np.isnan(entries.data)
    else:
        seen = np.asarray(mask[entries.row, entries.col]).ravel().astype(bool)
    kept = sp.csr_array((entries.data[seen], (entries.row[seen], entries.col[seen])), shape=csr.shape)
    kept.sort_indices()
    return kept
