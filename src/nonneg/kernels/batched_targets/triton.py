"""Newton steps of batches of rows on an NVIDIA GPU: all of a row's work in registers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nonneg._arrays import is_cuda_tensor
from nonneg.kernels.newton_targets.array_api import (
    LARGEST_FALL,
    LEAST_DIAGONAL,
    PASSES,
    SHRINK,
    SMALL_PART,
)

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Numbers of a tile of rows: four such tiles are in the registers of one warp.
TILE, WARPS = 512, 1
MOST_COMPONENTS = 256


if triton is not None:

    @triton.jit
    def _steps(
        factor, gradient, diagonal, correlations, out, slopes, numbers, n_rows, k, passes,
        K: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        batch = tl.program_id(1).to(tl.int64)
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        columns = tl.arange(0, K)
        live = rows < n_rows
        inside = live[:, None] & (columns < k)[None, :]
        at = (batch * n_rows + rows)[:, None] * k + columns[None, :]
        correlations += batch * k * k
        # Numbers given as arguments would be rounded to float32.
        least = tl.load(numbers)
        shrink = tl.load(numbers + 1)
        fall = tl.load(numbers + 2)
        small = tl.load(numbers + 3)
        F = tl.load(factor + at, mask=inside, other=0.0)
        D = tl.load(diagonal + at, mask=inside, other=1.0)
        root = tl.sqrt(tl.where(least > D, least, D))
        g = tl.load(gradient + at, mask=inside, other=0.0) / root
        scaled = F * root
        moved = scaled * 0  # how far each entry has moved
        zero = tl.sum(moved, axis=1)
        limit = zero
        moving = tl.where(live, zero + 1, zero)
        number = 0
        going = 1
        while (number < passes) & (going > 0):
            change = zero
            for a in range(k):
                C = tl.load(correlations + a * k + columns, mask=columns < k, other=0.0)
                chosen = (columns == a)[None, :]
                slope = tl.sum(moved * C[None, :] + tl.where(chosen, g, 0.0), axis=1)
                old = tl.sum(tl.where(chosen, scaled + moved, 0.0), axis=1)
                new = old - slope * moving
                step = tl.where(new > 0, new, zero) - old
                change += step * step
                moved += tl.where(chosen, step[:, None], 0.0)
            limit = tl.where(number == 0, change * shrink, limit)
            moving = tl.where((moving > 0) & (change > limit), moving, zero)
            going = tl.max((moving > 0).to(tl.int32), axis=0)
            number += 1
        target = (scaled + moved) / root
        largest = tl.max(F, axis=1)
        lowest = tl.where((small * largest)[:, None] < F, F * fall, F * 0)
        direction = tl.where(target < lowest, lowest, target) - F
        tl.store(out + at, direction, mask=inside)
        tl.store(slopes + batch * n_rows + rows, tl.sum(g * root * direction, axis=1), mask=live)


def is_supported(factor: Any) -> bool:
    """Tell whether the factors are tensors on an NVIDIA GPU, and Triton is installed."""
    return triton is not None and is_cuda_tensor(factor) and factor.shape[2] <= MOST_COMPONENTS


@lru_cache(maxsize=16)
def _numbers(dtype: Any, device: Any) -> Any:
    # Kept, because a copy from the host cannot be part of a CUDA graph.
    import torch

    facts = [torch.finfo(dtype).smallest_normal * LEAST_DIAGONAL, SHRINK * SHRINK, LARGEST_FALL, SMALL_PART]
    return torch.tensor(facts, dtype=torch.float64).to(dtype).to(device)


def batched_targets(factor: Any, gradient: Any, diagonal: Any, correlations: Any) -> tuple[Any, Any]:
    """Return the steps of all rows; see `kernels.batched_targets`."""
    import torch

    batch, n_rows, k = factor.shape
    given = (part.contiguous() for part in (factor, gradient, diagonal, correlations))
    out = torch.empty((batch, n_rows, k), dtype=factor.dtype, device=factor.device)
    slopes = torch.empty((batch, n_rows), dtype=factor.dtype, device=factor.device)
    numbers = _numbers(factor.dtype, factor.device)
    width = max(2, triton.next_power_of_2(k))
    rows = max(1, TILE // width) if factor.dtype == torch.float32 else max(1, TILE // (2 * width))
    _steps[(triton.cdiv(n_rows, rows), batch)](
        *given, out, slopes, numbers, n_rows, k, PASSES, K=width, ROWS=rows, num_warps=WARPS
    )
    return out, slopes
