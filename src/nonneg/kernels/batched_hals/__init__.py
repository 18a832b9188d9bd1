"""Coordinate descent on the rows of many factors at once, each factor with a Gram matrix of its own."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_cuda_tensor
from nonneg._devices import warn_without_triton
from nonneg.kernels.batched_hals import array_api, triton


def batched_hals(
    factor: Any, gram: Any, cross: Any, *, max_passes: int = 1, shrink: float = 0.0
) -> tuple[Any, Any]:
    """Decrease 0.5 f G f' - c f' over every row f >= 0, as `kernels.hals.hals_passes` does for one factor.

    Parameters
    ----------
    factor : array of shape (batch, n_rows, k)
        The initial rows; not modified.
    gram : array of shape (batch, k, k)
        The matrices G.
    cross : array of shape (batch, n_rows, k)
        The rows c.
    max_passes : int, default 1
        Maximum number of passes over the components.
    shrink : float, default 0.0
        A row stops when a pass changes it by at most this fraction of its first pass.

    Returns
    -------
    factor : array of shape (batch, n_rows, k)
        The updated rows.
    violation : array of shape (batch,)
        Sums of the absolute projected gradients in the first pass.
    """
    supported = triton.is_supported(factor)
    if is_cuda_tensor(factor) and not supported:
        warn_without_triton()
    implementation = triton if supported else array_api
    return implementation.batched_hals(factor, gram, cross, max_passes, shrink)
