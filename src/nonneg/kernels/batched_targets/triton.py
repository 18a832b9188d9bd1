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
# Numbers of a tile of rows, 32 at most, that the registers of a warp hold. With 100 x 2700 rows in float64,
# k = 20, tiles of 32 rows take 0.48 ms on an H200, 16 rows 0.55, 8 rows 0.79; with k = 50, 2.3, 2.9 and 3.3.
TILE = 2048


if triton is not None:

    @triton.jit(do_not_specialize=("size", "n_rows", "k", "passes"))
    def _steps(
        factor, gradient, diagonal, others, scaled, lows, moves, out, slopes, numbers, size, n_rows, k,
        passes, K: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        batch = tl.program_id(1).to(tl.int64)
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        live = row < n_rows
        first = batch * k * n_rows + row
        c = tl.arange(0, K)
        others += batch * K * K
        # Numbers given as arguments would be rounded to float32.
        least = tl.load(numbers)
        shrink = tl.load(numbers + 1)
        fall = tl.load(numbers + 2)
        small = tl.load(numbers + 3)
        zero = tl.zeros((ROWS,), factor.dtype.element_ty)
        largest = zero
        at = first
        for _ in range(k):
            F = tl.load(factor + at, mask=live, other=0.0)
            D = tl.load(diagonal + at, mask=live, other=1.0)
            root = tl.sqrt(tl.where(least > D, least, D))
            tl.store(scaled + at, tl.load(gradient + at, mask=live, other=0.0) / root, mask=live)
            tl.store(lows + at, -F * root, mask=live)
            largest = tl.where(largest < F, F, largest)
            at += n_rows
        # How far each entry has moved: in registers for the sums, and in memory for one entry after another,
        # where a pass reads what the last one wrote elsewhere: threads that share a row read it all.
        moved = tl.zeros((K, ROWS), factor.dtype.element_ty)
        limit = zero
        moving = tl.where(live, zero + 1, zero)
        number = 0
        going = 1
        while (number < passes) & (going > 0):
            tl.debug_barrier()
            source = moves + (number % 2) * size
            target = moves + (1 - number % 2) * size
            change = zero
            at = first
            for a in range(k):
                old = tl.load(source + at, mask=live, other=0.0)
                old = tl.where(number == 0, zero, old)  # nothing is written yet
                low = tl.load(lows + at, mask=live, other=0.0)
                g = tl.load(scaled + at, mask=live, other=0.0)
                # The slope without the component itself: registers cannot be indexed.
                new = -(g + tl.sum(moved * tl.load(others + a * K + c)[:, None], axis=0))
                new = tl.where(new > low, new, low)
                new = tl.where(moving > 0, new, old)
                moved = tl.where((c == a)[:, None], new[None, :], moved)
                tl.store(target + at, new, mask=live)
                change += (new - old) * (new - old)
                at += n_rows
            limit = tl.where(number == 0, change * shrink, limit)
            moving = tl.where((moving > 0) & (change > limit), moving, zero)
            going = tl.max((moving > 0).to(tl.int32), axis=0)
            number += 1
        tl.debug_barrier()
        source = moves + (number % 2) * size
        total = zero
        at = first
        for _ in range(k):
            F = tl.load(factor + at, mask=live, other=0.0)
            D = tl.load(diagonal + at, mask=live, other=1.0)
            root = tl.sqrt(tl.where(least > D, least, D))
            # Not as a difference of entries, in which short steps drown in rounding.
            direction = tl.load(source + at, mask=live, other=0.0) / root
            bound = tl.where(small * largest < F, F * fall, zero) - F
            direction = tl.where(direction < bound, bound, direction)
            total += tl.load(scaled + at, mask=live, other=0.0) * root * direction
            tl.store(out + at, direction, mask=live)
            at += n_rows
        tl.store(slopes + batch * n_rows + row, total, mask=live)


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
    work = out.new_empty((4, *out.shape))
    slopes = torch.empty((batch, n_rows), dtype=factor.dtype, device=factor.device)
    width = max(4, triton.next_power_of_2(k))
    others = correlations - torch.diag_embed(correlations.diagonal(dim1=1, dim2=2))
    others = torch.nn.functional.pad(others, (0, width - k, 0, width - k))
    rows = max(1, min(32, TILE // width))
    _steps[(triton.cdiv(n_rows, rows), batch)](
        *given, others, *work[:3], out, slopes, _numbers(factor.dtype, factor.device), out.numel(), n_rows, k,
        PASSES, K=width, ROWS=rows, num_warps=1,
    )  # fmt: skip
    return out.mT, slopes
