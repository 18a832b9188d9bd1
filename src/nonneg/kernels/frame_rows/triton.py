"""Sums over the rows of a frame on an NVIDIA GPU, in one kernel."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_cuda_tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Sums that a program makes: four for each thread of its four warps.
SUMS = 512


if triton is not None:

    @triton.jit
    def _add_squares(rows, sums, n_sums, n_rows, BLOCK: tl.constexpr):
        restart = tl.program_id(0).to(tl.int64)
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n_sums
        found = tl.zeros([BLOCK], tl.float64)
        for r in range(n_rows):
            x = tl.load(rows + (restart * n_rows + r) * n_sums + at, mask=inside, other=0.0)
            found += x * x
        tl.store(sums + restart * n_sums + at, found, mask=inside)


def is_supported(X: Any) -> bool:
    """Tell whether X is a float64 tensor on an NVIDIA GPU, and Triton is installed."""
    return triton is not None and is_cuda_tensor(X) and X.element_size() == 8


def sums_of_squares(X: Any, n_frames: int) -> Any:
    """Return the sums of squares over virtual realizations."""
    import torch

    X = X.contiguous()
    batch, n_rows, m = X.shape
    sums = torch.empty((batch, n_frames, m), dtype=X.dtype, device=X.device)
    n_sums = n_frames * m
    grid = (batch, -(-n_sums // SUMS))
    _add_squares[grid](X, sums, n_sums, n_rows // n_frames, BLOCK=SUMS, num_warps=4)
    return sums
