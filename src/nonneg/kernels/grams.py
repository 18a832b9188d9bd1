"""Gram matrices of the row-wise least-squares problems: one for all rows, or one per row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float_array, scalar, to_float64
from nonneg._compiled import core
from nonneg._lazy import cached_property
from nonneg._threads import team_size
from nonneg._typing import FloatArray, IntArray, SparseMatrix
from nonneg.kernels.nonzeros import row_hessians
from nonneg.kernels.rows import gram_of, ranges
from nonneg.kernels.sparse_products import sampled_product

# Rounding leaves less than this fraction of the base in a difference of equal sums.
NOISE = 1e-12
# Entries of matrices that are written out at once, where every row has its own: 64 or 128 MB.
CHUNK_ENTRIES = 1 << 24


def _plus_ridge(matrices: Any, ridge: Any) -> Any:
    xp = array_namespace(matrices)
    k = matrices.shape[-1]
    return matrices + ridge * xp.eye(k, dtype=matrices.dtype, device=matrices.device)


@dataclass(frozen=True)
class SharedGram:
    """One Gram matrix for all rows."""

    matrix: Any

    def plus_ridge(self, ridge: Any) -> SharedGram:
        """Add `ridge`, a number or one for each component, to the diagonal."""
        nothing = isinstance(ridge, float) and ridge == 0
        return self if nothing else SharedGram(_plus_ridge(self.matrix, ridge))

    def __add__(self, other: Any) -> SharedGram:
        return SharedGram(self.matrix + other.matrix)


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian:
    """A smoothness penalty along a graph, as `nonneg.laplacian` returns it; it never changes."""

    edges: SparseMatrix  # B of L = diag(degrees) - B
    strength: float
    normalized: bool

    def __repr__(self) -> str:
        graph = f"<{self.edges.shape[0]} nodes, {self.edges.nnz // 2} edges>"
        return f"laplacian({graph}, strength={self.strength:g}, normalized={self.normalized})"

    @cached_property
    def degrees(self) -> FloatArray:
        """The diagonal of L."""
        sums = to_float64(self.edges.sum(axis=1))
        return (sums > 0).astype(np.float64) if self.normalized else sums

    @cached_property
    def colors(self) -> list[tuple[IntArray, SparseMatrix]]:
        """Nodes without edges among them, and their edges: a greedy coloring."""
        starts, others = self.edges.indptr.tolist(), self.edges.indices.tolist()
        colors: list[int] = []
        for node in range(len(starts) - 1):
            taken = {colors[other] for other in others[starts[node] : starts[node + 1]] if other < node}
            colors.append(next(color for color in range(len(taken) + 1) if color not in taken))
        classes = [np.flatnonzero(np.equal(colors, color)) for color in range(max(colors) + 1)]
        return [(nodes, self.edges[nodes]) for nodes in classes]

    def of_columns(self, factor: Any) -> FloatArray:
        """Return f' L f of every column f of a factor: the sum of B_ij (f_i - f_j)^2 over its edges."""
        factor = to_float64(factor)
        squares = self.degrees @ (factor * factor) - np.sum(factor * (self.edges @ factor), axis=0)
        return np.maximum(squares, 0.0)


@dataclass(frozen=True)
class SmoothGram:
    """One Gram matrix for all rows of F, and a graph along which the columns of F are smooth."""

    matrix: Any  # G of the form tr F G F' + sum of weights[a] f_a' L f_a over the columns f_a
    graph: Laplacian
    weights: Any

    @property
    def curvature(self) -> Any:
        """The second derivatives by the entries of F."""
        return self.matrix.diagonal() + np.outer(self.graph.degrees, self.weights).astype(self.matrix.dtype)

    def times(self, factor: Any) -> Any:
        """Return the derivatives of half the form."""
        pull = self.graph.degrees[:, None] * factor - self.graph.edges @ factor
        return factor @ self.matrix + (pull * self.weights).astype(factor.dtype)


