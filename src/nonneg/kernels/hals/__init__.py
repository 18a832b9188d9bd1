"""Coordinate descent on the rows' nonnegative least-squares problems (HALS)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, numpy_view, tensor_view
from nonneg._threads import parallel_for
from nonneg.kernels.grams import DenseGrams, Gram, ListedGrams, SharedGram, numpy_gram
from nonneg.kernels.hals import array_api


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
    if is_cpu_tensor(factor):
        options: dict[str, Any] = {"order": order, "max_passes": max_passes, "shrink": shrink}
        rows, violation = hals_passes(numpy_view(factor), numpy_gram(gram), numpy_view(cross), **options)
        return tensor_view(rows), violation
    n_rows, k = factor.shape
    turns = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
    if not isinstance(factor, np.ndarray):
        matrix = gram.matrix if isinstance(gram, SharedGram) else gram.dense().matrices
        return array_api.hals_passes(factor, matrix, cross, turns, max_passes, shrink)
    if isinstance(gram, DenseGrams):
        return array_api.hals_passes(factor, gram.matrices, cross, turns, max_passes, shrink)
    out = np.array(factor, order="C", copy=True)
    cross = np.ascontiguousarray(cross)
    if isinstance(gram, ListedGrams):
        return _hals_listed(out, gram, cross, turns, max_passes, shrink)
    from nonneg.kernels.hals.numba import BLOCK, UNROLL, hals_block

    padded = np.zeros((k, -(-k // UNROLL) * UNROLL), dtype=out.dtype)
    padded[:, :k] = gram.matrix
    violations = np.zeros(max(1, -(-n_rows // BLOCK)))

    def work(start: int, stop: int) -> None:
        row = np.empty(BLOCK, dtype=np.int64)
        hals_block(out, padded, cross, turns, max_passes, shrink, start, stop, row, violations)

    parallel_for(work, n_rows, chunk_size=BLOCK, operations=2.0 * n_rows * k * k * min(max_passes, 3))
    return out, float(violations.sum())


def _hals_listed(
    out: Any, gram: ListedGrams, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, float]:
    from nonneg.kernels.row_grams import hals_own_block

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

    parallel_for(work, n_rows, chunk_size=1, operations=2.0 * k * k * (n_rows + len(gram.indices)))
    return out, float(violations.sum())
