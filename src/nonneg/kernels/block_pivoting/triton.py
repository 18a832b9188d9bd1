"""Exact nonnegative least squares by block principal pivoting on an NVIDIA GPU: a program for a row.

A program makes all exchanges of its row. The equations of the passive components are solved in float64 by a
Cholesky factorization, column by column; the factor lies in memory that the program keeps for all of its
rows, so that it stays in the cache of its processor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from nonneg._arrays import from_torch, on_gpu, to_torch
from nonneg.kernels.grams import CHUNK_ENTRIES, Gram, SharedGram
from nonneg.kernels.hals.triton import by_component, gram_chunks
from nonneg.kernels.rows import ranges
from nonneg.kernels.sparse_products.triton import constants

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

MOST_COMPONENTS = 256
# Programs for each multiprocessor and warps for each program, by the padded number of components: 70 MB of
# factors on a card with 132 multiprocessors.
PROGRAMS = {16: 32, 32: 32, 64: 16, 128: 4, 256: 1}
WARPS = {16: 1, 32: 1, 64: 1, 128: 4, 256: 8}
# Columns of the factor that are read at once; more of them spill.
COLUMNS = 4
# Numbers as arguments would be rounded to float32: the tolerance of slopes relative to the largest entry of
# the right-hand side, and the smallest pivot relative to its diagonal entry.
NUMBERS = (1e-14, 1e-13)
# Multipliers are solved for where the smallest pivot of G is above this part of its diagonal entry: the
# inverse then has about ten digits.
SOUND = 1e-6
# Entries of a chunk of rows that are solved for their multipliers: some nine arrays of 16 MB.
DUAL_ENTRIES = CHUNK_ENTRIES // 8


if triton is not None:

    @triton.jit
    def _solve(
        gram_at,
        cross_at,
        cross_stride,
        listed,
        lower,
        y_at,
        x_at,
        n,
        k,
        floor,
        N: tl.constexpr,
        C: tl.constexpr,
    ):
        # Solve the equations of the n listed components; write the solution beside their numbers.
        i = tl.arange(0, N)
        c = tl.arange(0, C)
        here = i < n
        index = tl.load(listed + i, mask=here, other=0).to(tl.int64)
        solved = 1
        j = 0
        while (j < n) & (solved == 1):
            p = tl.load(listed + j).to(tl.int64)
            column = tl.load(gram_at + p * k + index, mask=here & (i >= j), other=0.0).to(tl.float64)
            y = tl.load(cross_at + p * cross_stride).to(tl.float64)
            for first in range(0, j, C):
                before = first + c < j
                at = lower + (first + c) * n
                left = tl.load(
                    at[:, None] + i[None, :], mask=before[:, None] & (here & (i >= j))[None, :], other=0.0
                )
                of_j = tl.load(at + j, mask=before, other=0.0)
                column -= tl.sum(left * of_j[:, None], axis=0)
                y -= tl.sum(of_j * tl.load(y_at + first + c, mask=before, other=0.0), axis=0)
            pivot = tl.sum(tl.where(i == j, column, 0.0), axis=0)
            diagonal = tl.load(gram_at + p * k + p).to(tl.float64)
            solved = (pivot > floor * diagonal).to(tl.int32)
            inverse = 1.0 / tl.sqrt(tl.where(solved == 1, pivot, 1.0))
            tl.store(lower + j * n + i, column * inverse, mask=here & (i >= j))
            tl.store(y_at + j, y * inverse)
            tl.debug_barrier()
            j += 1
        x = tl.zeros([N], tl.float64)
        if solved == 1:
            for back in range(n):
                q = n - 1 - back
                row = tl.load(lower + q * n + i, mask=here & (i >= q), other=0.0)
                corner = tl.sum(tl.where(i == q, row, 0.0), axis=0)
                rest = tl.load(y_at + q) - tl.sum(row * x, axis=0)
                x = tl.where(i == q, rest / corner, x)
        tl.store(x_at + i, x, mask=here)
        tl.debug_barrier()
        return solved

    @triton.jit
    def _pivot(
        factor,
        cross,
        out,
        unsolved,
        done,
        gram,
        numbers,
        all_lower,
        all_vectors,
        all_listed,
        n_rows,
        n,
        k,
        max_pivots,
        factor_stride,
        cross_stride,
        out_stride,
        N: tl.constexpr,
        C: tl.constexpr,
    ):
        program = tl.program_id(0).to(tl.int64)
        a = tl.arange(0, N)
        c = tl.arange(0, C)
        real = a < k
        lower = all_lower + program * N * N
        y_at = all_vectors + program * 2 * N
        x_at = y_at + N
        listed = all_listed + program * N
        tolerance = tl.load(numbers)
        floor = tl.load(numbers + 1)
        for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
            gram_at = gram + (row // n).to(tl.int64) * k * k
            cross_at = cross + row
            target = tl.load(cross_at + a.to(tl.int64) * cross_stride, mask=real, other=0.0).to(tl.float64)
            diagonal = tl.load(gram_at + a * k + a, mask=real, other=0.0).to(tl.float64)
            start = tl.load(factor + a.to(tl.int64) * factor_stride + row, mask=real, other=0.0)
            curved = real & (diagonal > 0)
            passive = (curved & (start > 0)).to(tl.int32)
            least = -tolerance * tl.max(tl.abs(target), axis=0)
            fewest = k + 1
            patience = 3
            n_pivots = 0
            state = tl.load(done + row).to(tl.int32)  # 1: solved, 2: singular, 3: solved before
            x = tl.zeros([N], tl.float64)
            while (state == 0) & (n_pivots < max_pivots):
                n_pivots += 1
                n_passive = tl.sum(passive, axis=0)
                place = tl.cumsum(passive, axis=0) - 1
                tl.debug_barrier()  # what was written before has been read by all
                tl.store(listed + place, a, mask=passive == 1)
                tl.debug_barrier()
                solved = _solve(
                    gram_at, cross_at, cross_stride, listed, lower, y_at, x_at, n_passive, k, floor, N, C
                )
                x = tl.load(x_at + place, mask=passive == 1, other=0.0)
                slope = -target
                for first in range(0, n_passive, C):
                    valid = first + c < n_passive
                    p = tl.load(listed + first + c, mask=valid, other=0)
                    weight = tl.load(x_at + first + c, mask=valid, other=0.0)
                    rows = tl.load(
                        gram_at + p[:, None] * k + a[None, :], mask=valid[:, None] & real[None, :], other=0.0
                    )
                    slope += tl.sum(rows.to(tl.float64) * weight[:, None], axis=0)
                wrong = tl.where(passive == 1, x < 0, (slope < least) & curved).to(tl.int32)
                n_wrong = tl.sum(wrong, axis=0)
                state = tl.where(solved == 0, 2, tl.where(n_wrong == 0, 1, 0))
                # All are exchanged while that makes progress, else only the last one, which always ends.
                better = n_wrong < fewest
                only_last = (better == 0) & (patience <= 0)
                patience = tl.where(better, 3, tl.where(only_last, patience, patience - 1))
                fewest = tl.where(better, n_wrong, fewest)
                last = tl.max(tl.where(wrong == 1, a, -1), axis=0)
                wrong = tl.where(only_last, (a == last).to(tl.int32), wrong)
                passive = tl.where(wrong == 1, 1 - passive, passive)
            new = tl.where(state == 1, x.to(start.dtype), start)
            tl.store(out + a.to(tl.int64) * out_stride + row, new, mask=a < k * tl.where(state == 3, 0, 1))
            tl.store(unsolved + row, (1 - state % 2).to(tl.int8))


def is_supported(factor: Any) -> bool:
    """Tell whether the rows are on an NVIDIA GPU, with few enough components, and Triton is installed."""
    return triton is not None and on_gpu(factor) and factor.shape[1] <= MOST_COMPONENTS


def block_pivoting(
    factor: Any, gram: Gram, cross: Any, max_pivots: int, *, in_place: bool = False
) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.block_pivoting.block_pivoting`."""
    import torch

    like = factor
    factor, cross = by_component(to_torch(factor)), by_component(to_torch(cross))
    (n_rows, k), device = factor.shape, factor.device
    # A program reads the guess of a row before it writes that row.
    out = factor if in_place else torch.empty((k, n_rows), dtype=factor.dtype, device=device).T
    unsolved = torch.zeros(n_rows, dtype=torch.int8, device=device)
    done = torch.zeros(n_rows, dtype=torch.int8, device=device)
    launch = _launcher(n_rows, k, max_pivots, device)
    if isinstance(gram, SharedGram):
        _solve_duals(launch, to_torch(gram.matrix), factor, cross, out, done)
    for rows, matrices in gram_chunks(gram, n_rows, k, factor.dtype):
        launch(factor[rows], cross[rows], out[rows], unsolved[rows], done[rows], matrices)
    return from_torch(out, like), from_torch(unsolved.bool(), like)


