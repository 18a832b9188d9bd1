"""Sparse entries in arrays of PyTorch or CuPy, on the CPU or a GPU: CSR, with its transpose computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from nonneg._arrays import is_sparse_array, to_device, to_numpy, to_torch
from nonneg._lazy import cached_property
from nonneg._typing import Array, SampleArray
from nonneg.data.csr_arrays import CsrArrays, check_sparse_array, csr_arrays, from_entries
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.observed import EntryWeights, ListedObserved, MissingEntries, Observed
from nonneg.data.sparse import SparseMatrix
from nonneg.exceptions import UnsupportedInputError
from nonneg.kernels.grams import ListedGrams
from nonneg.kernels.sparse_products import row_sums, rows_of_entries, sparse_times

# Stored entries of which a function is computed at a time, in float64.
ENTRIES = 1 << 22


class SparseArrayMatrix(LocalMatrix):
    """A sparse tensor or CuPy matrix by rows; entries that are not stored are zeros."""

    container = "sparse-array"
    is_sparse = True

    def __init__(
        self,
        csr: CsrArrays,
        *,
        transposed: CsrArrays | None = None,
        weights: Array | None = None,
        observed: Observed | None = None,
    ) -> None:
        self.csr = csr
        self.xp = array_namespace(csr.data)
        self.shape = csr.shape
        self.dtype = csr.data.dtype
        self.weights = weights
        self.observed = observed
        if transposed is not None:
            self.__dict__["transposed"] = transposed

    @cached_property
    def transposed(self) -> CsrArrays:
        """The transpose by rows, made once."""
        return self.csr.transposed()

    def times(self, Ht: Array) -> SampleArray:
        """Return X Ht."""
        csr = self.csr
        return sparse_times(csr.indptr, csr.indices, csr.data, Ht, plan=csr.plan)

    def transposed_times(self, W: SampleArray) -> Array:
        """Return X' diag(weights) W."""
        Xt = self.transposed
        return sparse_times(Xt.indptr, Xt.indices, Xt.data, self.weighted(W), plan=Xt.plan)

    def stored_sum(self, function: Callable[[Array], Array]) -> float:
        """Return the weighted sum of a function of the stored entries, in float64."""
        xp, csr, total = self.xp, self.csr, 0.0
        for first in range(0, csr.nnz, ENTRIES):
            last = min(first + ENTRIES, csr.nnz)
            values = function(xp.astype(csr.data[first:last], xp.float64))
            if self.weights is not None:
                rows = rows_of_entries(csr.indptr, first, last)
                values = values * xp.take(xp.astype(self.weights, xp.float64), rows)
            total = total + xp.sum(values)
        return float(total)

    def squared_norm(self) -> float:
        """Return the weighted sum of the squared entries."""
        return self.stored_sum(lambda values: values * values)

    def squared_row_norms(self) -> Array:
        """Return the sum of the squared entries of every row."""
        return self.xp.astype(self.row_powers(2.0), self.dtype)

    def row_powers(self, power: float) -> Array:
        """Return the sum of a power of the absolute entries of every row, in float64."""
        values = self.xp.abs(self.xp.astype(self.csr.data, self.xp.float64))
        values = values if power == 1.0 else values * values if power == 2.0 else values**power
        return row_sums(self.csr.indptr, values, plan=self.csr.plan)

    def column_powers(self, power: float) -> Array:
        """Return the weighted sum of a power of the entries of every column, in float64."""
        Xt = self.transposed
        values = self.xp.astype(Xt.data, self.xp.float64) ** power
        if self.weights is not None:
            values = values * self.xp.take(self.xp.astype(self.weights, self.xp.float64), Xt.indices)
        return row_sums(Xt.indptr, values, plan=Xt.plan)

    def total(self) -> float:
        """Return the weighted sum of the entries."""
        return self.stored_sum(lambda values: values)

    def count_nonzero(self) -> int:
        """Return the number of entries that are not zero."""
        # PyTorch counts in an array of integers of eight bytes.
        data = self.csr.data
        parts = (data[first : first + ENTRIES] for first in range(0, self.csr.nnz, ENTRIES))
        return int(sum(self.xp.count_nonzero(part) for part in parts))

    def weighted_nonzeros(self) -> float:
        """Return the sum of the weights of the rows, once for each of their nonzeros."""
        return self.stored_sum(lambda values: self.xp.astype(values != 0, self.xp.float64))

    def _compute_extremes(self) -> tuple[float, float]:
        data = self.csr.data
        if data.shape[0] == 0:
            return 0.0, 0.0
        low, high = float(self.xp.min(data)), float(self.xp.max(data))
        if self.csr.nnz < self.shape[0] * self.shape[1] and low == low:
            low, high = min(low, 0.0), max(high, 0.0)
        return low, high

    def to_device(self, array: Any) -> Array:
        """Return an array in the namespace and dtype and on the device of the data."""
        return to_device(array, self.csr.data, self.dtype)

    def take_rows(self, rows: Any) -> Array:
        """Return the given rows."""
        return self.csr.take_rows(np.asarray(rows, dtype=np.int64)).to_dense()

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows, made dense."""
        return self.csr.take_rows(slice(start, stop)).to_dense()

    def row_blocks(self, entries: int = 1 << 17) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows, larger ones than on the CPU: each costs a few kernels."""
        return super().row_blocks(max(entries, ENTRIES))

    def select(self, rows: Any) -> SparseArrayMatrix:
        """Return some rows."""
        index = rows if isinstance(rows, slice) else to_device(to_numpy(rows), self.csr.data)
        return SparseArrayMatrix(
            self.csr.take_rows(rows),
            weights=None if self.weights is None else self.weights[index],
            observed=None if self.observed is None else self.observed.rows(rows),
        )

    def scaled(self, row_scale: Array | None, column_scale: Array | None) -> SparseArrayMatrix:
        """Return the same places with entries times the scales of their row and column."""
        values = self.csr.data
        if row_scale is not None:
            values = values * self.xp.take(row_scale[:, 0], self.csr.rows_of_entries())
        if column_scale is not None:
            values = values * self.xp.take(column_scale, self.csr.indices)
        return SparseArrayMatrix(self.csr.with_data(values), weights=self.weights, observed=self.observed)

    def turned(self) -> SparseArrayMatrix:
        """Return the transpose as data of its own."""
        return SparseArrayMatrix(self.transposed, transposed=self.csr)

    def as_torch(self) -> SparseArrayMatrix:
        """Return the same data as tensors in the same memory, where they are arrays of CuPy."""
        if type(self.csr.data).__module__ == "torch":
            return self
        observed = self.observed
        if isinstance(observed, ListedArrays):
            observed = ListedArrays(
                observed.listed.as_torch(),
                lists_observed=observed.lists_observed,
                columns=observed.columns.as_torch(),
            )
        return SparseArrayMatrix(
            self.csr.as_torch(),
            transposed=self.transposed.as_torch(),
            weights=None if self.weights is None else to_torch(self.weights),
            observed=observed,
        )

    def on_host(self) -> SparseMatrix:
        """Return the same data in SciPy's container, for what has no implementation on a GPU."""
        weights = None if self.weights is None else to_numpy(self.weights)
        observed = None
        if isinstance(self.observed, ListedArrays):
            listed = self.observed.listed.to_scipy()
            observed = ListedObserved(listed if self.observed.lists_observed else MissingEntries(listed))
        return SparseMatrix(self.csr.to_scipy(), weights=weights, observed=observed)


