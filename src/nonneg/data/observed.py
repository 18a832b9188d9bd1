"""Weights of the entries, 0 where one is missing: as a user gives them, and as products use them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_array_api_obj

from nonneg._arrays import checked_indices, is_dask, to_float64
from nonneg._lazy import cached_property
from nonneg._typing import Array, Namespace
from nonneg.exceptions import DataTypeError, InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.io.read import as_stored
from nonneg.io.stored import StoredMatrix
from nonneg.kernels.grams import ListedGrams, WeightedGrams
from nonneg.kernels.sparse_products import row_sums, sparse_times

SMALLEST = 1e-154  # uncertainty whose inverse square is finite in float64
PART_ENTRIES = 1 << 20  # that are checked at once
RULES = {
    "entry_weight": "Weights must be finite and not negative; 0 marks a missing entry.",
    "uncertainty": f"Uncertainties are standard deviations: they must be larger than {SMALLEST}; infinity "
    "marks a missing entry. Use the detection limit, or a share of the value, where none is known.",
}


@dataclass(frozen=True)
class EntryWeights:
    """A nonnegative weight for every entry; `absent` for those that a sparse matrix does not store.

    Dense or stored values may be standard deviations: they become weights where they are used, by blocks.
    """

    values: Any
    absent: float = 0.0
    deviations: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (int(self.values.shape[0]), int(self.values.shape[1]))

    def __getitem__(self, part: Any) -> EntryWeights:
        values = self.values
        if isinstance(values, StoredMatrix):
            ranges = isinstance(part, slice)
            values = values.read_rows(part.start, part.stop) if ranges else values.take_rows(part)
        else:
            values = values[part]
        return EntryWeights(_inverse_squares(values) if self.deviations else values, self.absent)

    def dense(self) -> Any:
        """Return the weights as a dense array."""
        if self.deviations or isinstance(self.values, StoredMatrix):
            return self[0 : self.shape[0]].dense()
        if not sp.issparse(self.values):
            return self.values
        listed = sp.coo_array(self.values)
        out = np.full(self.shape, self.absent, dtype=listed.dtype if self.absent == 0 else np.float64)
        out[listed.coords] = listed.data
        return out


class ListedObserved:
    """Weights of the entries of a block: one for most of them, and a list of how the others differ.

    A mask, or implicit feedback. The list is a SciPy matrix or `CsrArrays`.
    """

    def __init__(self, usual: float, listed: Any) -> None:
        self.usual = usual
        # Whether the weights are 0 and 1.
        self.is_mask = usual in (0.0, 1.0) and bool(np.all(listed.data == 1 - 2 * usual))
        data = listed.data.astype(np.int8, copy=False) if self.is_mask else listed.data
        # Integers of 32 bits where these suffice, whatever they were given as: kernels are compiled for them.
        kind = np.int32 if max(listed.nnz, *listed.shape) <= np.iinfo(np.int32).max else np.int64
        indices, indptr = (array.astype(kind, copy=False) for array in (listed.indices, listed.indptr))
        self.listed = sp.csr_array((data, indices, indptr), shape=listed.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.listed.shape

    @cached_property
    def T(self) -> ListedObserved:
        """The weights of the transpose."""
        turned = self.listed.T
        return self.converted(lambda _: sp.csr_array(turned) if sp.issparse(turned) else turned)

    def row_grams(self, Ht: Array) -> ListedGrams:
        """Return the Gram matrix of each row subproblem."""
        xp = array_namespace(Ht)
        Ht = np.ascontiguousarray(Ht) if isinstance(Ht, np.ndarray) else Ht
        wide = xp.astype(Ht, xp.float64, copy=False)
        values = 1 - 2 * self.usual if self.is_mask else self.listed.data
        return ListedGrams(self.usual * (wide.T @ wide), values, Ht, self.listed.indptr, self.listed.indices)

    def row_sums(self, Ht: Array) -> Array:
        """Return the weighted sum of the rows of Ht for every row."""
        xp, lists = array_namespace(Ht), self.listed
        part = sparse_times(lists.indptr, lists.indices, xp.astype(lists.data, Ht.dtype), Ht)
        return part if self.usual == 0 else xp.clip(self.usual * xp.sum(Ht, axis=0) + part, min=0.0)

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
        on_host = sp.issparse(self.listed)
        pattern = sp.csr_array(self.listed if on_host else self.listed.to_scipy())
        pattern.data = np.where(pattern.data == -self.usual, -1, 0) if self.usual else pattern.data != 0
        pattern.eliminate_zeros()
        mask, like = ListedObserved(float(self.usual != 0), pattern), self.listed.data
        return mask if on_host else mask.converted(lambda part: self.listed.from_scipy(part, like))

    def at(self, rows: Any, columns: Any) -> Array:
        """Return the weights of some entries."""
        if sp.issparse(self.listed):
            listed = np.asarray(self.listed[rows, columns]).ravel() if len(rows) else np.zeros(0)
            return self.usual + listed.astype(np.float64)
        # Places as one number each, in order; the last of them is no entry's.
        xp, n, lists = array_namespace(rows), self.shape[1], self.listed
        no_place, zero = (xp.asarray([end], device=rows.device) for end in (self.shape[0] * n, 0.0))
        known = xp.concat([xp.astype(lists.rows_of_entries(), xp.int64) * n + lists.indices, no_place])
        differences = xp.concat([xp.astype(lists.data, xp.float64), xp.astype(zero, xp.float64)])
        wanted = xp.astype(rows, xp.int64) * n + columns
        place = xp.searchsorted(known, wanted)
        return self.usual + xp.where(known[place] == wanted, differences[place], 0.0)

    def converted(self, convert: Callable[[Any], Any]) -> ListedObserved:
        """Return the same weights with the list in other arrays, on another device perhaps."""
        observed = copy.copy(self)
        vars(observed).pop("T", None)
        observed.listed = convert(self.listed)
        return observed

    def rows(self, rows: Any) -> ListedObserved:
        """Return the weights of some rows."""
        return self.converted(lambda listed: listed[rows])

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows of the weights."""
        listed = self.listed[start:stop].toarray()
        return listed + np.int8(self.usual) if listed.dtype == np.int8 else self.usual + listed


