"""Multiplicative updates with extrapolation on an NVIDIA GPU: one kernel instead of two dozen."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nonneg._arrays import from_torch, on_gpu, to_torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

ENTRIES = 1024  # of a program


if triton is not None:

    @triton.jit
    def _update(
        factor,
        ratio,
        power,
        previous,
        numbers,
        new,
        chosen,
        size,
        k,
        momentum,
        SAME_POWER: tl.constexpr,
        RAISED: tl.constexpr,
        RIDGE: tl.constexpr,
        EXTRAPOLATED: tl.constexpr,
        N: tl.constexpr,
    ):
        i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
        inside = i < size
        kind = factor.dtype.element_ty
        l1 = tl.load(numbers).to(kind)
        l2 = tl.load(numbers + 1).to(kind)
        tiny = tl.load(numbers + 2).to(kind)
        most = tl.load(numbers + 3).to(kind)
        small = tl.load(numbers + 4).to(kind)
        f = tl.load(factor + i, mask=inside, other=0.0)
        r = tl.load(ratio + i, mask=inside, other=0.0)
        cost = tl.load(power + (i % k if SAME_POWER else i), mask=inside, other=1.0) + l1
        if RIDGE == 2:
            cost += l2 * f
        step = tl.minimum(tl.where(r > 0, r / tl.maximum(cost, tiny), 0.0), most)
        if RIDGE == 1:
            step = 2.0 * r / tl.maximum(cost + tl.sqrt(cost * cost + 4.0 * l2 * f * r), tiny)
        if RAISED:
            exponent = tl.load(numbers + 5)
            step = tl.where(step > 0, tl.exp(exponent * tl.log(step.to(tl.float64))), 0.0).to(kind)
        out = f * step
        out = tl.where(out < small, 0.0, out)
        tl.store(new + i, out, mask=inside)
        if EXTRAPOLATED:
            least = tl.load(numbers + 6).to(kind)
            largest = tl.load(numbers + 7).to(kind)
            old = tl.load(previous + i, mask=inside, other=1.0)
            growth = tl.maximum(out, tiny) / tl.maximum(old, tiny)
            growth = tl.minimum(tl.maximum(growth, least), largest)
            out *= tl.exp(tl.load(momentum).to(kind) * tl.log(growth))
            tl.store(chosen + i, out, mask=inside)


@lru_cache(maxsize=64)
def _numbers(values: tuple[float, ...], device: Any) -> Any:
    import torch

    return torch.tensor(values, dtype=torch.float64, device=device)


def multiplicative_step(
    factor: Any,
    ratio: Any,
    power: Any,
    previous: Any,
    momentum: Any,
    *,
    l1: float,
    l2: float,
    beta: float,
    exponent: float,
    largest_factor: float,
) -> tuple[Any, Any]:
    """Return the updated factor, and the same extrapolated; `momentum` may be a number on the GPU."""
    import torch

    tensors = [to_torch(array).contiguous() for array in (factor, ratio, power)]
    rows = tensors[0]
    at_hand = on_gpu(momentum)
    extrapolated = previous is not None and (at_hand or momentum != 0)
    new = torch.empty_like(rows)
    chosen = torch.empty_like(rows) if extrapolated else new
    info = torch.finfo(rows.dtype)
    tiny = info.smallest_normal
    if extrapolated and not at_hand:
        # An argument would be rounded to float32.
        momentum = torch.full((), momentum, dtype=torch.float64, device=rows.device)
    values = (l1, l2, tiny, info.max**0.25, tiny * 1e4, exponent, 1.0 / largest_factor, largest_factor)
    size = rows.numel()
    _update[(-(-size // ENTRIES),)](
        *tensors,
        to_torch(previous).contiguous() if extrapolated else rows,
        _numbers(values, rows.device),
        new,
        chosen,
        size,
        rows.shape[1],
        momentum if extrapolated else rows,
        SAME_POWER=tensors[2].ndim == 1,
        RAISED=exponent != 1,
        RIDGE=0 if not l2 else 1 if beta == 1 else 2,
        EXTRAPOLATED=extrapolated,
        N=ENTRIES,
    )
    return from_torch(new, factor), from_torch(chosen, factor)
