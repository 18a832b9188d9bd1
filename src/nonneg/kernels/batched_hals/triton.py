"""Coordinate descent on batches of rows on an NVIDIA GPU: a program holds a few rows in registers."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_cuda_tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Rows of a program and its warps: with more of either, registers spill or wait (measured on an H200).
ROWS, WARPS = 16, 1
MOST_COMPONENTS = 256


if triton is not None:

    @triton.jit
    def _passes(
        factor,
        gram,
        cross,
        out,
        violations,
        shrinks,
        n_rows,
        k,
        max_passes,
        K: tl.constexpr,
        ROWS: tl.constexpr,
    ):
        batch = tl.program_id(1).to(tl.int64)
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        columns = tl.arange(0, K)
        live = rows < n_rows
        inside = live[:, None] & (columns < k)[None, :]
        at = (batch * n_rows + rows)[:, None] * k + columns[None, :]
        F = tl.load(factor + at, mask=inside, other=0.0)
        gram += batch * k * k
        cross += (batch * n_rows + rows) * k
        shrink = tl.load(shrinks)  # an argument would be rounded to float32
        zero = tl.sum(F * 0, axis=1)
        violation = zero
        limit = zero
        moving = tl.where(live, zero + 1, zero)
        number = 0
        going = 1
        while (number < max_passes) & (going > 0):
            change = zero
            for a in range(k):
                G = tl.load(gram + a * k + columns, mask=columns < k, other=0.0)
                curvature = tl.load(gram + a * k + a)
                c = tl.load(cross + a, mask=live, other=0.0)
                chosen = (columns == a)[None, :]
                old = tl.sum(tl.where(chosen, F, 0.0), axis=1)
                slope = tl.sum(F * G[None, :], axis=1) - c
                steep = curvature > 0
                length = tl.where(steep, 1.0 / tl.where(steep, curvature, curvature * 0 + 1), curvature * 0)
                counted = tl.where((old > 0) | (slope < 0), tl.abs(slope), zero)
                violation += tl.where((number == 0) & steep, counted, zero)
                new = old - slope * (length * moving)
                new = tl.where(new > 0, new, zero)
                change += (new - old) * (new - old)
                F = tl.where(chosen, new[:, None], F)
            limit = tl.where(number == 0, change * shrink, limit)
            moving = tl.where((moving > 0) & (change > limit), moving, zero)
            going = tl.max((moving > 0).to(tl.int32), axis=0)
            number += 1
        tl.store(out + at, F, mask=inside)
        tl.store(violations + batch * n_rows + rows, violation, mask=live)


def is_supported(factor: Any) -> bool:
    """Tell whether the factors are tensors on an NVIDIA GPU, and Triton is installed."""
    return triton is not None and is_cuda_tensor(factor) and factor.shape[2] <= MOST_COMPONENTS


def batched_hals(factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float) -> tuple[Any, Any]:
    """Update all rows; see `kernels.batched_hals`."""
    import torch

    batch, n_rows, k = factor.shape
    factor, gram, cross = factor.contiguous(), gram.contiguous(), cross.contiguous()
    out = torch.empty_like(factor)
    violations = torch.empty((batch, n_rows), dtype=factor.dtype, device=factor.device)
    shrinks = torch.full((1,), shrink * shrink, dtype=factor.dtype, device=factor.device)
    _passes[(triton.cdiv(n_rows, ROWS), batch)](
        factor, gram, cross, out, violations, shrinks, n_rows, k, max_passes,
        K=max(2, triton.next_power_of_2(k)), ROWS=ROWS, num_warps=WARPS,
    )  # fmt: skip
    return out, violations.sum(dim=1)