class ArrayObserved:
    """Weights of the entries of a block in a dense array of any namespace."""

    def __init__(self, weights: Array, xp: Namespace, *, is_mask: bool = False) -> None:
        self.weights, self.xp, self.is_mask = weights, xp, is_mask

    @property
    def T(self) -> ArrayObserved:
        """The weights of the transpose."""
        return ArrayObserved(self.weights.T, self.xp, is_mask=self.is_mask)

    def row_grams(self, Ht: Array) -> WeightedGrams:
        """Return the Gram matrix of each row subproblem."""
        return WeightedGrams(self.weights, Ht)

    def row_sums(self, Ht: Array) -> Array:
        """Return the weighted sum of the rows of Ht for every row."""
        return self.weights @ Ht

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
            return observed_entries(EntryWeights(self.weights != 0), bool)
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
        weights, dtype = EntryWeights(weights.astype(bool)), bool  # a mask
    values, (n_rows, n_columns) = weights.values, weights.shape
    if sp.issparse(values) and 2 * values.nnz <= n_rows * n_columns:
        usual, listed = weights.absent, sp.csr_array(values, copy=True)
        listed.sum_duplicates()
        listed = listed.astype(np.float64, copy=False)
    else:
        values = np.asarray(weights.dense(), dtype=dtype)
        middle = (values.size - 1) // 2
        usual = float(np.partition(values, middle, axis=None)[middle])  # if most are equal, to it
        others = values != usual
        if 2 * np.count_nonzero(others) > values.size:
            return ArrayObserved(values, np)
        listed = sp.csr_array(others, dtype=np.float64)
        listed.data = values[others].astype(np.float64)
    # Differences from much larger weights would lose more digits than a mask, where one of many is observed.
    if usual > max(n_rows, n_columns) * listed.data.min(where=listed.data > 0, initial=np.inf):
        return ArrayObserved(np.asarray(weights.dense(), dtype=dtype), np)
    listed.data -= usual
    listed.eliminate_zeros()
    return ListedObserved(usual, listed)


