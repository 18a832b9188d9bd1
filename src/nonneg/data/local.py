"""The table of local containers, which of them accepts an array or a chunk, and which entries count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_namespace

from nonneg._arrays import is_dask, is_sparse_array, to_device, to_numpy
from nonneg._typing import Array
from nonneg.data.csr_arrays import scipy_matrix, sparse_tensor
from nonneg.data.dense import DenseMatrix
from nonneg.data.matrix import LocalMatrix
from nonneg.data.observed import ArrayObserved, EntryWeights, Observed, observed_entries
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
        X = sparse_tensor(X)
        X = (X.coalesce() if str(X.layout) == "torch.sparse_coo" else X).values()
    elif sp.issparse(X):
        X = X.tocoo().data
    if "float" not in str(X.dtype):
        return False
    if is_dask(X):
        return bool(X.map_blocks(_nan_places, dtype=bool, meta=np.empty((0, 0), dtype=bool)).any().compute())
    xp = array_namespace(X)
    return bool(xp.any(xp.isnan(X)))


def _nan_places(block: Any) -> Array:
    return np.isnan(block.toarray() if sp.issparse(block) else to_numpy(block))


def observed_mask(X: Any, mask: Any) -> Any:
    """Return which entries were observed, not NaN and not hidden by a mask, or with which weight."""
    weighted = isinstance(mask, EntryWeights)
    if is_sparse_array(X):
        X, mask = scipy_matrix(X), scipy_matrix(mask, "mask") if is_sparse_array(mask) else mask
    if sp.issparse(X):
        return _without_nan(X, mask)
    values = mask.dense() if weighted else mask.toarray() if sp.issparse(mask) else mask
    if is_dask(X):
        seen = ~X.map_blocks(_nan_places, dtype=bool, meta=np.empty((0, 0), dtype=bool))
        if weighted:
            return EntryWeights(seen * values)
        return (
            seen if mask is None else seen & (values if is_dask(values) else np.asarray(values)).astype(bool)
        )
    xp = array_namespace(X)
    seen = xp.logical_not(xp.isnan(X))
    if mask is None:
        return seen
    on_host = is_numpy_namespace(xp)
    values = to_numpy(values) if on_host else to_device(values, X, X.dtype if weighted else xp.bool)
    if weighted:
        return EntryWeights(xp.where(seen, values, xp.zeros_like(values)))
    return xp.logical_and(seen, xp.astype(values, xp.bool))


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
        values = np.array(to_numpy(weights.values))
        values[tuple(lost)] = 0
        return EntryWeights(values)
    listed = sp.coo_array(weights.values)
    seen = ~np.isin(np.ravel_multi_index(listed.coords, X.shape), np.ravel_multi_index(tuple(lost), X.shape))
    places = np.concatenate([np.stack(listed.coords)[:, seen], lost], axis=1)
    # Zeros are stored: what is not has the weight `absent`.
    values = np.concatenate([listed.data[seen], np.zeros(lost.shape[1])])
    return EntryWeights(sp.csr_array((values, tuple(places)), shape=X.shape), weights.absent)
