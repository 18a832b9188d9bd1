"""Gram matrices of the row-wise least-squares problems: one for all rows, or one per row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array, numpy_view, on_gpu, scalar
from nonneg._compiled import core
from nonneg._threads import team_size
from nonneg.kernels.rows import gram_of
from nonneg.kernels.sparse_products import sampled_product

# Rounding leaves less than this fraction of the base in a difference of equal sums.
NOISE = 1e-12
# Entries of matrices that are written out at once, where every row has its own: 64 or 128 MB.
CHUNK_ENTRIES = 1 << 24


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
        return DenseGrams(self.dense_rows(0, self.indptr.shape[0] - 1))

    def dense_rows(self, start: int, stop: int) -> Any:
        """Return the matrices of some rows: (stop - start, k, k)."""
        k = self.other.shape[1]
        if on_gpu(self.other):
            from nonneg.kernels.row_grams_triton import listed_grams

            return listed_grams(self.base, self.sign, self.other, self.indptr, self.indices, start, stop)
        indptr = self.indptr[start : stop + 1]
        compiled = core() if is_float_array(self.other) else None
        if compiled is None:
            return self._dense_rows(indptr)
        out = np.empty((stop - start, k, k), dtype=self.other.dtype)
        base, sign, other, indptr, indices = replace(self, indptr=indptr).arrays(out.dtype)
        compiled.listed_grams(base, sign, other, indptr, indices, out, team_size(2.0 * k * k * len(indices)))
        return out

    def arrays(self, dtype: Any) -> tuple[Any, ...]:
        """Return what the core reads; indices are int32 where they fit."""
        index = np.int32 if max(len(self.indices), len(self.other)) < 2**31 else np.int64
        base = np.ascontiguousarray(self.base, dtype=np.float64)
        lists = (np.ascontiguousarray(array, dtype=index) for array in (self.indptr, self.indices))
        return base, float(self.sign), np.ascontiguousarray(self.other, dtype=dtype), *lists

    def _dense_rows(self, indptr: Any) -> Any:
        out = np.repeat(self.base[None].astype(np.float64), len(indptr) - 1, axis=0)
        other = self.other.astype(np.float64)
        for matrix, first, last in zip(out, indptr[:-1], indptr[1:], strict=True):
            listed = other[self.indices[first:last]]
            matrix += self.sign * (listed.T @ listed)
        # A difference of equal sums leaves rounding noise, which is no curvature.
        flat = np.diagonal(out, axis1=1, axis2=2) <= NOISE * np.diagonal(self.base)
        out[np.broadcast_to(flat[:, :, None], out.shape) | np.broadcast_to(flat[:, None, :], out.shape)] = 0.0
        return out.astype(self.other.dtype)

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


@dataclass(frozen=True)
class MaskedGrams:
    """Gram matrices of rows with missing entries, from a dense mask; written out for some rows at a time."""

    # Row i has the sum of other[j] other[j]' over the j with mask[i, j] = 1, plus `ridge` on the diagonal.

    mask: Any
    other: Any
    ridge: float = 0.0

    def dense(self) -> DenseGrams:
        """Return the matrices stored densely."""
        return DenseGrams(self.dense_rows(0, self.mask.shape[0]))

    def dense_rows(self, start: int, stop: int) -> Any:
        """Return the matrices of some rows: (stop - start, k, k)."""
        xp, (n_other, k) = array_namespace(self.other), self.other.shape
        step = max(1, CHUNK_ENTRIES // (k * k))
        total: Any = 0.0
        for first in range(0, n_other, step):
            last = min(first + step, n_other)
            some = self.other[first:last, :]
            pairs = xp.reshape(some[:, :, None] * some[:, None, :], (some.shape[0], k * k))
            seen = xp.astype(self.mask[start:stop, first:last], some.dtype)
            total = total + seen @ pairs
        total = xp.reshape(total, (stop - start, k, k))
        return _plus_ridge(total, self.ridge) if self.ridge else total

    def plus_ridge(self, ridge: float) -> MaskedGrams:
        """Add `ridge` to every diagonal."""
        return replace(self, ridge=self.ridge + ridge)

    def __add__(self, other: Any) -> DenseGrams:
        return self.dense() + other

    def quadratic_form(self, factor: Any) -> Any:
        """Return the sum of f G f' over the rows f of `factor`: the squares of the masked product."""
        xp, total = array_namespace(factor), 0.0
        step = max(1, CHUNK_ENTRIES // max(1, self.mask.shape[1]))
        for first in range(0, factor.shape[0], step):
            rows = slice(first, min(first + step, factor.shape[0]))
            model = factor[rows, :] @ self.other.T * xp.astype(self.mask[rows, :], factor.dtype)
            total = total + xp.sum(xp.astype(model, xp.float64) ** 2)
        if self.ridge:
            total = total + self.ridge * xp.sum(xp.astype(factor, xp.float64) ** 2)
        return scalar(total)


Gram = SharedGram | ListedGrams | DenseGrams | MaskedGrams


def gram_matrices(gram: Gram) -> Any:
    """Return the one matrix (k, k) that all rows share, or one per row (n_rows, k, k)."""
    return gram.matrix if isinstance(gram, SharedGram) else gram.dense().matrices


def quadratic_form(factor: Any, gram: Gram) -> Any:
    """Return the sum of f G f' over the rows f of `factor`.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The rows.
    gram : Gram
        The matrices G.

    Returns
    -------
    float or 0-d array
        The sum, accumulated in float64. On a GPU it stays there.
    """
    if isinstance(gram, MaskedGrams):
        return gram.quadratic_form(factor)
    xp = array_namespace(factor)
    if isinstance(gram, ListedGrams):
        # f (base + sign * sum o o') f' = f base f' + sign * sum (f o)^2
        sampled = sampled_product(gram.indptr, gram.indices, factor, gram.other)
        sampled = xp.astype(sampled, xp.float64, copy=False)
        return quadratic_form(factor, SharedGram(gram.base)) + gram.sign * scalar(sampled @ sampled)
    if isinstance(gram, SharedGram):
        values = xp.astype(gram_of(factor), xp.float64) * xp.astype(gram.matrix, xp.float64)
    else:
        values = factor[:, None, :] @ gram.dense().matrices @ factor[:, :, None]
    return scalar(xp.sum(values, dtype=xp.float64))


def numpy_gram(gram: Gram) -> Gram:
    """Return Gram matrices in NumPy that share the memory of CPU tensors."""
    if isinstance(gram, SharedGram):
        return SharedGram(numpy_view(gram.matrix))
    if isinstance(gram, ListedGrams):
        arrays = (numpy_view(array) for array in (gram.other, gram.indptr, gram.indices))
        return ListedGrams(numpy_view(gram.base), gram.sign, *arrays)
    return DenseGrams(numpy_view(gram.dense().matrices))
