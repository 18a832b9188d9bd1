"""The table of local containers, which of them accepts an array or a chunk, and which entries count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._arrays import is_dask, is_sparse_array, to_device, to_numpy
from nonneg._typing import Array
from nonneg.data.csr_arrays import scipy_matrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import LocalMatrix
from nonneg.data.observed import (
    ArrayObserved,
    EntryWeights,
    MissingEntries,
    Observed,
    observed_entries,
)
from nonneg.data.sparse import sparse_array_matrix, sparse_matrix


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
        weighted = isinstance(mask, EntryWeights)
        entries = mask.dense() if weighted else mask.toarray() if sp.issparse(mask) else mask
        entries = to_device(entries, X, X.dtype if weighted else xp.bool) if place else np.asarray(entries)
        if not weighted:
            mask = xp.astype(entries, xp.bool)
        seen = entries > 0 if weighted else mask
        X = X if weighted and bool(xp.all(seen)) else xp.where(seen, X, xp.zeros_like(X))
        if place:
            observed = ArrayObserved(xp.astype(entries, X.dtype), xp, is_mask=not weighted)
        else:
            observed = observed_entries(mask, X.dtype)
    return DenseMatrix(X, xp, weights=weights, observed=observed)


LOCAL_CONTAINERS: tuple[tuple[Callable[[Any], bool], Callable[..., LocalMatrix]], ...] = (
    (sp.issparse, sparse_matrix),
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
    """Return which entries were observed, not NaN and not hidden by a mask, or with which weight."""
    if isinstance(mask, EntryWeights):
        return _weights_without_nan(X, mask)
    if is_sparse_array(X):
        return observed_mask(scipy_matrix(X), scipy_matrix(mask, "mask") if is_sparse_array(mask) else mask)
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


def _weights_without_nan(X: Any, weights: EntryWeights) -> EntryWeights:
    """Return the weights, 0 where X is NaN."""
    if sp.issparse(X) and sp.issparse(weights.values):
        places, given = X.tocoo(), sp.coo_array(weights.values)
        lost = np.isnan(places.data)
        gone = places.row[lost], places.col[lost]
        pattern = sp.csr_array((np.ones(len(gone[0]), dtype=bool), gone), shape=X.shape)
        seen = ~np.asarray(pattern[given.row, given.col]).ravel()
        rows, columns = np.concatenate([given.row[seen], gone[0]]), np.concatenate([given.col[seen], gone[1]])
        # Zeros are stored: what is not has the weight `absent`.
        data = np.concatenate([given.data[seen].astype(np.float64), np.zeros(len(gone[0]))])
        return EntryWeights(sp.csr_array((data, (rows, columns)), shape=X.shape), weights.absent)
    values = weights.dense()
    if is_dask(X):
        seen = ~X.map_blocks(_nan_places, dtype=bool, meta=np.empty((0, 0), dtype=bool))
        return EntryWeights(seen * values)
    if sp.issparse(X):
        places = X.tocoo()
        values, lost = np.array(to_numpy(values)), np.isnan(places.data)
        values[places.row[lost], places.col[lost]] = 0
        return EntryWeights(values)
    xp = array_namespace(X)
    values = np.asarray(to_numpy(values)) if is_numpy_namespace(xp) else to_device(values, X, X.dtype)
    return EntryWeights(xp.where(xp.isnan(X), xp.zeros_like(values), values))
