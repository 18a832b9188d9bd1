"""Gram matrices of rows with missing entries on an NVIDIA GPU; see `row_grams`."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import from_torch, to_torch

# Rounding leaves less than this fraction of the base in a difference of equal sums; see `kernels.grams`.
NOISE = 1e-12

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# A program sums a square of this many components on a side: 32 numbers of float64 for each of 128 threads.
SIDE = 64


if triton is not None:

    @triton.jit
    def _listed_grams(
        base, numbers, other, indptr, indices, out, start, k, other_row, other_component, SIDE: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64)
        a = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
        b = tl.program_id(2) * SIDE + tl.arange(0, SIDE)
        inside = (a < k)[:, None] & (b < k)[None, :]
        sign = tl.load(numbers)
        noise = tl.load(numbers + 1)
        base_a = tl.load(base + a * k + a, mask=a < k, other=0.0)
        base_b = tl.load(base + b * k + b, mask=b < k, other=0.0)
        gram = tl.load(base + a[:, None] * k + b[None, :], mask=inside, other=0.0)
        of_a = base_a
        of_b = base_b
        first = tl.load(indptr + start + row).to(tl.int64)
        last = tl.load(indptr + start + row + 1).to(tl.int64)
        for position in range(first, last):
            at = other + tl.load(indices + position).to(tl.int64) * other_row
            x = tl.load(at + a * other_component, mask=a < k, other=0.0).to(tl.float64)
            y = tl.load(at + b * other_component, mask=b < k, other=0.0).to(tl.float64)
            gram += (sign * x)[:, None] * y[None, :]
            of_a += sign * x * x
            of_b += sign * y * y
        kept = (of_a > noise * base_a)[:, None] & (of_b > noise * base_b)[None, :]
        gram = tl.where(kept, gram, 0.0)
        place = out + row * k * k + a[:, None] * k + b[None, :]
        tl.store(place, gram.to(out.dtype.element_ty), mask=inside)


def listed_grams(base: Any, sign: float, other: Any, indptr: Any, indices: Any, start: int, stop: int) -> Any:
    """Return the Gram matrices of rows `start` to `stop`; rounding noise becomes zero."""
    import torch

    like = other
    base, other, indptr, indices = (to_torch(array) for array in (base, other, indptr, indices))
    k = other.shape[1]
    out = torch.empty((stop - start, k, k), dtype=other.dtype, device=other.device)
    numbers = torch.full((2,), NOISE, dtype=torch.float64, device=other.device)
    numbers[:1].fill_(sign)
    n_sides = -(-k // SIDE)
    if stop > start:
        _listed_grams[(stop - start, n_sides, n_sides)](
            base.to(torch.float64).contiguous(),
            numbers,
            other,
            indptr,
            indices,
            out,
            start,
            k,
            other.stride(0),
            other.stride(1),
            SIDE=min(SIDE, max(2, 1 << (k - 1).bit_length())),
            num_warps=4,
        )
    return from_torch(out, like)
