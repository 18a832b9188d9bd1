"""Coordinate descent on row-wise nonnegative least squares (HALS).

The pattern of every kernel package: `__init__` states the contract and asks each implementation, fastest
first, whether it `is_supported` for the given arrays. `array_api` is the fallback, and tests prove all of
them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._arrays import is_cpu_tensor, numpy_view, on_gpu, tensor_view
from nonneg._devices import warn_without_triton
from nonneg.kernels.grams import Gram, numpy_gram
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
    """Decrease 0.5 f G f' - c f' over every row f >= 0 of `factor`, one component at a time.

    Parameters
    ----------
    factor : array of shape (n_rows, k)
        The initial rows; not modified.
    gram : Gram
        The matrices G.
    cross : array of shape (n_rows, k)
        The rows c.
    order : sequence of int, optional
        The components to update, in this order; all by default.
    max_passes : int, default 1
        Maximum number of passes over the components.
    shrink : float, default 0.0
        A row stops when a pass changes it by at most this fraction of its first pass.

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
    if on_gpu(factor):
        from nonneg.kernels.hals import triton  # loading it takes a second, which only a GPU pays back

        if triton.is_supported(factor):
            return triton.hals_passes(factor, gram, cross, order, max_passes, shrink)
        warn_without_triton()
    if is_cpu_tensor(factor):
        options: dict[str, Any] = {"order": order, "max_passes": max_passes, "shrink": shrink}
        rows, violation = hals_passes(numpy_view(factor), numpy_gram(gram), numpy_view(cross), **options)
        return tensor_view(rows), violation
    from nonneg.kernels.hals import numba  # loaded with the first fit, not with the package

    turns = np.arange(factor.shape[1]) if order is None else np.asarray(order, dtype=np.int64)
    implementation = numba if numba.is_supported(factor, gram) else array_api
    return implementation.hals_passes(factor, gram, cross, turns, max_passes, shrink)
