"""Which entries were observed, and the Gram matrices that follow from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import Array
from nonneg.kernels.grams import Gram, ListedGrams, MaskedGrams


@dataclass(frozen=True)
class MissingEntries:
    """The few entries of a sparse matrix that were not observed."""

    pattern: Any  # stored where missing; of a sparse tensor a mask, or None: NaN are missing besides


class Observed(ABC):
    """The pattern of observed entries of a local block."""

    @abstractmethod
    def row_grams(self, Ht: Array) -> Gram:
        """Return the Gram matrix of each row subproblem."""

    @abstractmethod
    def column_grams(self, W: Array) -> Gram:
        """Return the Gram matrix of each column subproblem."""

    @abstractmethod
    def row_sums(self, Ht: Array) -> Array:
        """Return the sum of the rows of Ht over the observed columns of every row."""

    @abstractmethod
    def column_sums(self, W: Array) -> Array:
        """Return the sum of the rows of W over the observed rows of every column."""

    @abstractmethod
    def weight(self, weights: Array | None) -> float:
        """Return the weighted number of observed entries."""

    @abstractmethod
    def rows(self, rows: Any) -> Observed:
        """Return the pattern of some rows."""

    @abstractmethod
    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows as 0/1 entries."""


class ListedObserved(Observed):
    """A list of the observed entries, or of the missing ones, whichever is shorter."""

    def __init__(self, mask: Any) -> None:
        if isinstance(mask, MissingEntries):
            self.lists_observed = False
            self._set(sp.csr_array(mask.pattern))
            return
        n_rows, n_columns = mask.shape
        n_observed = mask.count_nonzero() if sp.issparse(mask) else int(np.count_nonzero(mask))
        self.lists_observed = 2 * n_observed <= n_rows * n_columns
        if sp.issparse(mask):
            listed = sp.csr_array(mask, dtype=np.int8)
            listed.eliminate_zeros()
            if not self.lists_observed:
                listed = sp.csr_array(listed.toarray() == 0)
        else:
            listed = sp.csr_array(mask if self.lists_observed else ~mask)
        self._set(listed)

    def _set(self, listed: Any) -> None:
        self.shape = listed.shape
        # Integers of 32 bits where these suffice, whatever they were given as: kernels are compiled for them.
        kind = np.int32 if max(listed.nnz, *listed.shape) <= np.iinfo(np.int32).max else np.int64
        indices, indptr = (array.astype(kind, copy=False) for array in (listed.indices, listed.indptr))
        self.listed = sp.csr_array((listed.data, indices, indptr), shape=listed.shape)
        columns = sp.csc_array(self.listed)
        self._columns = columns.indptr, columns.indices

    def _gram(self, other: Array, indptr: Array, indices: Array) -> ListedGrams:
        other = np.ascontiguousarray(other)
        k = other.shape[1]
        wide = other.astype(np.float64, copy=False)
        base = np.zeros((k, k)) if self.lists_observed else wide.T @ wide
        return ListedGrams(base, 1.0 if self.lists_observed else -1.0, other, indptr, indices)

    def row_grams(self, Ht: Array) -> ListedGrams:
        """Return the Gram matrix of each row subproblem."""
        return self._gram(Ht, self.listed.indptr, self.listed.indices)

    def column_grams(self, W: Array) -> ListedGrams:
        """Return the Gram matrix of each column subproblem."""
        return self._gram(W, *self._columns)

    def _sums(self, other: Array, listed: Any) -> Array:
        part = listed.astype(other.dtype) @ other
        return part if self.lists_observed else np.maximum(other.sum(axis=0) - part, 0)

    def row_sums(self, Ht: Array) -> Array:
        """Return the sum of the rows of Ht over the observed columns of every row."""
        return self._sums(Ht, self.listed)

    def column_sums(self, W: Array) -> Array:
        """Return the sum of the rows of W over the observed rows of every column."""
        return self._sums(W, self.listed.T)

    def weight(self, weights: Array | None) -> float:
        """Return the weighted number of observed entries."""
        listed = np.diff(self.listed.indptr).astype(np.float64)
        counts = listed if self.lists_observed else self.shape[1] - listed
        return float(counts.sum() if weights is None else counts @ weights)

    def rows(self, rows: Any) -> ListedObserved:
        """Return the pattern of some rows."""
        part = object.__new__(ListedObserved)
        part.lists_observed = self.lists_observed
        part._set(self.listed[rows])
        return part

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows as 0/1 entries."""
        listed = self.listed[start:stop].toarray().astype(np.int8)
        return listed if self.lists_observed else 1 - listed


class ArrayObserved(Observed):
    """A dense 0/1 array of any namespace."""

    def __init__(self, mask: Array, xp: Any) -> None:
        self.mask = mask
        self.xp = xp

    def row_grams(self, Ht: Array) -> MaskedGrams:
        """Return the Gram matrix of each row subproblem."""
        return MaskedGrams(self.mask, Ht)

    def column_grams(self, W: Array) -> MaskedGrams:
        """Return the Gram matrix of each column subproblem."""
        return MaskedGrams(self.mask.T, W)

    def row_sums(self, Ht: Array) -> Array:
        """Return the sum of the rows of Ht over the observed columns of every row."""
        return self.mask @ Ht

    def column_sums(self, W: Array) -> Array:
        """Return the sum of the rows of W over the observed rows of every column."""
        return self.mask.T @ W

    def weight(self, weights: Array | None) -> float:
        """Return the weighted number of observed entries."""
        counts = self.xp.sum(self.mask, axis=1)
        return float(self.xp.sum(counts if weights is None else counts * weights))

    def rows(self, rows: Any) -> ArrayObserved:
        """Return the pattern of some rows."""
        return ArrayObserved(self.mask[rows, :], self.xp)

    def dense_rows(self, start: int, stop: int) -> Array:
        """Return a range of rows as 0/1 entries."""
        return self.mask[start:stop, :]
