"""Products of sparse matrices on an NVIDIA GPU, each part of a row in one program.

A program gathers the rows of the dense factor that its entries name, a tile at a time, and adds up in
registers. Parts of one row are added in their order by a second kernel: no atomic operations, so that
results are the same in every run.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nonneg._arrays import from_torch, on_gpu, to_torch
from nonneg.kernels.sparse_products.plan import RowPlan, row_plan

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Numbers of a tile per thread: 32 keep two tiles in registers. cuSPARSE takes two to four times as long.
PER_THREAD = 32


if triton is not None:

    @triton.jit
    def row_part(indptr, rows, begins, PART: tl.constexpr):
        """Return the row of a program's part, and its first and last entry."""
        part = tl.program_id(0).to(tl.int64)
        if PART > 0:
            row = tl.load(rows + part)
            begin = tl.load(begins + part)
            end = tl.minimum(begin + PART, tl.load(indptr + row + 1).to(tl.int64))
        else:
            row = part
            begin = tl.load(indptr + row).to(tl.int64)
            end = tl.load(indptr + row + 1).to(tl.int64)
        return row, begin, end

    @triton.jit
    def gathered(B, indices, at, here, c, inside, K: tl.constexpr, WIDE: tl.constexpr):
        """Return the columns of entries, and the rows of B that they name."""
        j = tl.load(indices + at, mask=here, other=0)
        j = j.to(tl.int64) if WIDE else j.to(tl.int32)
        b = tl.load(B + j[:, None] * K + c[None, :], mask=here[:, None] & inside[None, :], other=0.0)
        return j, b

    @triton.jit
    def _times(
        indptr,
        indices,
        data,
        B,
        out,
        rows,
        begins,
        K: tl.constexpr,
        KP: tl.constexpr,
        BN: tl.constexpr,
        PART: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        _row, begin, end = row_part(indptr, rows, begins, PART)
        c = tl.arange(0, KP)
        inside = c < K
        n = tl.arange(0, BN)
        total = tl.zeros([BN, KP], dtype=B.dtype.element_ty)
        for first in range(begin, end, BN):
            at = first + n
            here = at < end
            x = tl.load(data + at, mask=here, other=0.0)
            _j, b = gathered(B, indices, at, here, c, inside, K, WIDE)
            total += x[:, None] * b
        part = tl.program_id(0).to(tl.int64)
        tl.store(out + part * K + c, tl.sum(total, axis=0), mask=inside)

    @triton.jit
    def _add_parts(parts, starts, out, K: tl.constexpr, KP: tl.constexpr, BN: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        begin = tl.load(starts + row)
        end = tl.load(starts + row + 1)
        c = tl.arange(0, KP)
        inside = c < K
        n = tl.arange(0, BN)
        total = tl.zeros([BN, KP], dtype=parts.dtype.element_ty)
        for first in range(begin, end, BN):
            at = first + n
            mask = (at < end)[:, None] & inside[None, :]
            total += tl.load(parts + at[:, None] * K + c[None, :], mask=mask, other=0.0)
        tl.store(out + row * K + c, tl.sum(total, axis=0), mask=inside)

    @triton.jit
    def _sampled(
        indptr,
        indices,
        A,
        B,
        out,
        rows,
        begins,
        K: tl.constexpr,
        KP: tl.constexpr,
        BN: tl.constexpr,
        PART: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        row, begin, end = row_part(indptr, rows, begins, PART)
        c = tl.arange(0, KP)
        inside = c < K
        n = tl.arange(0, BN)
        a = tl.load(A + row * K + c, mask=inside, other=0.0)
        for first in range(begin, end, BN):
            at = first + n
            here = at < end
            _j, b = gathered(B, indices, at, here, c, inside, K, WIDE)
            tl.store(out + at, tl.sum(a[None, :] * b, axis=1), mask=here)

    @triton.jit
    def _row_sums(indptr, values, out, rows, begins, BN: tl.constexpr, PART: tl.constexpr):
        _row, begin, end = row_part(indptr, rows, begins, PART)
        n = tl.arange(0, BN)
        total = tl.zeros([BN], dtype=values.dtype.element_ty)
        for first in range(begin, end, BN):
            at = first + n
            total += tl.load(values + at, mask=at < end, other=0.0)
        tl.store(out + tl.program_id(0).to(tl.int64), tl.sum(total, axis=0))

else:
    row_part = gathered = None


def is_supported(array: Any) -> bool:
    """Tell whether an array is a tensor or a CuPy array on an NVIDIA GPU, and Triton is installed."""
    return triton is not None and on_gpu(array)


def tile(k: int, bytes_per_number: int) -> tuple[int, int, int]:
    """Return components of a tile, a power of two, its entries, and the number of warps."""
    width = max(16, triton.next_power_of_2(k))
    per_thread = PER_THREAD if bytes_per_number == 4 else PER_THREAD // 2
    warps = 1 if width <= 64 else 4
    return width, max(1, 32 * warps * per_thread // width), warps


def tensors(*arrays: Any) -> list[Any]:
    """Return arrays as contiguous CUDA tensors."""
    return [None if array is None else to_torch(array).contiguous() for array in arrays]


@lru_cache(maxsize=256)
def constants(dtype: Any, device: Any, *values: float) -> Any:
    """Return numbers for a kernel; as arguments they would be rounded to float32."""
    import torch

    # A copy from the host would wait, and cannot be part of a CUDA graph.
    return torch.cat([torch.full((1,), value, dtype=dtype, device=device) for value in values])


def part_arguments(indptr: Any, plan: Any) -> tuple[RowPlan, tuple[Any, Any, int]]:
    """Return the plan, and the rows, first entries and length of its parts as kernels take them."""
    plan = row_plan(indptr) if plan is None else plan
    if plan.rows is None:
        return plan, (indptr, indptr, 0)
    return plan, (*tensors(plan.rows, plan.begins), plan.part)


def added_parts(parts: Any, plan: RowPlan, n_rows: int) -> Any:
    """Add the results of the parts of every row."""
    import torch

    if plan.rows is None:
        return parts
    k = int(parts.shape[1])
    out = torch.empty((n_rows, k), dtype=parts.dtype, device=parts.device)
    width = triton.next_power_of_2(k)
    (starts,) = tensors(plan.starts)
    _add_parts[(n_rows,)](parts, starts, out, K=k, KP=width, BN=max(1, 512 // width), num_warps=1)
    return out


def is_wide(B: Any) -> bool:
    """Tell whether offsets into a factor need 64 bits."""
    return int(B.shape[0]) * int(B.shape[1]) >= 2**31


def sparse_times(indptr: Any, indices: Any, data: Any, Bt: Any, plan: RowPlan | None = None) -> Any:
    """Multiply a CSR matrix with a tall dense one; see `kernels.sparse_products.sparse_times`."""
    import torch

    places, columns, values, B = tensors(indptr, indices, data, Bt)
    n_rows, k = int(places.shape[0]) - 1, int(B.shape[1])
    plan, (rows, begins, part) = part_arguments(places, plan)
    width, entries, warps = tile(k, B.element_size())
    parts = torch.empty((plan.n_parts, k), dtype=B.dtype, device=B.device)
    if n_rows:
        _times[(plan.n_parts,)](
            places, columns, values, B, parts, rows, begins,
            K=k, KP=width, BN=entries, PART=part, WIDE=is_wide(B), num_warps=warps,
        )  # fmt: skip
    return from_torch(added_parts(parts, plan, n_rows), Bt)


def sampled_product(indptr: Any, indices: Any, A: Any, Bt: Any, plan: RowPlan | None = None) -> Any:
    """Return the product at the stored places; see `kernels.sparse_products.sampled_product`."""
    import torch

    places, columns, left, B = tensors(indptr, indices, A, Bt)
    k = int(B.shape[1])
    plan, (rows, begins, part) = part_arguments(places, plan)
    width, entries, warps = tile(k, B.element_size())
    out = torch.empty(int(columns.shape[0]), dtype=B.dtype, device=B.device)
    if plan.n_parts:
        _sampled[(plan.n_parts,)](
            places, columns, left, B, out, rows, begins,
            K=k, KP=width, BN=entries, PART=part, WIDE=is_wide(B), num_warps=warps,
        )  # fmt: skip
    return from_torch(out, Bt)


def row_sums(indptr: Any, values: Any, plan: RowPlan | None = None) -> Any:
    """Return the sums of rows; see `kernels.sparse_products.row_sums`."""
    import torch

    places, numbers = tensors(indptr, values)
    n_rows = int(places.shape[0]) - 1
    plan, (rows, begins, part) = part_arguments(places, plan)
    parts = torch.empty((plan.n_parts, 1), dtype=numbers.dtype, device=numbers.device)
    if n_rows:
        _row_sums[(plan.n_parts,)](places, numbers, parts, rows, begins, BN=128, PART=part, num_warps=1)
    return from_torch(added_parts(parts, plan, n_rows)[:, 0], values)
