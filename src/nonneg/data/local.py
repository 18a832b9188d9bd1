"""The table of local containers, which of them accepts an array or a chunk, and which entries count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._arrays import is_dask, is_sparse_array, to_numpy
from nonneg._typing import Array
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import LocalMatrix
from nonneg.data.observed import ArrayObserved, ListedObserved, MissingEntries, Observed
from nonneg.data.sparse import SparseMatrix
from nonneg.data.sparse_array import sparse_array_matrix


def local_matrix(X: Any, *, weights: Any = None, mask: Any = None) -> LocalMatrix:
    """Wrap entries that are in this process, in the first container that accepts them."""
    make = next(make for accepts, make in LOCAL_CONTAINERS if accepts(X))
    return make(X, weights, mask)


def _dense(X: Any, weights: Any, mask: Any) -> DenseMatrix:
    xp = array_namespace(X)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    place = {} if is_numpy_namespace(xp) else {"device": X.device}
    if weights is not None:
        weights = xp.asarray(weights, dtype=X.dtype, **place)
    observed: Observed | None = None
    if mask is not None:
        mask = xp.asarray(mask.toarray() if sp.issparse(mask) else mask, dtype=xp.bool, **place)
        X = xp.where(mask, X, xp.zeros_like(X))
        observed = ArrayObserved(xp.astype(mask, X.dtype), xp) if place else ListedObserved(mask)
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


LOCAL_CONTAINERS: tuple[tuple[Callable[[Any], bool], Callable[..., LocalMatrix]], ...] = (
    (sp.issparse, _sparse),
    (is_sparse_array, sparse_array_matrix),
    (lambda X: True, _dense),
)


def has_nan(X: Any) -> bool:
    """Tell whether an array of any container has NaN among its entries."""
    if is_sparse_array(X):
        X = X.coalesce().values() if str(getattr(X, "layout", "")) == "torch.sparse_coo" else _values(X)
    elif sp.issparse(X):
        X = X.tocoo().data
    if "float" not in str(X.dtype):
        return False
    if is_dask(X):
        return bool(X.map_blocks(_nan_places, dtype=bool, meta=np.empty((0, 0), dtype=bool)).any().compute())
    xp = array_namespace(X)
    return bool(xp.any(xp.isnan(X)))


def _values(X: Any) -> Any:
    return X.values() if hasattr(X, "layout") else X.data


def _nan_places(block: Any) -> Array:
    return np.isnan(block.toarray() if sp.issparse(block) else to_numpy(block))


def observed_mask(X: Any, mask: Any) -> Any:
    """Return which entries were observed: not NaN, and not hidden by a mask."""
    if is_sparse_array(X):
        return MissingEntries(mask)
    if sp.issparse(X):
        lost = sp.csr_array(X, copy=True).astype(np.float64)
        lost.data = np.isnan(lost.data).astype(np.float64)
        lost.sum_duplicates()
        lost.eliminate_zeros()
        if mask is None:
            return MissingEntries(lost)
        given = sp.csr_array(mask if sp.issparse(mask) else to_numpy(mask), dtype=bool).astype(np.int8)
        return (given - given.multiply((lost != 0).astype(np.int8))).astype(bool)
    mask = mask.toarray() if sp.issparse(mask) else mask
    if is_dask(X):
        seen = ~X.map_blocks(_nan_places, dtype=bool, meta=np.empty((0, 0), dtype=bool))
        return seen if mask is None else seen & (mask if is_dask(mask) else np.asarray(mask)).astype(bool)
    xp = array_namespace(X)
    seen = xp.logical_not(xp.isnan(X))
    if mask is None:
        return seen
    place = {} if is_numpy_namespace(xp) else {"device": X.device}
    return xp.logical_and(seen, xp.asarray(mask, dtype=xp.bool, **place))
