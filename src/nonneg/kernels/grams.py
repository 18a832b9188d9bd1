"""Gram matrices of the rows' least-squares problems: one for all rows, or one a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class SharedGram:
    """One Gram matrix for all rows."""

    matrix: Any

    def __add__(self, other: Any) -> SharedGram:
        return SharedGram(self.matrix + other.matrix)

    # `sum` starts from 0.
    __radd__ = __add__


@dataclass(frozen=True)
class ListedGrams:
    """Gram matrices of rows with missing entries, as lists of entries to add or to leave out.

    Row i has `base + sign * sum of other[j] other[j]'` over its listed j. Holds no array of the
    size rows x k x k.
    """

    base: Any
    sign: float
    other: Any
    indptr: Any
    indices: Any

    def dense(self) -> DenseGrams:
        """Write the matrices out.

        Returns
        -------
        DenseGrams
            One matrix a row.
        """
        from nonneg.kernels.compiled.row_grams import grams_block

        n_rows, k = len(self.indptr) - 1, self.other.shape[1]
        out = np.empty((n_rows, k, k), dtype=self.other.dtype)
        grams_block(self.base, self.other.dtype.type(self.sign), self.other, self.indptr, self.indices, out, 0, n_rows)
        return DenseGrams(out)

    def __add__(self, other: Any) -> DenseGrams:
        return self.dense() + other

    __radd__ = __add__


@dataclass(frozen=True)
class DenseGrams:
    """One Gram matrix a row, written out: (n_rows, k, k)."""

    matrices: Any

    def dense(self) -> DenseGrams:
        """Return itself.

        Returns
        -------
        DenseGrams
            The same object.
        """
        return self

    def __add__(self, other: Any) -> DenseGrams:
        return DenseGrams(self.matrices + other.dense().matrices)

    __radd__ = __add__


Gram = SharedGram | ListedGrams | DenseGrams
