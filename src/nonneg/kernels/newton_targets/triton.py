"""Newton steps of rows on an NVIDIA GPU, each row in the registers of one program from first to last."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nonneg._arrays import from_torch, to_torch
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

# Numbers that the registers of a warp hold of its rows, 32 per thread, where 64 take longer by a fifth on an
# H200. Ranks are padded to powers of two.
ENTRIES = 1024
MOST_K = 256


if triton is not None:

    @triton.jit
    def _targets(
        factor,
        gradient,
        diagonal,
        correlations,
        order,
        moving,
        numbers,
        direction,
        notes,
        n_rows,
        k,
        n_order,
        passes,
        N_ROWS: tl.constexpr,
        K: tl.constexpr,
    ):
        i = tl.program_id(0) * N_ROWS + tl.arange(0, N_ROWS)
        c = tl.arange(0, K)
        rows = i < n_rows
        kind = factor.dtype.element_ty
        l1 = tl.load(numbers).to(kind)
        l2 = tl.load(numbers + 1).to(kind)
        least = tl.load(numbers + 2).to(kind)
        shrink = tl.load(numbers + 3).to(kind)
        fall = tl.load(numbers + 4).to(kind)
        small = tl.load(numbers + 5).to(kind)
        at = i.to(tl.int64) * k
        # How far every component has moved, in units of the roots of the diagonal: one row per thread, so
        # that sums over components need no communication.
        moved = tl.zeros((K, N_ROWS), kind)
        limit = tl.zeros((N_ROWS,), kind)
        active = rows
        sweep = 0
        while (sweep < passes) & (tl.max(active.to(tl.int32), axis=0) > 0):
            change = tl.zeros((N_ROWS,), kind)
            for turn in range(n_order):
                a = tl.load(order + turn)
                root = tl.sqrt(tl.maximum(tl.load(diagonal + at + a, mask=rows, other=1.0), least))
                start = tl.load(factor + at + a, mask=rows, other=0.0) * root
                slope = tl.load(gradient + at + a, mask=rows, other=0.0) / root
                g = tl.load(correlations + a * k + c, mask=c < k, other=0.0)
                slope += tl.sum(moved * g[:, None], axis=0)
                own = (c == a)[:, None]
                old = tl.sum(tl.where(own, moved, 0.0), axis=0)
                new = tl.maximum(start + old - slope, 0.0) - start
                new = tl.where(active, new, old)
                change += (new - old) * (new - old)
                moved = tl.where(own, new[None, :], moved)
            limit = tl.where(sweep == 0, shrink * change, limit)
            active = active & (change > limit)
            sweep += 1
        inside = (c < k)[:, None] & rows[None, :]
        place = at[None, :] + c[:, None]
        f = tl.load(factor + place, mask=inside, other=0.0)
        root = tl.sqrt(tl.maximum(tl.load(diagonal + place, mask=inside, other=1.0), least))
        scaled = f * root
        largest = tl.max(f, axis=0)
        lowest = tl.where(f > small * largest[None, :], fall * f, 0.0)
        step = tl.maximum((scaled + moved) / root, lowest) - f
        step = tl.where((tl.load(moving + c, mask=c < k, other=0) != 0)[:, None], step, 0.0)
        tl.store(direction + place, step, mask=inside)
        g = tl.load(gradient + place, mask=inside, other=0.0)
        tl.store(notes + n_rows + i, tl.sum((l1 + l2 * f) * step, axis=0), mask=rows)
        tl.store(notes + 2 * n_rows + i, l2 * tl.sum(step * step, axis=0), mask=rows)
        tl.store(notes + 3 * n_rows + i, tl.sum(g * step, axis=0), mask=rows)
        projected = scaled - tl.maximum(scaled - g / root, 0.0)
        size = tl.sqrt(tl.sum(scaled * scaled, axis=0))
        size = tl.where(size > 0, size, 1.0)
        tl.store(notes + i, tl.sqrt(tl.sum(projected * projected, axis=0)) / size, mask=rows)


def is_supported(factor: Any) -> bool:
    """Tell whether Triton is installed and rows on an NVIDIA GPU are not too long."""
    return triton is not None and factor.shape[1] <= MOST_K


@lru_cache(maxsize=64)
def _numbers(l1: float, l2: float, dtype: Any, device: Any) -> Any:
    import torch

    least = torch.finfo(dtype).smallest_normal * LEAST_DIAGONAL
    values = [l1, l2, least, SHRINK * SHRINK, LARGEST_FALL, SMALL_PART]
    return torch.tensor(values, dtype=torch.float64, device=device)


@lru_cache(maxsize=64)
def _turns(order: tuple[int, ...], k: int, device: Any) -> tuple[Any, Any]:
    import torch

    turns = torch.tensor(order, dtype=torch.int32)
    moving = torch.zeros(k, dtype=torch.int8)
    moving[turns.long()] = 1
    return turns.to(device), moving.to(device)


def newton_targets(
    factor: Any, gradient: Any, diagonal: Any, correlations: Any, order: Any, l1: float, l2: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the steps of all rows; see `kernels.newton_targets`."""
    import torch

    arrays = [to_torch(array).contiguous() for array in (factor, gradient, diagonal, correlations)]
    rows = arrays[0]
    n_rows, k = (int(size) for size in rows.shape)
    turns = tuple(range(k)) if order is None else tuple(int(turn) for turn in order)
    padded = 1 << (k - 1).bit_length()
    direction = torch.empty_like(rows)
    notes = torch.empty((4, n_rows), dtype=rows.dtype, device=rows.device)
    per_program = max(1, min(32, ENTRIES // padded))
    if rows.element_size() == 8:
        per_program = max(1, per_program // 2)
    _targets[(-(-n_rows // per_program),)](
        *arrays,
        *_turns(turns, k, rows.device),
        _numbers(float(l1), float(l2), rows.dtype, rows.device),
        direction,
        notes,
        n_rows,
        k,
        len(turns),
        PASSES,
        N_ROWS=per_program,
        K=padded,
        num_warps=1,
    )
    residuals, linear, quadratic, slopes = (from_torch(part, factor) for part in notes)
    return from_torch(direction, factor), residuals, linear, quadratic, slopes
