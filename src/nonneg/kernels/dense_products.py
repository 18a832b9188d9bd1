"""Products of a float32 matrix with tall factors on tensor cores, as accurate as those of float32.

Up to rounding a float32 number is the sum of two numbers with the 10 bits that tensor cores take: three of
their products give one of float32 (3xTF32). What limits them is reading X, not arithmetic.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from nonneg._arrays import is_cuda_tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

MOST_COMPONENTS = 128
# Compute capability from which there are tensor cores for TF32.
OLDEST = (8, 0)
# Where cuBLAS is faster: fewer entries of X, fewer components, or rows that do not begin at multiples of 64
# bytes. On an H200 X H' and X' W take 0.75 and 0.96 ms for 200000 x 2000, k = 50 (cuBLAS: 1.04 and 1.13), but
# 0.12 and 0.12 for 20000 x 2000, k = 20 (0.11 and 0.10).
LEAST_ENTRIES, LEAST_COMPONENTS, ALIGNED = 1 << 27, 33, 16


class Tile(NamedTuple):
    """How a program is cut: its rows of the result, entries of a sum at once, warps and stages."""

    rows: int
    depth: int
    warps: int
    stages: int


TIMES = Tile(128, 32, 4, 4)
TRANSPOSED = Tile(128, 32, 8, 3)
# Programs for each multiprocessor that share the sums over the rows of X.
PARTS = 4


if triton is not None:

    @triton.jit
    def _times(X, Ht, out, n, m, k, ROWS: tl.constexpr, K: tl.constexpr, DEPTH: tl.constexpr):
        row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        c = tl.arange(0, K)
        j = tl.arange(0, DEPTH)
        total = tl.zeros([ROWS, K], tl.float32)
        for start in range(0, m, DEPTH):
            some = start + j < m
            x = tl.load(
                X + row[:, None] * m + (start + j)[None, :],
                mask=(row < n)[:, None] & some[None, :],
                other=0.0,
            )
            h_at = Ht + c[None, :] * m + (start + j)[:, None]
            h = tl.load(h_at, mask=(c < k)[None, :] & some[:, None], other=0.0)
            total = tl.dot(x, h, total, input_precision="tf32x3")
        place = out + c.to(tl.int64)[None, :] * n + row[:, None]
        tl.store(place, total, mask=(row < n)[:, None] & (c < k)[None, :])

    @triton.jit
    def _transposed(X, W, out, n, m, k, each, ROWS: tl.constexpr, K: tl.constexpr, DEPTH: tl.constexpr):
        column = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        part = tl.program_id(1).to(tl.int64)
        c = tl.arange(0, K)
        j = tl.arange(0, DEPTH)
        total = tl.zeros([ROWS, K], tl.float32)
        for start in range(part * each, tl.minimum((part + 1) * each, n), DEPTH):
            i = start + j
            x = tl.load(
                X + i[:, None] * m + column[None, :], mask=(i < n)[:, None] & (column < m)[None, :], other=0.0
            )
            w = tl.load(
                W + c.to(tl.int64)[None, :] * n + i[:, None],
                mask=(c < k)[None, :] & (i < n)[:, None],
                other=0.0,
            )
            total = tl.dot(tl.trans(x), w, total, input_precision="tf32x3")
        place = out + (part * k + c[None, :]) * m + column[:, None]
        tl.store(place, total, mask=(column < m)[:, None] & (c < k)[None, :])


def is_supported(X: Any, factor: Any) -> bool:
    """Tell whether X is a large float32 tensor by rows on a GPU with tensor cores, and k is small."""
    if triton is None or not is_cuda_tensor(X) or X.element_size() != 4 or not X.is_contiguous():
        return False
    import torch

    faster = LEAST_COMPONENTS <= factor.shape[1] <= MOST_COMPONENTS and X.shape[1] % ALIGNED == 0
    return faster and X.numel() >= LEAST_ENTRIES and torch.cuda.get_device_capability(X.device) >= OLDEST


def times(X: Any, Ht: Any) -> Any:
    """Return X Ht, stored component by component."""
    import torch

    (n, m), k = X.shape, Ht.shape[1]
    out = torch.empty((k, n), dtype=X.dtype, device=X.device)
    tile = TIMES
    _times[(-(-n // tile.rows),)](
        X, Ht.T.contiguous(), out, n, m, k, ROWS=tile.rows, K=_padded(k), DEPTH=tile.depth,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out.T


def transposed_times(X: Any, W: Any) -> Any:
    """Return X' W, stored component by component; sums over parts of the rows are added in order."""
    import torch

    (n, m), k = X.shape, W.shape[1]
    tile = TRANSPOSED
    n_blocks = -(-m // tile.rows)
    each = -(-n // (max(1, PARTS * processors(X.device) // n_blocks) * tile.depth)) * tile.depth
    n_parts = -(-n // each)
    out = torch.empty((n_parts, k, m), dtype=X.dtype, device=X.device)
    _transposed[(n_blocks, n_parts)](
        X, W.T.contiguous(), out, n, m, k, each, ROWS=tile.rows, K=_padded(k), DEPTH=tile.depth,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return torch.sum(out, dim=0).T


@lru_cache(maxsize=16)
def processors(device: Any) -> int:
    """Return the number of multiprocessors; 1 for Triton's interpreter."""
    import torch

    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def _padded(k: int) -> int:
    return max(16, 1 << (k - 1).bit_length())