def checked_entry_weights(
    values: Any, absent: Any, shape: tuple[int, int], name: str, *, batch: bool
) -> EntryWeights | None:
    """Return weights for the entries of X, or say what is wrong with them; None if all are 1.

    `name` is "uncertainty" if they are standard deviations. A `batch` of samples may lack some columns.
    """
    if hasattr(values, "iloc"):
        values = values.to_numpy()
    stored = None if isinstance(values, np.memmap) else as_stored(values)
    if stored is not None:
        values = stored.read_all() if stored.fits() else stored
    elif not (sp.issparse(values) or is_dask(values) or is_array_api_obj(values)):
        values = np.asarray(values)
    if tuple(values.shape) != tuple(shape):
        raise ShapeError(
            f"Expected {name} of the same shape as X, {tuple(shape)}, got {tuple(values.shape)}."
        )
    if isinstance(values.dtype, np.dtype) and values.dtype.kind not in "biuf":
        raise DataTypeError(f"Expected {name} to contain real numbers, got dtype {values.dtype}.")
    deviations, sparse = name == "uncertainty", sp.issparse(values)
    if absent is None:
        absent = np.inf if deviations else 0.0
    elif not (sparse or getattr(values, "is_sparse", False)):
        raise InvalidParameterError(
            f"{name} is a pair, whose second part is for the entries that the first does not store; but the "
            f"first is no sparse matrix, it stores all entries. Pass it alone."
        )
    absent = float(absent)
    if absent != absent or absent < 0 or (absent == 0 if deviations else absent == np.inf):
        raise InvalidParameterError(f"{name} of entries that are not stored is {absent}. {RULES[name]}")
    if sparse:
        values = sp.csr_array(checked_indices(values, name), dtype=np.float64, copy=True)
        values.sum_duplicates()
    checked = EntryWeights(values, absent)
    low, high = _check(checked, name, batch=batch)
    if low == high == 1:
        return None
    if not deviations:
        return checked
    absent = 0.0 if absent == np.inf else absent**-2.0
    return EntryWeights(_inverse_squares(values) if sparse else values, absent, deviations=not sparse)


def _check(weights: EntryWeights, name: str, *, batch: bool) -> tuple[float, float]:
    """Return the smallest and the largest, after all entries were looked at."""
    n_rows, n_columns = weights.shape
    low, high, columns, deviations = np.inf, -np.inf, np.full(n_columns, batch), name == "uncertainty"
    rows, step = np.zeros(n_rows, dtype=bool), max(1, PART_ENTRIES // n_columns)
    stored = isinstance(weights.values, StoredMatrix)
    for start, stop in pairwise(weights.values.cuts() if stored else [*range(0, n_rows, step), n_rows]):
        part = weights[start:stop].dense()
        part = to_float64(part.compute() if is_dask(part) else part)
        good = part > SMALLEST if deviations else (part >= 0) & (part < np.inf)
        if not good.all():
            i, j = np.argwhere(~good)[0]
            kind = NonFiniteDataError if np.isnan(part[i, j]) else InvalidParameterError
            raise kind(f"{name}[{start + i}, {j}] is {part[i, j]}. {RULES[name]}")
        counts = part < np.inf if deviations else part > 0
        low, high, columns = min(low, part.min()), max(high, part.max()), columns | counts.any(axis=0)
        rows[start:stop] = counts.any(axis=1)
    for side, observed in (("row", rows), ("column", columns)):
        if not observed.all():
            raise InvalidParameterError(
                f"{name} is {'infinite' if deviations else '0'} in all of {side} {int(np.argmin(observed))}: "
                f"nothing was observed there. Leave that {side} out of X and of {name}."
            )
    return float(low), float(high)


def _inverse_squares(deviations: Any) -> Any:
    if sp.issparse(deviations):
        deviations = deviations.copy()
        deviations.data = deviations.data**-2.0
        return deviations
    if is_dask(deviations):
        return deviations.astype(np.float64) ** -2
    xp = array_namespace(deviations)
    return xp.astype(deviations, xp.float64, copy=False) ** -2
