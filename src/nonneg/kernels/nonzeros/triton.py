"""Sums over nonzeros on an NVIDIA GPU: the model, the ratio and its products in one pass over each row."""

from __future__ import annotations

from typing import Any

from nonneg._arrays import from_torch
from nonneg.kernels.nonzeros.array_api import RatioSums
from nonneg.kernels.sparse_products.triton import (
    added_parts,
    constants,
    gathered,
    is_supported,
    is_wide,
    part_arguments,
    row_part,
    tensors,
    tile,
)

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

__all__ = ["is_supported", "line_search", "ratio_sums", "row_hessians"]

# Sides of the square tiles of Hessians, by bytes of a number. Products of larger tiles in float64 are wrong
# with Triton 3.6.
SIDE = {4: 64, 8: 32}


if triton is not None:

    @triton.jit
    def _ratio_sums(
        indptr,
        indices,
        data,
        A,
        B,
        weights,
        numbers,
        product,
        second,
        scalars,
        rows,
        begins,
        K: tl.constexpr,
        KP: tl.constexpr,
        BN: tl.constexpr,
        PART: tl.constexpr,
        WIDE: tl.constexpr,
        WEIGHTED: tl.constexpr,
        PRODUCT: tl.constexpr,
        SECOND: tl.constexpr,
        LOGS: tl.constexpr,
    ):
        row, begin, end = row_part(indptr, rows, begins, PART)
        c = tl.arange(0, KP)
        inside = c < K
        n = tl.arange(0, BN)
        a = tl.load(A + row * K + c, mask=inside, other=0.0)
        # Numbers given as arguments would be rounded to float32.
        lower_bound = tl.load(numbers)
        first_sum = tl.zeros([BN, KP], dtype=B.dtype.element_ty)
        second_sum = tl.zeros([BN, KP], dtype=B.dtype.element_ty)
        trace = tl.zeros([BN], dtype=tl.float64)
        logged = tl.zeros([BN], dtype=tl.float64)
        for first in range(begin, end, BN):
            at = first + n
            here = at < end
            x = tl.load(data + at, mask=here, other=0.0)
            j, b = gathered(B, indices, at, here, c, inside, K, WIDE)
            v = tl.maximum(tl.sum(a[None, :] * b, axis=1), lower_bound)
            ratio = x / v
            if LOGS:
                terms = x * (tl.log(tl.where(x > 0, ratio, 1.0)) - 1.0)
                if WEIGHTED:
                    terms = terms * tl.load(weights + j, mask=here, other=0.0)
                logged += terms.to(tl.float64)
            if WEIGHTED:
                ratio = ratio * tl.load(weights + j, mask=here, other=0.0)
            if PRODUCT:
                first_sum += ratio[:, None] * b
            if SECOND:
                curvature = ratio / v
                second_sum += curvature[:, None] * b * b
                trace += curvature.to(tl.float64)
        part = tl.program_id(0).to(tl.int64)
        if PRODUCT:
            tl.store(product + part * K + c, tl.sum(first_sum, axis=0), mask=inside)
        if SECOND:
            tl.store(second + part * K + c, tl.sum(second_sum, axis=0), mask=inside)
        tl.store(scalars + part * 2, tl.sum(trace, axis=0))
        tl.store(scalars + part * 2 + 1, tl.sum(logged, axis=0))

    @triton.jit
    def _two_products(
        indptr,
        indices,
        A,
        D,
        B,
        numbers,
        model,
        along,
        first_row,
        first_entry,
        K: tl.constexpr,
        KP: tl.constexpr,
        BN: tl.constexpr,
        SPLIT: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        row = (first_row + tl.program_id(0)).to(tl.int64)
        begin = tl.load(indptr + row).to(tl.int64)
        end = tl.load(indptr + row + 1).to(tl.int64)
        c = tl.arange(0, KP)
        inside = c < K
        n = tl.arange(0, BN)
        a = tl.load(A + row * K + c, mask=inside, other=0.0)
        d = tl.load(D + row * K + c, mask=inside, other=0.0)
        lower_bound = tl.load(numbers)
        # Programs of the second axis take turns, so that a long row is not left to one of them.
        for first in range(begin + tl.program_id(1) * BN, end, BN * SPLIT):
            at = first + n
            here = at < end
            _j, b = gathered(B, indices, at, here, c, inside, K, WIDE)
            v = tl.maximum(tl.sum(a[None, :] * b, axis=1), lower_bound)
            tl.store(model + at - first_entry, v, mask=here)
            tl.store(along + at - first_entry, tl.sum(d[None, :] * b, axis=1), mask=here)

    @triton.jit
    def _line_search(
        indptr,
        data,
        model,
        along,
        linear,
        quadratic,
        slopes,
        numbers,
        steps,
        first_row,
        first_entry,
        TRIES: tl.constexpr,
        BN: tl.constexpr,
    ):
        row = (first_row + tl.program_id(0)).to(tl.int64)
        begin = tl.load(indptr + row).to(tl.int64)
        end = tl.load(indptr + row + 1).to(tl.int64)
        n = tl.arange(0, BN)
        lower_bound = tl.load(numbers)
        down = -tl.load(slopes + row)
        constant = tl.load(linear + row)
        bend = tl.load(quadratic + row)
        step = tl.where(down > 0, 1.0, 0.0).to(tl.float64)
        accepted = tl.where(down > 0, 0, 1)
        tried = 0
        while (accepted == 0) & (tried < TRIES):
            total = tl.zeros([BN], dtype=tl.float64)
            short = step.to(data.dtype.element_ty)
            for first in range(begin, end, BN):
                at = first + n
                here = at < end
                x = tl.load(data + at, mask=here, other=0.0)
                v = tl.load(model + at - first_entry, mask=here, other=1.0)
                d = tl.load(along + at - first_entry, mask=here, other=0.0)
                total += (x * d / tl.maximum(v + short * d, lower_bound)).to(tl.float64)
            up = constant + bend * step - tl.sum(total, axis=0)
            step = tl.where(up <= 0, step, step * down / tl.where(up <= 0, 1.0, down + up))
            accepted = tl.where(up <= 2 * down, 1, 0)
            tried += 1
        tl.store(steps + row, tl.where(accepted == 1, step, 0.0).to(data.dtype.element_ty))

    @triton.jit
    def _row_hessians(
        indptr,
        indices,
        curvatures,
        B,
        out,
        K: tl.constexpr,
        TILE: tl.constexpr,
        BN: tl.constexpr,
        ONES: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        row, begin, end = row_part(indptr, indptr, indptr, 0)
        c = tl.program_id(1) * TILE + tl.arange(0, TILE)
        e = tl.program_id(2) * TILE + tl.arange(0, TILE)
        n = tl.arange(0, BN)
        total = tl.zeros([TILE, TILE], dtype=B.dtype.element_ty)
        for first in range(begin, end, BN):
            at = first + n
            here = at < end
            j = tl.load(indices + at, mask=here, other=0)
            j = j.to(tl.int64) if WIDE else j.to(tl.int32)
            left = tl.load(B + j[None, :] * K + c[:, None], mask=here[None, :] & (c < K)[:, None], other=0.0)
            right = tl.load(B + j[:, None] * K + e[None, :], mask=here[:, None] & (e < K)[None, :], other=0.0)
            if not ONES:
                right = right * tl.load(curvatures + at, mask=here, other=0.0)[:, None]
            total += tl.dot(left, right, input_precision="ieee", out_dtype=B.dtype.element_ty)
        mask = (c < K)[:, None] & (e < K)[None, :]
        tl.store(out + row * K * K + c[:, None] * K + e[None, :], total, mask=mask)


def ratio_sums(
    csr: Any, A: Any, Bt: Any, lower_bound: float, weights: Any, product: bool, second: bool, logs: bool
) -> RatioSums:
    """Return the sums; see `kernels.nonzeros.ratio_sums`."""
    import torch

    places, columns, x, left, B, of_columns = tensors(csr.indptr, csr.indices, csr.data, A, Bt, weights)
    n_rows, k = int(places.shape[0]) - 1, int(B.shape[1])
    plan, (rows, begins, part) = part_arguments(places, csr.plan)
    width, entries, warps = tile(k, B.element_size())
    sums = [torch.empty((plan.n_parts if asked else 0, k), dtype=B.dtype, device=B.device)
            for asked in (product, second)]  # fmt: skip
    bound = constants(B.dtype, B.device, lower_bound)
    scalars = torch.empty((plan.n_parts, 2), dtype=torch.float64, device=B.device)
    if n_rows:
        _ratio_sums[(plan.n_parts,)](
            places, columns, x, left, B, x if of_columns is None else of_columns, bound,
            *sums, scalars, rows, begins,
            K=k, KP=width, BN=max(1, entries // 2), PART=part, WIDE=is_wide(B),
            WEIGHTED=of_columns is not None, PRODUCT=product, SECOND=second, LOGS=logs, num_warps=warps,
        )  # fmt: skip
    scalars = added_parts(scalars, plan, n_rows)
    first, squares = (
        from_torch(added_parts(part_sums, plan, n_rows), A) if asked else None
        for part_sums, asked in zip(sums, (product, second), strict=True)
    )
    trace = from_torch(scalars[:, 0].to(B.dtype), A) if second else None
    return RatioSums(first, squares, trace, from_torch(scalars[:, 1].contiguous(), A) if logs else None)


# Programs that share a row of more than so many entries.
SPLIT, LONG = 16, 1 << 13


def line_search(
    csr: Any,
    A: Any,
    direction: Any,
    Bt: Any,
    lower_bound: float,
    linear: Any,
    quadratic: Any,
    slopes: Any,
    tries: int,
) -> Any:
    """Choose a step for every row; see `kernels.nonzeros.line_search`."""
    import torch

    places, columns, x, left, along, B = tensors(csr.indptr, csr.indices, csr.data, A, direction, Bt)
    wide = [number.to(torch.float64) for number in tensors(linear, quadratic, slopes)]
    n_rows, k = int(places.shape[0]) - 1, int(B.shape[1])
    plan, _ = part_arguments(places, csr.plan)
    width, entries, warps = tile(k, B.element_size())
    steps = torch.empty(n_rows, dtype=B.dtype, device=B.device)
    most = max((last - first for *_, first, last in plan.blocks), default=0)
    # At so many entries at a time, whatever the size of the data.
    model, change = (torch.empty(most, dtype=B.dtype, device=B.device) for _ in range(2))
    bound = constants(B.dtype, B.device, lower_bound)
    for first_row, last_row, first, last in plan.blocks:
        n_block = last_row - first_row
        split = SPLIT if last - first > LONG * n_block or plan.rows is not None else 1
        _two_products[(n_block, split)](
            places, columns, left, along, B, bound, model, change, first_row, first,
            K=k, KP=width, BN=entries, SPLIT=split, WIDE=is_wide(B), num_warps=warps,
        )  # fmt: skip
        _line_search[(n_block,)](
            places, x, model, change, *wide, bound, steps, first_row, first, TRIES=tries, BN=256, num_warps=2
        )  # fmt: skip
    return from_torch(steps, A)


def row_hessians(indptr: Any, indices: Any, curvatures: Any, Bt: Any) -> Any:
    """Return the matrices of all rows; see `kernels.nonzeros.row_hessians`."""
    import torch

    places, columns, numbers, B = tensors(indptr, indices, curvatures, Bt)
    n_rows, k = int(places.shape[0]) - 1, int(B.shape[1])
    out = torch.empty((n_rows, k, k), dtype=B.dtype, device=B.device)
    side = min(SIDE[B.element_size()], tile(k, B.element_size())[0])
    n_tiles = -(-k // side)
    if n_rows:
        _row_hessians[(n_rows, n_tiles, n_tiles)](
            places, columns, B if numbers is None else numbers, B, out,
            K=k, TILE=side, BN=32, ONES=numbers is None, WIDE=is_wide(B), num_warps=4,
        )  # fmt: skip
    return from_torch(out, Bt)
