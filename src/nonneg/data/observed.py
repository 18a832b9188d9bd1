"""Weights of the entries, 0 where one is missing: as a user gives them, and as products use them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj

from nonneg._arrays import checked_indices, is_dask, is_sparse_array, to_float64
from nonneg._typing import Array
from nonneg.exceptions import DataTypeError, InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.kernels.grams import ListedGrams, WeightedGrams
from nonneg.kernels.sparse_products import row_sums, sparse_times

PART_ENTRIES = 1 << 20  # that are checked at once


@dataclass(frozen=True)
class EntryWeights:
    """A nonnegative weight for every entry; `absent` for those that a sparse matrix does not store."""

    values: Any
    absent: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (int(self.values.shape[0]), int(self.values.shape[1]))

    def __getitem__(self, part: Any) -> EntryWeights:
        return EntryWeights(self.values[part], self.absent)

    def dense(self) -> Any:
        """Return the weights as a dense array."""
        if not sp.issparse(self.values):
            return self.values
        listed = sp.coo_array(self.values)
        out = np.full(self.shape, self.absent, dtype=listed.dtype if self.absent == 0 else np.float64)
        out[listed.coords] = listed.data
        return out


class ListedObserved:
    """Weights of the entries of a block: one for most of them, and a list of how the others differ.

    A mask, or implicit feedback. The list is a SciPy matrix or `CsrArrays`, by rows and by columns.
    """

    def __init__(self, weights: Any) -> None:
        if isinstance(weights, EntryWeights):
            listed = sp.csr_array(weights.values, dtype=np.float64, copy=True)
            listed.sum_duplicates()
            listed.data -= weights.absent
            listed.eliminate_zeros()
            self._set(weights.absent, listed)
            return
        sparse = sp.issparse(weights)
        n_observed = weights.count_nonzero() if sparse else int(np.count_nonzero(weights))
        if 2 * n_observed <= weights.shape[0] * weights.shape[1]:
            listed = sp.csr_array(weights, dtype=bool).astype(np.int8)
            listed.eliminate_zeros()
            self._set(0.0, listed)
        else:
            missing = (weights.toarray() if sparse else weights) == 0
            self._set(1.0, -sp.csr_array(missing).astype(np.int8))

    def _set(self, usual: float, listed: Any) -> None:
        self.usual, self.shape = usual, listed.shape
        # Whether the weights are 0 and 1.
        self.is_mask = usual in (0.0, 1.0) and bool(np.all(listed.data == 1 - 2 * usual))
        data = listed.data.astype(np.int8, copy=False) if self.is_mask else listed.data
        # Integers of 32 bits where these suffice, whatever they were given as: kernels are compiled for them.
        kind = np.int32 if max(listed.nnz, *listed.shape) <= np.iinfo(np.int32).max else np.int64
        indices, indptr = (array.astype(kind, copy=False) for array in (listed.indices, listed.indptr))
        self.listed = sp.csr_array((data, indices, indptr), shape=listed.shape)
        self.columns = sp.csr_array(self.listed.T)

    def _gram(self, other: Array, listed: Any) -> ListedGrams:
        xp = array_namespace(other)
        other = np.ascontiguousarray(other) if isinstance(other, np.ndarray) else other
        wide = xp.astype(other, xp.float64, copy=False)
        base = self.usual * (wide.T @ wide)
        values = 1 - 2 * self.usual if self.is_mask else listed.data
        return ListedGrams(base, values, other, listed.indptr, listed.indices)

    def row_grams(self, Ht: Array) -> ListedGrams:
        """Return the Gram matrix of each row subproblem."""
        return self._gram(Ht, self.listed)

    def column_grams(self, W: Array) -> ListedGrams:
        """Return the Gram matrix of each column subproblem."""
        return self._gram(W, self.columns)

    def _sums(self, other: Array, listed: Any) -> Array:
        xp = array_namespace(other)
        part = sparse_times(listed.indptr, listed.indices, xp.astype(listed.data, other.dtype), other)
        return part if self.usual == 0 else xp.clip(self.usual * xp.sum(other, axis=0) + part, min=0.0)

    def row_sums(self, Ht: Array) -> Array:
        """Return the weighted sum of the rows of Ht for every row."""
        return self._sums(Ht, self.listed)

    def column_sums(self, W: Array) -> Array:
        """Return the weighted sum of the rows of W for every column."""
        return self._sums(W, self.columns)

    def weight(self, weights: Array | None) -> float:
        """Return the sum of the weights, times those of the rows."""
        xp = array_namespace(self.listed.data)
        sums = row_sums(self.listed.indptr, xp.astype(self.listed.data, xp.float64))
        sums = self.usual * self.shape[1] + sums
        return float(xp.sum(sums if weights is None else sums * xp.astype(weights, xp.float64)))

    def n_missing(self) -> int:
        """Return the number of entries of weight 0."""
        if self.usual == 0:
            return self.shape[0] * self.shape[1] - int(self.listed.nnz)
        values = self.listed.data
        return int(array_namespace(values).count_nonzero(values == -self.usual))

    def mask(self) -> Observed | None:
        """Return weights of 1 where these are positive; None if all are."""
        if self.n_missing() == 0:
            return None
        pattern = sp.csr_array(self.listed != 0, dtype=np.int8)
        pattern.data[:] = 1 if self.usual == 0 else np.where(self.listed.data == -self.usual, -1, 0)
        pattern.eliminate_zeros()
        return self.differing(0.0 if self.usual == 0 else 1.0, pattern)

    def at(self, rows: Any, columns: Any) -> Array:
        """Return the weights of some entries."""
        listed = np.asarray(self.listed[rows, columns]).ravel() if len(rows) else np.zeros(0)
        return self.usual + listed.astype(np.float64)

    @classmethod
    def differing(cls, usual: float, listed: Any) -> ListedObserved:
        """Return weights that are `usual` but for the listed differences."""
        observed = object.__new__(cls)
        observed._set(usual, listed)
        return observed

    def with_lists(self, listed: Any, columns: Any) -> ListedObserved:
        """Return the same weights with the lists in other arrays, on another device perhaps."""
        observed = copy.copy(self)
        observed.listed, observed.columns = listed, columns
        return observed

    def rows(self, rows: Any) -> ListedObserved:
        """Return the weights of some rows."""
        listed = self.listed[rows]
        if sp.issparse(listed):
            return self.differing(self.usual, listed)
        observed = self.with_lists(listed, listed.T)
        observed.shape = listed.shape
        return observed

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows of the weights."""
        listed = self.listed[start:stop].toarray()
        return listed + np.int8(self.usual) if listed.dtype == np.int8 else self.usual + listed


