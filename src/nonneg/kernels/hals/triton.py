"""Coordinate descent on rows on an NVIDIA GPU: a program for a few rows, which stay in registers.

A warp holds some rows, and a few of its threads share the components of each. Arrays are stored component by
component, so that the threads read neighbors; those in another order are copied first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from nonneg._arrays import from_torch, on_gpu, to_torch
from nonneg.kernels.grams import CHUNK_ENTRIES, DenseGrams, Gram, SharedGram
from nonneg.kernels.rows import ranges
from nonneg.kernels.sparse_products.triton import constants

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

MOST_COMPONENTS = 1024
# 32-bit registers of a thread that hold rows: 8 rows of 64 components in a warp. More rows spill.
REGISTERS = 16
# With fewer programs than this a program takes fewer rows, so that all processors are at work.
FULL = 4224


if triton is not None:
    # Sizes that change from batch to batch: no compilation for each of them.
    SIZES = ("n_tiles", "n", "n_order", "max_passes", "block_stride")
    STRIDES = ("factor_stride", "cross_stride", "out_stride")

    @triton.jit(do_not_specialize=SIZES + STRIDES)
    def _update_rows(
        factor,
        cross,
        out,
        gram,
        order,
        numbers,
        todo,
        violations,
        n_tiles,
        n,
        k,
        n_order,
        max_passes,
        block_stride,
        factor_stride,
        cross_stride,
        out_stride,
        K: tl.constexpr,
        R: tl.constexpr,
        SKIPS: tl.constexpr,
        ORDERED: tl.constexpr,
    ):
        program = tl.program_id(0).to(tl.int64)
        block = program // n_tiles
        lane = (program % n_tiles) * R + tl.arange(0, R)
        inside = lane < n
        # A range that ends early is no contiguous one for the compiler, so that a thread gets no four
        # neighboring rows, but components of one.
        lane = tl.minimum(lane, n - 1)
        note = block * n + lane
        row = block * block_stride + lane
        b = tl.arange(0, K)
        real = b < k
        gram_at = gram + block * k * k
        within = real[:, None] & inside[None, :]
        f = tl.load(factor + b.to(tl.int64)[:, None] * factor_stride + row[None, :], mask=within, other=0.0)
        tl.store(out + b.to(tl.int64)[:, None] * out_stride + row[None, :], f, mask=within)
        shrink2 = tl.load(numbers)
        moving = inside.to(tl.int32)
        if SKIPS:
            moving = tl.where(tl.load(todo + note) != 0, moving, 0)
        zero = tl.zeros([R], f.dtype)
        violation = zero
        limit = zero
        sweep = 0
        going = tl.max(moving, axis=0)
        while going > 0:
            sweep += 1
            # One component ahead: the loads of the next one run beside the sums of the present one.
            next_a = program * 0
            if ORDERED:
                next_a = tl.load(order).to(tl.int64)
            next_g = tl.load(gram_at + next_a * k + b, mask=real, other=0.0)
            next_c = tl.load(cross + next_a * cross_stride + row)
            for j in range(n_order):
                a = next_a
                g = tl.where(b == a, 0.0, next_g)
                c = next_c
                curvature = tl.load(gram_at + a * k + a)
                next_a = program * 0 + tl.minimum(j + 1, n_order - 1)
                if ORDERED:
                    next_a = tl.load(order + next_a).to(tl.int64)
                next_g = tl.load(gram_at + next_a * k + b, mask=real, other=0.0)
                next_c = tl.load(cross + next_a * cross_stride + row)
                # The slope without the component itself: registers cannot be indexed.
                rest = c - tl.sum(f * g[:, None], axis=0)
                live = tl.where(curvature > 0, moving, 0)
                if sweep == 1:
                    old = tl.load(factor + a * factor_stride + row)
                    slope = old * curvature - rest
                    counted = tl.where(old > 0, tl.abs(slope), tl.where(slope > 0, zero, -slope))
                    violation += tl.where(live > 0, counted, zero)
                new = rest / tl.where(curvature > 0, curvature, 1.0)
                # Written so that what is not a number stays.
                new = tl.where(new < 0, zero, new)
                f = tl.where((b[:, None] == a) & (live > 0)[None, :], new[None, :], f)
            # The rows before this pass. With few of them threads hold copies, of which one writes.
            tl.debug_barrier()
            at = out + b.to(tl.int64)[:, None] * out_stride + row[None, :]
            before = tl.load(at, mask=within, other=0.0)
            change = tl.sum((f - before) * (f - before), axis=0)
            tl.store(at, f, mask=within)
            if sweep == 1:
                limit = shrink2 * change
            moving = tl.where(change > limit, moving, 0)
            going = tl.max(moving, axis=0)
            going = tl.where(sweep < max_passes, going, 0)
        tl.store(violations + note, violation, mask=inside)


def is_supported(factor: Any) -> bool:
    """Tell whether the rows are on an NVIDIA GPU and fit in registers, and Triton is installed."""
    return triton is not None and on_gpu(factor) and factor.shape[1] <= MOST_COMPONENTS


def hals_passes(
    factor: Any, gram: Gram, cross: Any, order: Any, max_passes: int, shrink: float
) -> tuple[Any, Any]:
    """Update all rows; see `kernels.hals.hals_passes`."""
    import torch

    rows, violations = hals_rows(factor, gram, cross, order, max_passes, shrink)
    return rows, from_torch(torch.sum(to_torch(violations), dtype=torch.float64), factor)


def hals_rows(
    factor: Any,
    gram: Gram,
    cross: Any,
    order: Sequence[int] | None = None,
    max_passes: int = 1,
    shrink: float = 0.0,
    todo: Any = None,
    in_place: bool = False,
) -> tuple[Any, Any]:
    """Update all rows, or those where `todo` is true; return them and the violation of each."""
    import torch

    like = factor
    factor, cross = by_component(to_torch(factor)), by_component(to_torch(cross))
    n_rows, k = factor.shape
    out = factor if in_place else torch.empty_like(factor.T, memory_format=torch.contiguous_format).T
    violations = torch.empty(n_rows, dtype=factor.dtype, device=factor.device)
    chosen = tuple(range(k)) if order is None else tuple(int(a) for a in order)
    if not chosen:
        return from_torch(factor, like), from_torch(violations.zero_(), like)
    for rows, matrices in gram_chunks(gram, n_rows, k, factor.dtype):
        old = factor[rows]
        if not old.shape[0]:
            continue
        n = old.shape[0] // matrices.shape[0]
        strides = (n, factor.stride(1), cross.stride(1), out.stride(1))
        _launch(
            old, matrices, cross[rows], out[rows], violations[rows], chosen, shrink,
            None if todo is None else to_torch(todo)[rows].to(torch.int8), max_passes, n, strides,
        )  # fmt: skip
    return from_torch(out, like), from_torch(violations, like)


def batched_hals(factor: Any, gram: Any, cross: Any, max_passes: int, shrink: float) -> tuple[Any, Any]:
    """Update the rows of many factors; see `kernels.hals.batched_hals`."""
    import torch

    # Rows of a factor lie beside each other where it is the transpose of an array in order.
    turned, targets = factor.mT.contiguous(), cross.mT.contiguous()
    batch, k, n = turned.shape
    out = torch.empty_like(turned)
    violations = torch.empty((batch, n), dtype=factor.dtype, device=factor.device)
    if factor.numel():
        strides = (k * n, n, n, n)
        _launch(
            turned, gram.contiguous(), targets, out, violations, tuple(range(k)), shrink, None, max_passes,
            n, strides,
        )  # fmt: skip
    return out.mT, violations.sum(dim=1)


def _launch(
    factor: Any, matrices: Any, cross: Any, out: Any, violations: Any, order: tuple[int, ...], shrink: float,
    todo: Any, max_passes: int, n: int, strides: tuple[int, ...],
) -> None:  # fmt: skip
    """Run the kernel on rows of which `n` in a row share a matrix."""
    k = matrices.shape[1]
    K = triton.next_power_of_2(k)
    # What registers hold, fewer where the card would not be full.
    R = max(1, min(32, 32 * REGISTERS * 4 // (K * factor.element_size())))
    while R > 4 and n * matrices.shape[0] < FULL * R:
        R //= 2
    R = min(R, triton.next_power_of_2(n))
    n_tiles = -(-n // R)
    _update_rows[(matrices.shape[0] * n_tiles,)](
        factor,
        cross,
        out,
        matrices,
        _order(order, factor.device),
        constants(factor.dtype, factor.device, shrink * shrink),
        violations if todo is None else todo,
        violations,
        n_tiles,
        n,
        k,
        len(order),
        max_passes,
        *strides,
        K=K,
        R=R,
        SKIPS=todo is not None,
        ORDERED=order != tuple(range(k)),
        num_warps=1,
    )


def by_component(array: Any) -> Any:
    """Return an array of shape (n, k) whose columns are contiguous; a copy if necessary."""
    n_rows, k = array.shape
    if array.stride(0) == 1 and (k == 1 or array.stride(1) >= n_rows):
        return array
    return array.T.contiguous().T


@lru_cache(maxsize=64)
def _order(order: tuple[int, ...], device: Any) -> Any:
    # Kept, because a copy from the host would wait, and cannot be part of a CUDA graph.
    import torch

    return torch.tensor(order, dtype=torch.int32).to(device)


def gram_chunks(gram: Gram, n_rows: int, k: int, dtype: Any) -> Any:
    """Yield ranges of rows with their matrices (n_matrices, k, k); a matrix serves rows in a row."""
    whole = slice(0, n_rows)
    if isinstance(gram, SharedGram):
        yield whole, to_torch(gram.matrix).to(dtype).contiguous()[None]
        return
    if isinstance(gram, DenseGrams):
        yield whole, to_torch(gram.matrices).to(dtype).contiguous()
        return
    for rows in ranges(0, n_rows, max(1, CHUNK_ENTRIES // (k * k))):
        yield rows, to_torch(gram.dense_rows(rows.start, rows.stop)).to(dtype)