@dataclass(frozen=True)
class ListedGrams:
    """Gram matrices of rows in which most entries have the same weight, and the others are listed."""

    # Row i has `base + sum of values[p] other[j] other[j]'` over its listed j. Holds no array of the size
    # rows x k x k. `base` is in float64 whatever the data.

    base: Any
    values: Any  # one per listed entry, or a number for all of them
    other: Any
    indptr: Any
    indices: Any

    def dense(self) -> DenseGrams:
        """Return the matrices stored densely."""
        return DenseGrams(self.dense_rows(0, self.indptr.shape[0] - 1))

    def dense_rows(self, start: int, stop: int) -> Any:
        """Return the matrices of some rows: (stop - start, k, k)."""
        compiled = core() if is_float_array(self.other) else None
        if compiled is None:
            return self._dense_rows(start, stop)
        k = self.other.shape[1]
        out = np.empty((stop - start, k, k), dtype=self.other.dtype)
        arrays = replace(self, indptr=self.indptr[start : stop + 1]).arrays(out.dtype)
        compiled.listed_grams(*arrays, out, team_size(2.0 * k * k * len(self.indices)))
        return out

    def arrays(self, dtype: Any) -> tuple[Any, ...]:
        """Return what the core reads; indices are int32 where they fit."""
        index = np.int32 if max(len(self.indices), len(self.other)) < 2**31 else np.int64
        base = np.ascontiguousarray(self.base, dtype=np.float64)[None]
        lists = (np.ascontiguousarray(array, dtype=index) for array in (self.indptr, self.indices))
        values = np.ascontiguousarray(np.broadcast_to(self.values, len(self.indices)), dtype=np.float64)
        return base, values, np.ascontiguousarray(self.other, dtype=dtype), *lists

    def _dense_rows(self, start: int, stop: int) -> Any:
        xp = array_namespace(self.other)
        indptr = self.indptr[start : stop + 1]
        span = slice(int(indptr[0]), int(indptr[-1]))
        shared = isinstance(self.values, (int, float))
        values = None if shared else xp.astype(self.values[span], xp.float64)
        wide, base = (xp.astype(array, xp.float64) for array in (self.other, self.base))
        sums = row_hessians(indptr - indptr[0], self.indices[span], values, wide)
        out = base[None, :, :] + (self.values * sums if shared else sums)
        # A difference of equal sums leaves rounding noise, which is no curvature.
        eye = xp.eye(base.shape[0], dtype=base.dtype, device=base.device)
        bent = xp.sum(out * eye, axis=2) > NOISE * xp.sum(base * eye, axis=1)
        out = xp.where(bent[:, :, None] & bent[:, None, :], out, xp.zeros_like(out))
        return xp.astype(out, self.other.dtype)

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

    def dense_rows(self, start: int, stop: int) -> Any:
        """Return the matrices of some rows: (stop - start, k, k)."""
        return self.matrices[start:stop, :, :]

    def plus_ridge(self, ridge: float) -> DenseGrams:
        """Add `ridge` to every diagonal."""
        return DenseGrams(_plus_ridge(self.matrices, ridge)) if ridge else self

    def __add__(self, other: Any) -> DenseGrams:
        return DenseGrams(self.matrices + other.dense().matrices)


