"""Gram matrices of the row-wise least-squares problems: one for all rows, or one per row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import numpy_view
from nonneg.kernels.rows import gram_of
from nonneg.kernels.sparse_products import sampled_product


def _plus_ridge(matrices: Any, ridge: float) -> Any:
    xp = array_namespace(matrices)
    k = matrices.shape[-1]
    return matrices + ridge * xp.eye(k, dtype=matrices.dtype, device=matrices.device)


@dataclass(frozen=True)
class SharedGram:
    """One Gram matrix for all rows."""

    matrix: Any

    def plus_ridge(self, ridge: float) -> SharedGram:
        """Add `ridge` to the diagonal."""
        return SharedGram(_plus_ridge(self.matrix, ridge)) if ridge else self

    def __add__(self, other: Any) -> SharedGram:
        return SharedGram(self.matrix + other.matrix)


@dataclass(frozen=True)
class ListedGrams:
    """Gram matrices of rows with missing entries, as lists of entries to add or to leave out."""

    # Row i has `base + sign * sum of other[j] other[j]'` over its listed j. Holds no array of the size rows x
    # k x k. `base` is in float64 whatever the data.

    base: Any
    sign: float
    other: Any
    indptr: Any
    indices: Any

    def dense(self) -> DenseGrams:
        """Return the matrices stored densely."""
        from nonneg.kernels.row_grams import grams_block

        n_rows, k = len(self.indptr) - 1, self.other.shape[1]
        out = np.empty((n_rows, k, k), dtype=self.other.dtype)
        grams_block(self.base, self.sign, self.other, self.indptr, self.indices, out, 0, n_rows)
        return DenseGrams(out)

    def plus_ridge(self, ridge: float) -> ListedGrams:
        """Add `ridge` to every diagonal."""
        return replace(self, base=_plus_ridge(self.base, ridge)) if ridge else self

    def __add__(self, other: Any) -> DenseGrams:
        return self.dense() + other


@dataclass(frozen=True)
class DenseGrams:
    """One Gram matrix per row, stored densely: (n_rows, k, k)."""

    matrices: Any

    def dense(self) -> DenseGrams:
        """Return itself."""
        return self

    def plus_ridge(self, ridge: float) -> DenseGrams:
        """Add `ridge` to every diagonal."""
        return DenseGrams(_plus_ridge(self.matrices, ridge)) if ridge else self

    def __add__(self, other: Any) -> DenseGrams:
        return DenseGrams(self.matrices + other.dense().matrices)


Gram = SharedGram | ListedGrams | DenseGrams


def gram_matrices(gram: Gram) -> Any:
    """Return the one matrix (k, k) that all rows share, or one per row (n_rows, k, k)."""
    return gram.matrix if isinstance(gram, SharedGram) else gram.dense().matrices


def quadratic_form(factor: Any, gram: Gram) -> float:
    """Return the sum of f G f' over the rows f of `factor`.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The rows.
    gram : Gram
        The matrices G.

    Returns
    -------
    float
        The sum, accumulated in float64.
    """
    if isinstance(gram, ListedGrams):
        # f (base + sign * sum o o') f' = f base f' + sign * sum (f o)^2
        sampled = sampled_product(gram.indptr, gram.indices, factor, gram.other).astype(
            np.float64, copy=False
        )
        listed = float(sampled @ sampled)
        return quadratic_form(factor, SharedGram(gram.base)) + gram.sign * listed
    xp = array_namespace(factor)
    if isinstance(gram, SharedGram):
        values = xp.astype(gram_of(factor), xp.float64) * xp.astype(gram.matrix, xp.float64)
    else:
        values = factor[:, None, :] @ gram.matrices @ factor[:, :, None]
    return float(xp.sum(values, dtype=xp.float64))


def numpy_gram(gram: Gram) -> Gram:
    """Return Gram matrices in NumPy that share the memory of CPU tensors."""
    if isinstance(gram, SharedGram):
        return SharedGram(numpy_view(gram.matrix))
    return DenseGrams(numpy_view(gram.dense().matrices))
