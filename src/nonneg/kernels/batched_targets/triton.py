"""Newton steps of batches of rows on an NVIDIA GPU: all of a row's work in registers.

Arrays are read component by component: the transposes of arrays (batch, k, n_rows) in order are not copied.
"""

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

MOST_COMPONENTS = 256
# Numbers of a tile of rows, of which a warp holds a few. With 100 x 2700 rows, k = 20, 4 rows of a warp take
# 0.65 ms on an H200 in float32 and 1.13 in float64, 8 rows 0.66 and 1.50, 16 rows 0.73 and 1.59.
TILE = 128


if triton is not None:

    @triton.jit(do_not_specialize=("n_rows", "k", "passes"))
    def _steps(
        factor, gradient, diagonal, others, out, slopes, numbers, n_rows, k, passes,
        K: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        batch = tl.program_id(1).to(tl.int64)
        lane = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        live = lane < n_rows
        # A range that ends early is no contiguous one for the compiler: a thread gets no neighboring rows.
        row = tl.minimum(lane, n_rows - 1)
        c = tl.arange(0, K)
        inside = live[None, :] & (c < k)[:, None]
        at = (batch * k + c)[:, None] * n_rows + row[None, :]
        others += batch * K * K
        # Numbers given as arguments would be rounded to float32.
        least = tl.load(numbers)
        shrink = tl.load(numbers + 1)
        fall = tl.load(numbers + 2)
        small = tl.load(numbers + 3)
        F = tl.load(factor + at, mask=inside, other=0.0)
        D = tl.load(diagonal + at, mask=inside, other=1.0)
        root = tl.sqrt(tl.where(least > D, least, D))
        g = tl.load(gradient + at, mask=inside, other=0.0) / root
        lowest = -F * root
        moved = lowest * 0  # how far each entry has moved
        zero = tl.sum(moved, axis=0)
        limit = zero
        moving = tl.where(live, zero + 1, zero)
        number = 0
        going = 1
        while (number < passes) & (going > 0):
            before = moved
            for a in range(k):
                # The slope without the component itself: registers cannot be indexed.
                slope = tl.sum(moved * tl.load(others + a * K + c)[:, None], axis=0)
                new = -(g + slope[None, :])
                moved = tl.where((c == a)[:, None], tl.where(new > lowest, new, lowest), moved)
            moved = tl.where((moving > 0)[None, :], moved, before)
            change = tl.sum((moved - before) * (moved - before), axis=0)
            limit = tl.where(number == 0, change * shrink, limit)
            moving = tl.where((moving > 0) & (change > limit), moving, zero)
            going = tl.max((moving > 0).to(tl.int32), axis=0)
            number += 1
        target = (moved - lowest) / root
        largest = tl.max(F, axis=0)
        bound = tl.where((small * largest)[None, :] < F, F * fall, F * 0)
        direction = tl.where(target < bound, bound, target) - F
        tl.store(out + at, direction, mask=inside)
        tl.store(slopes + batch * n_rows + row, tl.sum(g * root * direction, axis=0), mask=live)


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
    given = [part.mT.contiguous() for part in (factor, gradient, diagonal)]
    out = torch.empty((batch, k, n_rows), dtype=factor.dtype, device=factor.device)
    slopes = torch.empty((batch, n_rows), dtype=factor.dtype, device=factor.device)
    width = max(4, triton.next_power_of_2(k))
    others = correlations - torch.diag_embed(correlations.diagonal(dim1=1, dim2=2))
    others = torch.nn.functional.pad(others, (0, width - k, 0, width - k))
    rows = max(1, min(32, TILE // width))
    _steps[(triton.cdiv(n_rows, rows), batch)](
        *given, others, out, slopes, _numbers(factor.dtype, factor.device), n_rows, k, PASSES,
        K=width, ROWS=rows, num_warps=1,
    )  # fmt: skip
    return out.mT, slopes
