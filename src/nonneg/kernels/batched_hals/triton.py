"""Coordinate descent on batches of rows on an NVIDIA GPU: `kernels.hals`, a Gram matrix for each factor."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_cuda_tensor
from nonneg.kernels.hals import triton


def is_supported(factor: Any) -> bool:
    """Tell whether the factors are tensors on an NVIDIA GPU, and Triton is installed."""
    return is_cuda_tensor(factor) and triton.is_supported(factor[0])


def batched_hals(factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float) -> tuple[Any, Any]:
    """Update all rows; see `kernels.batched_hals`."""
    # Rows of a factor lie beside each other where it is the transpose of an array in order.
    rows, violations = triton.hals_batch(
        factor.mT.contiguous(), gram.contiguous(), cross.mT.contiguous(), max_passes, shrink
    )
    return rows.mT, violations.sum(dim=1)
