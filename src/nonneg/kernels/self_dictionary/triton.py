"""The oracle on an NVIDIA GPU: product and minimum in one kernel, so that no block of scores is ever written.

The products are of half precision, summed in float32, which is as exact as TF32 and twice as fast, or of
float32 by three TF32 products. `kernels.self_dictionary.torch` knows what such scores can decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._arrays import is_cuda_tensor
from nonneg._typing import Array
from nonneg.kernels.self_dictionary.types import KEPT, LowestScores

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

FEATURES = 128
# Points of up to this number of bytes are read at once, longer ones in parts of half as many, which must fit
# into shared memory.
WHOLE = 256
# Few columns are scanned by several programs each, up to this number of programs: some per multiprocessor.
PROGRAMS = 1024
# Minimum number of blocks of points per program.
LEAST_BLOCKS = 8
OLDEST = (8, 0)  # Ampere: the first chips with TF32


@dataclass(frozen=True)
class Tile:
    """The shape of one program of the kernel."""

    columns: int  # scores that it makes at a time
    points: int
    warps: int  # warps, and blocks of points in flight
    stages: int


# The fastest of those tried on an H200, by bytes of an entry.
TILES = {2: Tile(64, 64, 4, 3), 4: Tile(128, 64, 8, 2)}


if triton is not None:

    @triton.jit
    def _kept(scores, start, best, second, index):
        second = tl.minimum(second, tl.maximum(best, scores))
        index = tl.where(scores < best, start, index)
        return tl.minimum(best, scores), second, index

    # The number of columns differs from scan to scan: one kernel serves all of them.
    @triton.jit(do_not_specialize=[5, 6, 7])
    def _lowest(
        points,
        columns,
        low,
        at,
        others,
        n_points,
        n_columns,
        n_each,
        DEPTH: tl.constexpr,
        N_COLUMNS: tl.constexpr,
        N_POINTS: tl.constexpr,
        N_FEATURES: tl.constexpr,
        N_KEPT: tl.constexpr,
    ):
        column = tl.program_id(0) * N_COLUMNS + tl.arange(0, N_COLUMNS)
        part = tl.program_id(1)
        lane = tl.arange(0, N_POINTS)
        feature = tl.arange(0, N_FEATURES)
        wanted = column < n_columns
        mine = columns + column.to(tl.int64)[:, None] * DEPTH + feature[None, :]
        right = tl.load(mine, mask=wanted[:, None], other=0.0)
        best = tl.full((N_COLUMNS, N_POINTS), float("inf"), tl.float32)
        second = tl.full((N_COLUMNS, N_POINTS), float("inf"), tl.float32)
        index = tl.zeros((N_COLUMNS, N_POINTS), tl.int32)
        begin = part * n_each
        end = tl.minimum(begin + n_each, n_points)
        whole = begin + (end - begin) // N_POINTS * N_POINTS
        # Every lane keeps the lowest of its points; the lanes are merged at the end.
        for start in range(begin, whole, N_POINTS):
            there = points + (start + lane).to(tl.int64)[None, :] * DEPTH + feature[:, None]
            scores = tl.dot(right, tl.load(there), input_precision="tf32x3")
            for more in range(N_FEATURES, DEPTH, N_FEATURES):
                further = tl.load(mine + more, mask=wanted[:, None], other=0.0)
                scores = tl.dot(further, tl.load(there + more), scores, input_precision="tf32x3")
            best, second, index = _kept(scores, start, best, second, index)
        # The last points, fewer than a block.
        for start in range(whole, end, N_POINTS):
            inside = (start + lane < end)[None, :]
            there = points + (start + lane).to(tl.int64)[None, :] * DEPTH + feature[:, None]
            scores = tl.dot(right, tl.load(there, mask=inside, other=0.0), input_precision="tf32x3")
            for more in range(N_FEATURES, DEPTH, N_FEATURES):
                further = tl.load(mine + more, mask=wanted[:, None], other=0.0)
                left = tl.load(there + more, mask=inside, other=0.0)
                scores = tl.dot(further, left, scores, input_precision="tf32x3")
            scores = tl.where(inside, scores, float("inf"))
            best, second, index = _kept(scores, start, best, second, index)
        index += lane[None, :]
        rest = tl.min(second, axis=1)
        place = part.to(tl.int64) * N_KEPT * n_columns + column
        for kept in tl.static_range(N_KEPT):
            lowest = tl.min(best, axis=1)
            first = tl.min(tl.where(best == lowest[:, None], index, 2147483647), axis=1)
            tl.store(low + place + kept * n_columns, lowest, mask=wanted)
            tl.store(at + place + kept * n_columns, first, mask=wanted)
            taken = (best == lowest[:, None]) & (index == first[:, None])
            best = tl.where(taken, float("inf"), best)
        rest = tl.minimum(rest, tl.min(best, axis=1))
        tl.store(others + part.to(tl.int64) * n_columns + column, rest, mask=wanted)


def is_supported(array: Any) -> bool:
    """Tell whether the kernel runs on the device of an array."""
    if triton is None or not is_cuda_tensor(array):
        return False
    import torch

    in_interpreter = not array.is_cuda
    return in_interpreter or bool(torch.cuda.get_device_capability(array.device) >= OLDEST)


def lowest_scores(points: Array, columns: Array) -> LowestScores:
    """Run the kernel."""
    import torch

    n_points, depth = points.shape
    n_columns = columns.shape[0]
    size = points.element_size()
    tile = TILES[size]
    n_blocks = -(-n_columns // tile.columns)
    n_parts = max(1, min(PROGRAMS // n_blocks, n_points // (LEAST_BLOCKS * tile.points)))
    n_each = -(-n_points // (n_parts * tile.points)) * tile.points
    n_parts = -(-n_points // n_each)
    scores = torch.empty((n_parts, KEPT, n_columns), dtype=torch.float32, device=points.device)
    index = torch.empty((n_parts, KEPT, n_columns), dtype=torch.int32, device=points.device)
    others = torch.empty((n_parts, n_columns), dtype=torch.float32, device=points.device)
    _lowest[(n_blocks, n_parts)](
        points,
        columns,
        scores,
        index,
        others,
        n_points,
        n_columns,
        n_each,
        DEPTH=depth,
        N_COLUMNS=tile.columns,
        N_POINTS=tile.points,
        N_FEATURES=depth if depth * size <= WHOLE else WHOLE // (2 * size),
        N_KEPT=KEPT,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    if n_parts == 1:
        return LowestScores(scores[0], index[0], others[0])
    kept, place = scores.view(-1, n_columns).topk(KEPT + 1, dim=0, largest=False)
    return LowestScores(
        kept[:KEPT],
        index.view(-1, n_columns).gather(0, place[:KEPT]),
        others.min(dim=0).values.minimum(kept[KEPT]),
    )


def padded_depth(n_features: int) -> int:
    """Return the number of features after padding with zeros."""
    if n_features > FEATURES:
        return -(-n_features // FEATURES) * FEATURES
    return max(16, 1 << (n_features - 1).bit_length())
