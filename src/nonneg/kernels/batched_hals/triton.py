"""Coordinate descent on batches of rows on an NVIDIA GPU: `kernels.hals`, a Gram matrix for each factor."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_cuda_tensor
from nonneg.kernels.grams import DenseGrams
from nonneg.kernels.hals import triton


def is_supported(factor: Any) -> bool:
    """Tell whether the factors are tensors on an NVIDIA GPU, and Triton is installed."""
    return is_cuda_tensor(factor) and triton.is_supported(factor[0])


def batched_hals(factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float) -> tuple[Any, Any]:
    """Update all rows; see `kernels.batched_hals`."""
    batch, n_rows, k = factor.shape
    rows, violations = triton.hals_rows(
        factor.reshape(-1, k), DenseGrams(gram), cross.reshape(-1, k), max_passes=max_passes, shrink=shrink
    )
    return rows.reshape(batch, n_rows, k), violations.reshape(batch, n_rows).sum(dim=1)
