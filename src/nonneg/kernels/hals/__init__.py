"""Coordinate descent on row-wise nonnegative least squares (HALS).

The pattern of every kernel: the door states the contract, `array_api` is the portable body, and the compiled
core takes NumPy arrays where it was built. Tests prove them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from nonneg._arrays import is_cuda_tensor, is_float_array, on_gpu, serves_tensors
from nonneg._compiled import core
from nonneg._threads import BLAS, is_held, single_threaded_blas, team_size
from nonneg.kernels.grams import DenseGrams, Gram, ListedGrams, SmoothGram, WeightedGrams
from nonneg.kernels.hals import array_api

# Rows of a block of the core.
BLOCK = 128


@serves_tensors
def hals_passes(
    factor: Any,
    gram: Gram | SmoothGram,
    cross: Any,
    *,
    order: Sequence[int] | None = None,
    max_passes: int = 1,
    shrink: float = 0.0,
) -> tuple[Any, Any]:
    """Decrease 0.5 f G f' - c f' over every row f >= 0 of `factor`, one component at a time.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The initial rows; not modified.
    gram : Gram or SmoothGram
        The matrices G, and a graph that couples the rows.
    cross : array of shape (n_rows, k)
        The rows c.
    order : sequence of int, optional
        The components to update, in this order; all by default.
    max_passes : int, default 1
        Maximum number of passes over the components.
    shrink : float, default 0.0
        A row stops when a pass changes it by at most this fraction of its first pass; coupled ones together.

    Returns
    -------
    factor : array of shape (n_rows, k)
        The updated rows.
    violation : float or 0-d array
        Sum of the absolute projected gradients in the first pass; 0 at an optimum. On a GPU it stays there.

    Notes
    -----
    A pass costs 2 n_rows k^2 operations. A component with zero curvature is not updated.

    References
    ----------
    .. [1] Cichocki & Phan (2009), IEICE Trans. Fundamentals E92-A(3), Algorithm 2.
    .. [2] Gillis & Glineur (2012), Neural Computation 24(4), Algorithm 2 (several passes per product).
    """
    turns = np.arange(factor.shape[1]) if order is None else np.asarray(order, dtype=np.int64)
    options = (turns, max_passes, shrink)
    if isinstance(gram, SmoothGram):
        return array_api.smooth_passes(factor, gram, cross, *options)
    if on_gpu(factor):
        from nonneg.kernels.hals import triton  # loading it takes a second, which only a GPU pays back

        if triton.is_supported(factor):
            return triton.hals_passes(factor, gram, cross, order, max_passes, shrink)
    compiled = core() if is_float_array(factor) else None
    if compiled is None:
        return array_api.hals_passes(factor, gram, cross, *options)
    n_rows, k = factor.shape
    cross = np.ascontiguousarray(cross, dtype=factor.dtype)
    out = np.array(factor, order="C")
    if isinstance(gram, WeightedGrams):
        weights, other = (np.asarray(array, dtype=out.dtype) for array in (gram.weights, gram.other))
        if not (weights.flags.c_contiguous or weights.flags.f_contiguous):
            weights = np.ascontiguousarray(weights)
        grams = weights, np.ascontiguousarray(other), gram.ridge
        threads = team_size(2.0 * k * k * n_rows * (1 + 0.5 * BLAS * len(other)))
        with nullcontext() if is_held() else single_threaded_blas():
            return out, compiled.hals_weighted(out, *grams, cross, *options, threads)
    if isinstance(gram, DenseGrams):
        own = np.ascontiguousarray(gram.matrices, dtype=np.float64)
        nothing = np.zeros((1, k), dtype=out.dtype), np.zeros(n_rows + 1, np.int32), np.zeros(0, np.int32)
        threads = team_size(2.0 * k * k * n_rows)
        return out, compiled.hals_listed(out, own, np.zeros(0), *nothing, cross, *options, threads)
    if isinstance(gram, ListedGrams):
        threads = team_size(2.0 * k * k * (n_rows + len(gram.indices)))
        return out, compiled.hals_listed(out, *gram.arrays(out.dtype), cross, *options, threads)
    matrix = np.ascontiguousarray(gram.matrix, dtype=out.dtype)
    # Rows stop on their own, most of them after about three passes.
    threads = team_size(2.0 * n_rows * k * k * min(max_passes, 3))
    # Blocks that keep every thread busy; results of rows do not depend on them.
    block = min(BLOCK, max(16, -(-n_rows // (8 * threads)) * 8)) if threads > 1 else BLOCK
    return out, compiled.hals_passes(out, out, matrix, cross, *options, block, threads)


def batched_hals(
    factor: Any, gram: Any, cross: Any, *, max_passes: int = 1, shrink: float = 0.0
) -> tuple[Any, Any]:
    """Do the same for the rows of many factors at once, each factor with a Gram matrix of its own.

    Parameters
    ----------
    factor : array of shape (batch, n_rows, k)
        The initial rows; not modified.
    gram : array of shape (batch, k, k)
        The matrices G.
    cross : array of shape (batch, n_rows, k)
        The rows c.
    max_passes, shrink : int and float, default 1 and 0.0
        As for `hals_passes`.

    Returns
    -------
    factor : array of shape (batch, n_rows, k)
        The updated rows.
    violation : array of shape (batch,)
        Sums of the absolute projected gradients in the first pass.
    """
    if is_cuda_tensor(factor):
        from nonneg.kernels.hals import triton

        if triton.is_supported(factor[0]):
            return triton.batched_hals(factor, gram, cross, max_passes, shrink)
    return array_api.batched_hals(factor, gram, cross, range(factor.shape[2]), max_passes, shrink)