@dataclass(frozen=True)
class WeightedGrams:
    """Gram matrices of rows with a weight for every entry; written out for some rows at a time."""

    # Row i has the sum of weights[i, j] other[j] other[j]' over j, plus `ridge` on the diagonal.

    weights: Any
    other: Any
    ridge: float = 0.0
    # The products of pairs where they are few, by type of array: a tensor and its view in NumPy share them.
    pairs: dict[type, Any] = field(default_factory=dict, repr=False, compare=False)

    def dense(self) -> DenseGrams:
        """Return the matrices stored densely."""
        return DenseGrams(self.dense_rows(0, self.weights.shape[0]))

    def dense_rows(self, start: int, stop: int) -> Any:
        """Return the matrices of some rows: (stop - start, k, k)."""
        xp, (n_other, k) = array_namespace(self.other), self.other.shape
        step = max(1, CHUNK_ENTRIES // (k * k))
        total: Any = 0.0
        for first in range(0, n_other, step):
            last = min(first + step, n_other)
            weights = xp.astype(self.weights[start:stop, first:last], self.other.dtype, copy=False)
            if step < n_other:
                pairs = self._pairs(first, last)
            elif (pairs := self.pairs.get(type(self.other))) is None:
                pairs = self.pairs[type(self.other)] = self._pairs(first, last)
            total = total + weights @ pairs
        if isinstance(total, np.ndarray):
            total = np.take(total, _places_of_pairs(k), axis=1)  # by rows; an index would give columns
        total = xp.reshape(total, (stop - start, k, k))
        return _plus_ridge(total, self.ridge) if self.ridge else total

    def _pairs(self, first: int, last: int) -> Any:
        """Return the products of all pairs of components, for some entries."""
        part = self.other[first:last, :]
        if isinstance(part, np.ndarray):
            # Half of them: the matrices are symmetric. Elsewhere indices would be copied to the device.
            one, two = np.triu_indices(part.shape[1])
            return np.take(part, one, axis=1) * np.take(part, two, axis=1)
        xp = array_namespace(part)
        return xp.reshape(part[:, :, None] * part[:, None, :], (part.shape[0], -1))

    def plus_ridge(self, ridge: float) -> WeightedGrams:
        """Add `ridge` to every diagonal."""
        return replace(self, ridge=self.ridge + ridge) if ridge else self

    def __add__(self, other: Any) -> DenseGrams:
        return self.dense() + other

    def quadratic_form(self, factor: Any) -> Any:
        """Return the sum of f G f' over the rows f of `factor`: the weighted squares of the product."""
        xp, total = array_namespace(factor), 0.0
        entries = 1 << 18 if isinstance(factor, np.ndarray) else CHUNK_ENTRIES
        step = max(1, entries // max(1, self.weights.shape[1]))
        for rows in ranges(0, factor.shape[0], step):
            squares = xp.astype(factor[rows, :] @ self.other.T, xp.float64, copy=False) ** 2
            total = total + xp.sum(squares * xp.astype(self.weights[rows, :], xp.float64, copy=False))
        if self.ridge:
            total = total + self.ridge * xp.sum(xp.astype(factor, xp.float64) ** 2)
        return scalar(total)


@lru_cache(maxsize=8)
def _places_of_pairs(k: int) -> Any:
    """Return where the entries of a symmetric matrix are in the list of its upper half."""
    places = np.empty((k, k), dtype=np.intp)
    upper = np.triu_indices(k)
    places[upper] = np.arange(len(upper[0]))
    places.T[upper] = places[upper]
    return places.ravel()


Gram = SharedGram | ListedGrams | DenseGrams | WeightedGrams


def gram_matrices(gram: Gram) -> Any:
    """Return the one matrix (k, k) that all rows share, or one per row (n_rows, k, k)."""
    return gram.matrix if isinstance(gram, SharedGram) else gram.dense().matrices


def quadratic_form(factor: Any, gram: Gram | SmoothGram) -> Any:
    """Return the sum of f G f' over the rows f of `factor`.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The rows.
    gram : Gram or SmoothGram
        The matrices G; a graph adds its own form.

    Returns
    -------
    float or 0-d array
        The sum, accumulated in float64. On a GPU it stays there.
    """
    if isinstance(gram, WeightedGrams):
        return gram.quadratic_form(factor)
    xp = array_namespace(factor)
    if isinstance(gram, SmoothGram):
        smooth = float(gram.weights @ gram.graph.of_columns(factor))
        return quadratic_form(factor, SharedGram(gram.matrix)) + smooth
    if isinstance(gram, ListedGrams):
        # f (base + sum v o o') f' = f base f' + sum v (f o)^2
        sampled = sampled_product(gram.indptr, gram.indices, factor, gram.other)
        sampled = xp.astype(sampled, xp.float64, copy=False)
        return quadratic_form(factor, SharedGram(gram.base)) + scalar(xp.sum(sampled * sampled * gram.values))
    if isinstance(gram, SharedGram):
        values = xp.astype(gram_of(factor), xp.float64) * xp.astype(gram.matrix, xp.float64)
    else:
        values = factor[:, None, :] @ gram.dense().matrices @ factor[:, :, None]
    return scalar(xp.sum(values, dtype=xp.float64))
