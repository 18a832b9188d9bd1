"""The containers in this process: which one accepts an array or a chunk, and which of its entries count."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import computed, is_dask, is_sparse_array, to_device, to_numpy
from nonneg._typing import Array
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import LocalMatrix
from nonneg.data.observed import ArrayObserved, EntryWeights, Observed, observed_entries
from nonneg.data.sparse import csr_arrays, scipy_matrix, sparse_array_matrix, sparse_matrix


def local_matrix(X: Any, *, weights: Any = None, mask: Any = None) -> LocalMatrix:
    """Wrap entries that are in this process, in the container that accepts them."""
    make = sparse_matrix if sp.issparse(X) else sparse_array_matrix if is_sparse_array(X) else _dense
    return make(X, weights, mask)


def _dense(X: Any, weights: Any, mask: Any) -> DenseMatrix:
    xp = array_namespace(X)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    if weights is not None:
        weights = to_device(weights, X, X.dtype)
    if mask is None:
        return DenseMatrix(X, xp, weights=weights)
    entries, weighted = _dense_mask(X, mask), isinstance(mask, EntryWeights)
    seen = xp.astype(entries, xp.bool)
    if isinstance(X, np.ndarray):
        observed: Observed = observed_entries(EntryWeights(entries) if weighted else entries, X.dtype)
    else:
        observed = ArrayObserved(xp.astype(entries, X.dtype), xp, is_mask=not weighted)
    X = X if bool(xp.all(seen)) else xp.where(seen, X, xp.zeros_like(X))  # a copy only if it must be
    return DenseMatrix(X, xp, weights=weights, observed=observed)


def _dense_mask(X: Any, mask: Any) -> Array:
    """Return a mask or weights of entries as an array beside X."""
    if isinstance(mask, EntryWeights):
        with np.errstate(over="ignore"):  # the door refuses what overflows
            return to_device(mask.dense(), X, X.dtype)
    xp = array_namespace(X)
    return xp.astype(to_device(mask.toarray() if sp.issparse(mask) else mask, X), xp.bool)


def has_nan(X: Any) -> bool:
    """Tell whether an array of any container has NaN among its entries."""
    if is_sparse_array(X):
        X = csr_arrays(X).data
    elif sp.issparse(X):
        X = X.tocoo().data
    if "float" not in str(X.dtype):
        return False
    seen = observed_mask(X, None)
    return not bool(computed(seen.all() if is_dask(X) else array_namespace(X).all(seen)))


def _nan_places(block: Any) -> Array:
    return np.isnan(block.toarray() if sp.issparse(block) else to_numpy(block))


def observed_mask(X: Any, mask: Any) -> Any:
    """Return which entries were observed, not NaN and not hidden by a mask, or with which weight."""
    if is_sparse_array(X) or sp.issparse(X):
        return _without_nan(scipy_matrix(X) if is_sparse_array(X) else X, mask)
    weighted = isinstance(mask, EntryWeights)
    if is_dask(X):
        seen = ~X.map_blocks(_nan_places, dtype=bool, meta=np.empty((0, 0), dtype=bool))
        if weighted:
            return EntryWeights(seen * mask.dense())
        mask = mask.toarray() if sp.issparse(mask) else mask
        return seen if mask is None else seen & mask.astype(bool)
    xp = array_namespace(X)
    seen = xp.logical_not(xp.isnan(X))
    if mask is None:
        return seen
    entries = _dense_mask(X, mask)
    entries = xp.where(seen, entries, xp.zeros_like(entries))
    return EntryWeights(entries) if weighted else entries


def _without_nan(X: Any, mask: Any) -> EntryWeights:
    """Return weights of the entries of a sparse matrix that are 0 where it is NaN."""
    entries = sp.coo_array(X)
    lost = np.stack(entries.coords)[:, np.isnan(entries.data)]
    weights = mask
    if mask is None:
        weights = EntryWeights(sp.csr_array(X.shape), 1.0)
    elif not isinstance(mask, EntryWeights):
        weights = EntryWeights(sp.csr_array(mask if sp.issparse(mask) else to_numpy(mask), dtype=bool))
    if not sp.issparse(weights.values):
        values = np.array(to_numpy(weights.dense()))
        values[tuple(lost)] = 0
        return EntryWeights(values)
    listed = sp.coo_array(weights.values)
    seen = ~np.isin(np.ravel_multi_index(listed.coords, X.shape), np.ravel_multi_index(tuple(lost), X.shape))
    places = np.concatenate([np.stack(listed.coords)[:, seen], lost], axis=1)
    # Zeros are stored: what is not has the weight `absent`.
    values = np.concatenate([listed.data[seen], np.zeros(lost.shape[1])])
    return EntryWeights(sp.csr_array((values, tuple(places)), shape=X.shape), weights.absent)
