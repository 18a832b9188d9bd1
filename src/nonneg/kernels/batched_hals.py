"""Coordinate descent on the rows of many factors at once, each factor with a Gram matrix of its own."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from nonneg._arrays import is_cuda_tensor
from nonneg._devices import warn_without_triton
from nonneg.kernels.hals import triton


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
    body = portable_batched_hals
    if is_cuda_tensor(factor):
        if triton.is_supported(factor[0]):
            body = triton_batched_hals
        else:
            warn_without_triton()
    return body(factor, gram, cross, max_passes, shrink)


def triton_batched_hals(
    factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows on an NVIDIA GPU: `kernels.hals`, a Gram matrix for each factor."""
    # Rows of a factor lie beside each other where it is the transpose of an array in order.
    rows, violations = triton.hals_batch(
        factor.mT.contiguous(), gram.contiguous(), cross.mT.contiguous(), max_passes, shrink
    )
    return rows.mT, violations.sum(dim=1)


def portable_batched_hals(
    factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows; see `kernels.batched_hals`."""
    xp = array_namespace(factor, gram, cross)
    factor = xp.asarray(factor, copy=True)
    diagonal = xp.linalg.diagonal(gram)
    flat = diagonal <= 0
    inverse = xp.where(flat, xp.zeros_like(diagonal), 1.0 / xp.where(flat, xp.ones_like(diagonal), diagonal))
    violation = xp.zeros_like(diagonal[:, 0])
    limit: Any = None
    active: Any = None
    for _ in range(max_passes):
        before = xp.asarray(factor, copy=True)
        for a in range(factor.shape[2]):
            old = factor[:, :, a]
            slope = (factor @ gram[:, :, a : a + 1])[:, :, 0] - cross[:, :, a]
            length = inverse[:, a][:, None]
            if active is None:
                counted = xp.where(old > 0, slope, xp.clip(slope, max=0.0))
                counted = xp.where(length > 0, xp.abs(counted), xp.zeros_like(counted))
                violation = violation + xp.sum(counted, axis=1)
            else:
                length = length * xp.astype(active, factor.dtype)
            factor[:, :, a] = xp.clip(old - slope * length, min=0.0)
        change = xp.sum((factor - before) ** 2, axis=2)
        if limit is None:
            limit = change * (shrink * shrink)
            active = change > limit
        else:
            active = xp.logical_and(active, change > limit)
    return factor, violation