class ArrayObserved:
    """Weights of the entries of a block in a dense array of any namespace."""

    def __init__(self, weights: Array, xp: Any, *, is_mask: bool = False) -> None:
        self.weights = weights
        self.xp = xp
        self.is_mask = is_mask

    def row_grams(self, Ht: Array) -> WeightedGrams:
        """Return the Gram matrix of each row subproblem."""
        return WeightedGrams(self.weights, Ht)

    def column_grams(self, W: Array) -> WeightedGrams:
        """Return the Gram matrix of each column subproblem."""
        return WeightedGrams(self.weights.T, W)

    def row_sums(self, Ht: Array) -> Array:
        """Return the weighted sum of the rows of Ht for every row."""
        return self.weights @ Ht

    def column_sums(self, W: Array) -> Array:
        """Return the weighted sum of the rows of W for every column."""
        return self.weights.T @ W

    def weight(self, weights: Array | None) -> float:
        """Return the sum of the weights, times those of the rows."""
        xp = self.xp
        sums = xp.sum(self.weights, axis=1, dtype=xp.float64)
        return float(xp.sum(sums if weights is None else sums * xp.astype(weights, xp.float64)))

    def n_missing(self) -> int:
        """Return the number of entries of weight 0."""
        return int(self.xp.count_nonzero(self.weights == 0))

    def mask(self) -> Observed | None:
        """Return weights of 1 where these are positive; None if all are."""
        if self.n_missing() == 0:
            return None
        if isinstance(self.weights, np.ndarray):
            return ListedObserved(self.weights != 0)
        return ArrayObserved(self.xp.astype(self.weights != 0, self.weights.dtype), self.xp, is_mask=True)

    def at(self, rows: Any, columns: Any) -> Array:
        """Return the weights of some entries."""
        return self.weights[rows, columns]

    def rows(self, rows: Any) -> ArrayObserved:
        """Return the weights of some rows."""
        return ArrayObserved(self.weights[rows, :], self.xp, is_mask=self.is_mask)

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows of the weights."""
        return self.weights[start:stop, :]


Observed: TypeAlias = ListedObserved | ArrayObserved


def observed_entries(weights: Any, dtype: Any) -> Observed:
    """Return the weights of entries on the host as a list where most are equal, else as an array."""
    if not isinstance(weights, EntryWeights):
        return ListedObserved(weights)
    if sp.issparse(weights.values) and 2 * weights.values.nnz <= np.prod(weights.shape):
        return ListedObserved(weights)
    values = np.asarray(weights.dense(), dtype=dtype)
    middle = (values.size - 1) // 2
    usual = float(np.partition(values, middle, axis=None)[middle])  # if most are equal, they are equal to it
    if 2 * np.count_nonzero(values != usual) <= values.size:
        differ = sp.csr_array(np.where(values != usual, values.astype(np.float64) - usual, 0.0))
        return ListedObserved.differing(usual, differ)
    return ArrayObserved(values, np)


def checked_entry_weights(given: Any, shape: tuple[int, int], name: str) -> EntryWeights | None:
    """Return weights for the entries of X, or say what is wrong with them; None if all are 1.

    `name` is "entry_weight", or "uncertainty" if `given` are standard deviations.
    """
    values, absent = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if hasattr(values, "iloc"):
        values = values.to_numpy()
    if is_sparse_array(values):
        raise DataTypeError(
            f"{name} must not be a sparse tensor. Pass a SciPy sparse matrix or a dense array."
        )
    if not (sp.issparse(values) or is_dask(values) or is_array_api_obj(values)):
        values = np.asarray(values)
    if tuple(values.shape) != tuple(shape):
        raise ShapeError(
            f"Expected {name} of the same shape as X, {tuple(shape)}, got {tuple(values.shape)}."
        )
    if isinstance(values.dtype, np.dtype) and values.dtype.kind not in "biuf":
        raise DataTypeError(f"Expected {name} to contain real numbers, got dtype {values.dtype}.")
    deviations = name == "uncertainty"
    if absent is None:
        absent = np.inf if deviations else 0.0
    elif not sp.issparse(values):
        raise InvalidParameterError(
            f"{name} is a pair, whose second part is for the entries that the first does not store; but the "
            f"first is no sparse matrix, it stores all entries. Pass it alone."
        )
    absent = float(absent)
    if absent != absent or absent < 0 or (absent == 0 if deviations else absent == np.inf):
        raise InvalidParameterError(f"{name} of entries that are not stored is {absent}. {_rule(deviations)}")
    if sp.issparse(values):
        values = sp.csr_array(checked_indices(values, name), dtype=np.float64, copy=True)
        values.sum_duplicates()
    found = EntryWeights(values, absent)
    low, high = _check(found, name, deviations)
    if low == high == 1:
        return None
    return _inverse_squares(found) if deviations else found


def _rule(deviations: bool) -> str:
    if deviations:
        return (
            "Uncertainties are standard deviations: they must be positive; infinity marks a missing entry. "
            "Use the detection limit, or a share of the value, where none is known."
        )
    return "Weights must be finite and not negative; 0 marks a missing entry."


def _check(weights: EntryWeights, name: str, deviations: bool) -> tuple[float, float]:
    """Return the smallest and the largest, after all entries were looked at."""
    n_rows, n_columns = weights.shape
    low, high, columns = np.inf, -np.inf, np.zeros(n_columns, dtype=bool)
    rows = np.zeros(n_rows, dtype=bool)
    step = max(1, PART_ENTRIES // n_columns)
    for start in range(0, n_rows, step):
        part = weights[start : min(start + step, n_rows)].dense()
        part = to_float64(part.compute() if is_dask(part) else part)
        good = (part > 0) if deviations else (part >= 0) & (part < np.inf)
        if not good.all():
            i, j = np.argwhere(~good)[0]
            kind = NonFiniteDataError if np.isnan(part[i, j]) else InvalidParameterError
            raise kind(f"{name}[{start + i}, {j}] is {part[i, j]}. {_rule(deviations)}")
        counts = part < np.inf if deviations else part > 0
        low, high, columns = min(low, part.min()), max(high, part.max()), columns | counts.any(axis=0)
        rows[start : start + step] = counts.any(axis=1)
    for side, observed in (("row", rows), ("column", columns)):
        if not observed.all():
            raise InvalidParameterError(
                f"{name} is {'infinite' if deviations else '0'} in all of {side} {int(np.argmin(observed))}: "
                f"nothing was observed there. Leave that {side} out of X and of {name}."
            )
    return float(low), float(high)


def _inverse_squares(deviations: EntryWeights) -> EntryWeights:
    values, absent = deviations.values, deviations.absent
    if sp.issparse(values):
        values = values.copy()
        values.data = values.data**-2.0
    elif is_dask(values):
        values = values.astype(np.float64) ** -2
    else:
        xp = array_namespace(values)
        values = xp.astype(values, xp.float64) ** -2
    return EntryWeights(values, 0.0 if absent == np.inf else absent**-2.0)
