"""Inner loops under one name each: compiled for NumPy arrays, portable for all others.

This module chooses; both versions obey the docstrings here and are proved equal by test. Numba is
imported when a compiled kernel is first needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from nonneg._threads import over_ranges
from nonneg.kernels.grams import DenseGrams, Gram, ListedGrams, SharedGram
from nonneg.kernels.host_views import is_host_tensor, shared, shared_gram, tensor
from nonneg.kernels.portable import block_pivoting as portable_pivoting
from nonneg.kernels.portable import hals as portable_hals

__all__ = [
    "DenseGrams",
    "Gram",
    "ListedGrams",
    "SharedGram",
    "block_pivoting",
    "hals_passes",
    "quadratic_form",
    "sampled_product",
    "sparse_times",
]

# Below this many entries of all systems together a batched LAPACK solve is quicker than loading the
# compiled kernel from its cache, let alone compiling it.
SMALL_PIVOTING = 2_000_000


def hals_passes(
    factor: Any,
    gram: Gram,
    cross: Any,
    *,
    order: Sequence[int] | None = None,
    max_passes: int = 1,
    shrink: float = 0.0,
) -> tuple[Any, Any]:
    """Reduce 0.5 f G f' - c f' over every row f >= 0 of `factor`, one component at a time.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The start; not changed.
    gram : Gram
        The matrices G.
    cross : array of shape (n_rows, k)
        The rows c.
    order : sequence of int, optional
        The components to update, in order; all by default. The others stay.
    max_passes : int
        At most so many passes over the components.
    shrink : float
        A row stops when a pass changed it by at most this share of its first pass.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The updated rows.
    violation : float or 0-d array
        Sum of the absolute projected slopes met in the first pass; 0 at an optimum.

    Notes
    -----
    A pass costs 2 n_rows k^2 operations. With zero curvature a component stays.

    References
    ----------
    .. [1] Cichocki & Phan (2009), IEICE Trans. Fundamentals E92-A(3), Algorithm 2.
    .. [2] Gillis & Glineur (2012), Neural Computation 24(4), Algorithm 2 (several passes a product).
    """
    if is_host_tensor(factor):
        options: dict[str, Any] = {"order": order, "max_passes": max_passes, "shrink": shrink}
        rows, violation = hals_passes(shared(factor), shared_gram(gram), shared(cross), **options)
        return tensor(rows), violation
    n_rows, k = factor.shape
    turns = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
    if not isinstance(factor, np.ndarray):
        matrix = gram.matrix if isinstance(gram, SharedGram) else gram.dense().matrices
        return portable_hals.hals_passes(factor, matrix, cross, turns, max_passes, shrink)
    if isinstance(gram, DenseGrams):
        return portable_hals.hals_passes(factor, gram.matrices, cross, turns, max_passes, shrink)
    out = np.array(factor, order="C", copy=True)
    cross = np.ascontiguousarray(cross)
    if isinstance(gram, ListedGrams):
        return _hals_listed(out, gram, cross, turns, max_passes, shrink)
    from nonneg.kernels.compiled.hals import BLOCK, UNROLL, hals_block

    padded = np.zeros((k, -(-k // UNROLL) * UNROLL), dtype=out.dtype)
    padded[:, :k] = gram.matrix
    violations = np.zeros(max(1, -(-n_rows // BLOCK)))

    def work(start: int, stop: int) -> None:
        row = np.empty(BLOCK, dtype=np.int64)
        hals_block(out, padded, cross, turns, max_passes, shrink, start, stop, row, violations)

    over_ranges(work, n_rows, grain=BLOCK, operations=2.0 * n_rows * k * k * min(max_passes, 3))
    return out, float(violations.sum())


def _hals_listed(
    out: Any, gram: ListedGrams, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, float]:
    from nonneg.kernels.compiled.row_grams import hals_own_block

    n_rows, k = out.shape
    violations = np.zeros(n_rows)

    def work(start: int, stop: int) -> None:
        hals_own_block(
            out,
            gram.base,
            0.0,
            gram.sign,
            gram.other,
            gram.indptr,
            gram.indices,
            cross,
            order,
            max_passes,
            shrink,
            start,
            stop,
            violations,
        )

    over_ranges(work, n_rows, grain=1, operations=2.0 * k * k * (n_rows + len(gram.indices)))
    return out, float(violations.sum())


def block_pivoting(factor: Any, gram: Gram, cross: Any, *, max_pivots: int | None = None) -> tuple[Any, Any]:
    """Minimise 0.5 f G f' - c f' over every row f >= 0 exactly, given a guess of the supports.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        Entries above zero are the first guess of the support; not changed.
    gram : Gram
        The matrices G.
    cross : array of shape (n_rows, k)
        The rows c.
    max_pivots : int, optional
        Rows that need more exchanges are flagged; 20 + 5 k by default.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The minimisers; flagged rows are as they came.
    unsolved : array of bool of shape (n_rows,)
        True where the equations were singular or the exchanges did not end.

    References
    ----------
    .. [1] Kim & Park (2011), SIAM J. Sci. Comput. 33(6), Algorithm 1.
    """
    if is_host_tensor(factor):
        rows, flags = block_pivoting(shared(factor), shared_gram(gram), shared(cross), max_pivots=max_pivots)
        return tensor(rows), tensor(flags)
    n_rows, k = factor.shape
    max_pivots = 20 + 5 * k if max_pivots is None else max_pivots
    numpy_rows = isinstance(factor, np.ndarray)
    if isinstance(gram, ListedGrams):
        gram = gram.dense()
    matrix = gram.matrix if isinstance(gram, SharedGram) else gram.matrices
    if not numpy_rows or n_rows * k * k <= SMALL_PIVOTING:
        return portable_pivoting.block_pivoting(factor, matrix, cross, max_pivots)
    from nonneg.kernels.compiled.block_pivoting import block_pivoting_rows

    own = matrix.ndim == 3
    out = np.array(factor, order="C", copy=True)
    systems = np.ascontiguousarray(matrix if own else matrix[None], dtype=np.float64)
    cross = np.ascontiguousarray(cross)
    unsolved = np.zeros(n_rows, dtype=bool)

    def work(start: int, stop: int) -> None:
        block_pivoting_rows(out, systems, cross, own, max_pivots, start, stop, unsolved)

    over_ranges(work, n_rows, grain=1, operations=float(n_rows) * k * k)
    return out, unsolved


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
        values = xp.astype(factor.T @ factor, xp.float64) * xp.astype(gram.matrix, xp.float64)
    else:
        values = factor[:, None, :] @ gram.matrices @ factor[:, :, None]
    return float(xp.sum(values, dtype=xp.float64))


def sparse_times(indptr: Any, indices: Any, data: Any, right: Any) -> Any:
    """Multiply a CSR matrix with a tall dense one.

    Parameters
    ----------
    indptr, indices, data : array
        The CSR matrix.
    right : array of shape (n_columns, k)
        The dense matrix.

    Returns
    -------
    array of shape (n_rows, k)
        The product.

    Notes
    -----
    Costs 2 nnz k operations; threads take ranges of rows.
    """
    from nonneg.kernels.compiled.sparse_products import sparse_times_block

    n_rows, k = len(indptr) - 1, right.shape[1]
    right = np.ascontiguousarray(right)
    out = np.empty((n_rows, k), dtype=right.dtype)

    def work(start: int, stop: int) -> None:
        sparse_times_block(indptr, indices, data, right, out, start, stop)

    over_ranges(work, n_rows, grain=1, operations=2.0 * len(data) * k)
    return out


def sampled_product(indptr: Any, indices: Any, left: Any, right: Any) -> Any:
    """Return the entries of left right' at the stored places of a CSR pattern.

    Parameters
    ----------
    indptr, indices : array
        The pattern.
    left : array of shape (n_rows, k)
        The left factor.
    right : array of shape (n_columns, k)
        The right factor.

    Returns
    -------
    array of shape (nnz,)
        The values, in the order of the pattern.
    """
    from nonneg.kernels.compiled.sparse_products import sampled_product_block

    n_rows, k = left.shape
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    out = np.empty(len(indices), dtype=left.dtype)

    def work(start: int, stop: int) -> None:
        sampled_product_block(indptr, indices, left, right, out, start, stop)

    over_ranges(work, n_rows, grain=1, operations=2.0 * len(indices) * k)
    return out