class ListedArrays(Observed):
    """A list of the observed entries, or of the missing ones, in arrays of PyTorch or CuPy."""

    def __init__(self, listed: CsrArrays, *, lists_observed: bool, columns: CsrArrays | None = None) -> None:
        self.listed, self.lists_observed = listed, lists_observed
        self.xp, self.is_mask = listed.xp, True
        if columns is not None:
            self.__dict__["columns"] = columns

    @cached_property
    def columns(self) -> CsrArrays:
        """The same list by columns."""
        return self.listed.transposed()

    def _grams(self, other: Array, csr: CsrArrays) -> ListedGrams:
        xp, k = self.xp, other.shape[1]
        wide = xp.astype(other, xp.float64)
        base = xp.zeros((k, k), dtype=xp.float64, device=other.device)
        if not self.lists_observed:
            base = wide.T @ wide
        return ListedGrams(base, 1.0 if self.lists_observed else -1.0, other, csr.indptr, csr.indices)

    def row_grams(self, Ht: Array) -> ListedGrams:
        """Return the Gram matrix of each row subproblem."""
        return self._grams(Ht, self.listed)

    def column_grams(self, W: Array) -> ListedGrams:
        """Return the Gram matrix of each column subproblem."""
        return self._grams(W, self.columns)

    def _sums(self, other: Array, csr: CsrArrays) -> Array:
        part = sparse_times(csr.indptr, csr.indices, self.xp.astype(csr.data, other.dtype), other)
        if self.lists_observed:
            return part
        return self.xp.clip(self.xp.sum(other, axis=0) - part, min=0.0)

    def row_sums(self, Ht: Array) -> Array:
        """Return the sum of the rows of Ht over the observed columns of every row."""
        return self._sums(Ht, self.listed)

    def column_sums(self, W: Array) -> Array:
        """Return the sum of the rows of W over the observed rows of every column."""
        return self._sums(W, self.columns)

    def weight(self, weights: Array | None) -> float:
        """Return the weighted number of observed entries."""
        xp = self.xp
        counts = xp.astype(self.listed.indptr[1:] - self.listed.indptr[:-1], xp.float64)
        if not self.lists_observed:
            counts = self.listed.shape[1] - counts
        return float(xp.sum(counts if weights is None else counts * xp.astype(weights, xp.float64)))

    def n_missing(self) -> int:
        """Return the number of missing entries."""
        n_rows, n_columns = self.listed.shape
        return n_rows * n_columns - round(self.weight(None))

    def rows(self, rows: Any) -> ListedArrays:
        """Return the pattern of some rows."""
        return ListedArrays(self.listed.take_rows(rows), lists_observed=self.lists_observed)

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows as 0/1 entries."""
        listed = self.listed.take_rows(slice(start, stop)).to_dense()
        return listed if self.lists_observed else 1 - listed


def on_host(data: DataMatrix) -> DataMatrix:
    """Return sparse tensors and CuPy's sparse matrices in SciPy's container; other data as they are."""
    return data.on_host() if isinstance(data, SparseArrayMatrix) else data


def sparse_array_matrix(X: Any, weights: Any = None, mask: Any = None) -> SparseArrayMatrix:
    """Wrap a sparse tensor or CuPy matrix; entries that are not observed are left out."""
    if isinstance(mask, EntryWeights):
        raise UnsupportedInputError(
            "entry_weight and uncertainty are not supported for sparse tensors. Pass X.to_dense(), or X as a "
            "SciPy sparse matrix."
        )
    nan_is_missing = isinstance(mask, MissingEntries)
    if nan_is_missing:
        mask = mask.pattern
    check_sparse_array(X)
    csr, turned = csr_arrays(X)
    xp = csr.xp
    if weights is not None:
        weights = to_device(np.asarray(to_numpy(weights)), csr.data, csr.data.dtype)
    observed = None
    lost = xp.isnan(csr.data) if nan_is_missing else None
    if lost is not None and not bool(xp.any(lost)):
        lost = None
    if mask is not None or lost is not None:
        observed, kept = _observed(csr, mask, lost)
        rows, columns = csr.rows_of_entries(), csr.indices
        places = xp.nonzero(kept)[0]
        rows, columns, values = (xp.take(part, places) for part in (rows, columns, csr.data))
        csr, turned = from_entries(rows, columns, values, csr.shape), None
    return SparseArrayMatrix(csr, transposed=turned, weights=weights, observed=observed)


def _observed(csr: CsrArrays, mask: Any, lost: Array | None) -> tuple[ListedArrays, Array]:
    """Return what was observed, and which of the stored entries were."""
    xp, n_entries = csr.xp, csr.shape[0] * csr.shape[1]
    if mask is None:
        places = xp.nonzero(lost)[0]
        ones = xp.ones(int(places.shape[0]), dtype=csr.data.dtype, device=csr.data.device)
        rows, columns = xp.take(csr.rows_of_entries(), places), xp.take(csr.indices, places)
        missing = from_entries(rows, columns, ones, csr.shape)
        return ListedArrays(missing, lists_observed=False), xp.logical_not(lost)
    pattern = _pattern(mask, csr)
    listed = _keys(pattern)
    own = _keys(csr)
    kept = _among(own, listed)
    if lost is not None:
        kept = xp.logical_and(kept, xp.logical_not(lost))
        gone = xp.take(own, xp.nonzero(lost)[0])
        listed = xp.take(listed, xp.nonzero(xp.logical_not(_among(listed, gone)))[0])
    lists_observed = 2 * int(listed.shape[0]) <= n_entries
    if not lists_observed:
        # At least half of all entries were stored: a list of all of them is no longer than twice the mask.
        every = xp.arange(n_entries, dtype=xp.int64, device=csr.data.device)
        listed = xp.take(every, xp.nonzero(xp.logical_not(_among(every, listed)))[0])
    rows = listed // csr.shape[1]
    ones = xp.ones(int(listed.shape[0]), dtype=csr.data.dtype, device=csr.data.device)
    pattern = from_entries(rows, listed - rows * csr.shape[1], ones, csr.shape)
    return ListedArrays(pattern, lists_observed=lists_observed), kept


def _keys(csr: CsrArrays) -> Array:
    # Increasing: rows are in order, and columns within them.
    xp = csr.xp
    return xp.astype(csr.rows_of_entries(), xp.int64) * csr.shape[1] + xp.astype(csr.indices, xp.int64)


def _among(keys: Array, found: Array) -> Array:
    """Tell which keys are in an increasing list."""
    xp = array_namespace(keys)
    n_found = int(found.shape[0])
    if n_found == 0:
        return xp.zeros_like(keys, dtype=xp.bool)
    at = xp.clip(xp.searchsorted(found, keys), max=n_found - 1)
    return xp.take(found, at) == keys


def _pattern(mask: Any, like: CsrArrays) -> CsrArrays:
    """Return the places where a mask of any container is true, on the device of the data."""
    xp = like.xp
    if is_sparse_array(mask):
        check_sparse_array(mask, "mask", mask=True)
        mask = mask.to(like.data.dtype) if hasattr(mask, "layout") else mask.astype(np.float32)
        given = csr_arrays(mask)[0]
        places = given.xp.nonzero(given.data != 0)[0]
        rows, columns = (given.xp.take(part, places) for part in (given.rows_of_entries(), given.indices))
    elif sp.issparse(mask):
        coo = mask.tocoo()
        rows, columns = (part[coo.data != 0] for part in (coo.row, coo.col))
    else:
        rows, columns = xp.nonzero(to_device(mask, like.data) != 0)
    rows, columns = (to_device(part, like.data) for part in (rows, columns))
    ones = xp.ones(int(rows.shape[0]), dtype=like.data.dtype, device=like.data.device)
    return from_entries(rows, columns, ones, like.shape)