def _launcher(n_rows: int, k: int, max_pivots: int, device: Any) -> Callable[..., None]:
    """Return a function that runs the kernel on some rows; all calls share the memory of its programs."""
    import torch

    N = max(16, triton.next_power_of_2(k))
    numbers = constants(torch.float64, device, *NUMBERS)
    n_programs = min(max(n_rows, 1), PROGRAMS[N] * _processors(device))
    lower = torch.empty(n_programs * N * N, dtype=torch.float64, device=device)
    vectors = torch.empty(n_programs * 2 * N, dtype=torch.float64, device=device)
    listed = torch.empty(n_programs * N, dtype=torch.int32, device=device)

    def launch(factor: Any, cross: Any, out: Any, unsolved: Any, done: Any, matrices: Any) -> None:
        n_some = factor.shape[0]
        if n_some == 0:
            return
        _pivot[(min(n_some, n_programs),)](
            factor, cross, out, unsolved, done, matrices, numbers, lower, vectors, listed, n_some,
            n_some // matrices.shape[0], k, max_pivots, factor.stride(1), cross.stride(1), out.stride(1),
            N=N, C=COLUMNS, num_warps=WARPS[N],
        )  # fmt: skip

    return launch


def _solve_duals(
    launch: Callable[..., None], gram: Any, factor: Any, cross: Any, out: Any, done: Any
) -> None:
    """Solve rows with few zeros for the multipliers of those; write 3 where that is done."""
    # With B = G^-1 and the minimizer z = c B over all numbers, x = z + s B, where the multipliers s >= 0
    # minimize 0.5 s B s' + z s'. They are positive where x is zero: few equations where x has few zeros.
    import torch

    wide = gram.to(torch.float64)
    lower, failed = torch.linalg.cholesky_ex(wide)
    sound = (failed == 0) & (lower.diagonal() ** 2 > SOUND * wide.diagonal()).all()
    eye = torch.eye(wide.shape[0], dtype=wide.dtype, device=wide.device)
    half = torch.linalg.solve_triangular(torch.where(sound, lower, eye), eye, upper=False)
    inverse = half.T @ half
    n_rows, k = factor.shape
    for rows in ranges(0, n_rows, max(1, DUAL_ENTRIES // k)):
        target = cross[rows].T.to(torch.float64)
        free = inverse @ target
        free += inverse @ (target - wide @ free)
        zero = factor[rows].T <= 0
        suits = (2 * zero.sum(dim=0) <= k) & sound
        skip = torch.where(suits, 0, 3).to(torch.int8)
        multipliers, unsolved = torch.zeros_like(free), torch.zeros_like(skip)
        launch(zero.to(free.dtype).T, -free.T, multipliers.T, unsolved, skip, inverse[None])
        x = torch.where(multipliers > 0, 0.0, free + inverse @ multipliers)
        solved = suits & (unsolved == 0)
        # Others keep their guess: `out` may be the memory of `factor`.
        out[rows].T.copy_(torch.where(solved, x.clip(min=0.0).to(factor.dtype), factor[rows].T))
        done[rows] = torch.where(solved, 3, 0).to(torch.int8)


@lru_cache(maxsize=16)
def _processors(device: Any) -> int:
    """Return the number of multiprocessors; 1 for Triton's interpreter."""
    import torch

    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
