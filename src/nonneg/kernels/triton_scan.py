"""The scan on an NVIDIA GPU: product and minimum in one kernel, so that no block of scores is ever written.

A first scan has its products in half precision, added up in float32, which is as exact as TF32 and twice as
fast. A bound on its errors, made of the very roundings of the points and residuals, says which columns it
cannot decide. These are scanned again with three TF32 products for one of float32, and what is still too
close is decided in float64.

The kernel does not know the few entries where the slope of the penalty is above its base. It returns the two
lowest scores with their points and a bound on all others: with these the entries are put right afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nonneg._typing import Array, IntArray
from nonneg.kernels.portable.self_dictionary import Scan

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if TYPE_CHECKING:
    from nonneg.kernels.self_dictionary import Dictionary, PenaltySlope

COLUMNS = 64
POINTS = 128
FEATURES = 128
WARPS = 8
STAGES = 2
OLDEST = (8, 0)  # Ampere: the first chips with TF32


if triton is not None:

    @triton.jit
    def _lowest(
        points,
        columns,
        low1,
        at1,
        low2,
        at2,
        low3,
        n_points,
        n_columns,
        DEPTH: tl.constexpr,
        N_COLUMNS: tl.constexpr,
        N_POINTS: tl.constexpr,
        N_FEATURES: tl.constexpr,
    ):
        column = tl.program_id(0) * N_COLUMNS + tl.arange(0, N_COLUMNS)
        lane = tl.arange(0, N_POINTS)
        feature = tl.arange(0, N_FEATURES)
        wanted = column < n_columns
        mine = columns + column.to(tl.int64)[:, None] * DEPTH + feature[None, :]
        right = tl.load(mine, mask=wanted[:, None], other=0.0)
        best = tl.full((N_COLUMNS, N_POINTS), float("inf"), tl.float32)
        second = tl.full((N_COLUMNS, N_POINTS), float("inf"), tl.float32)
        index = tl.zeros((N_COLUMNS, N_POINTS), tl.int32)
        # Every lane keeps the lowest of the points it sees; they meet at the end alone.
        for start in range(0, n_points, N_POINTS):
            point = start + lane
            inside = point < n_points
            there = points + point.to(tl.int64)[None, :] * DEPTH + feature[:, None]
            left = tl.load(there, mask=inside[None, :], other=0.0)
            scores = tl.dot(right, left, input_precision="tf32x3")
            for more in range(N_FEATURES, DEPTH, N_FEATURES):
                further = tl.load(mine + more, mask=wanted[:, None], other=0.0)
                left = tl.load(there + more, mask=inside[None, :], other=0.0)
                scores = tl.dot(further, left, scores, input_precision="tf32x3")
            scores = tl.where(inside[None, :], scores, float("inf"))
            less = scores < best
            second = tl.minimum(second, tl.where(less, best, scores))
            index = tl.where(less, point[None, :], index)
            best = tl.where(less, scores, best)
        lowest = tl.min(best, axis=1)
        first = tl.min(tl.where(best == lowest[:, None], index, 2147483647), axis=1)
        others = tl.where((best == lowest[:, None]) & (index == first[:, None]), float("inf"), best)
        lower = tl.min(others, axis=1)
        then = tl.min(tl.where(others == lower[:, None], index, 2147483647), axis=1)
        others = tl.where((others == lower[:, None]) & (index == then[:, None]), float("inf"), others)
        rest = tl.minimum(tl.min(others, axis=1), tl.min(second, axis=1))
        tl.store(low1 + column, lowest, mask=wanted)
        tl.store(at1 + column, first, mask=wanted)
        tl.store(low2 + column, lower, mask=wanted)
        tl.store(at2 + column, then, mask=wanted)
        tl.store(low3 + column, rest, mask=wanted)


def serves(array: Any) -> bool:
    """Tell whether the kernel runs where an array is.

    Parameters
    ----------
    array : torch.Tensor
        On a CUDA device.

    Returns
    -------
    bool
        True with Triton installed and a chip that has TF32.
    """
    if triton is None:
        return False
    import torch

    return bool(torch.cuda.get_device_capability(array.device) >= OLDEST)


@dataclass(frozen=True)
class Lowest:
    """The two lowest scores of every column and a bound on the others.

    Attributes
    ----------
    scores : array of float32 of shape (2, n_columns)
        The lowest score, and the lowest among the other lanes.
    points : array of int32 of shape (2, n_columns)
        Their points.
    others : array of float32 of shape (n_columns,)
        No other score is below this.
    """

    scores: Array
    points: Array
    others: Array


def lowest_scores(points: Array, columns: Array) -> Lowest:
    """Run the kernel.

    Parameters
    ----------
    points : torch.Tensor of shape (n_points, depth)
        float16 or float32, contiguous; the depth is a power of two up to 128 (at least 16), or a multiple of
        128.
    columns : torch.Tensor of shape (n_columns, depth)
        Of the same type.

    Returns
    -------
    Lowest
        Of points @ columns.T, column by column.
    """
    import torch

    n_points, depth = points.shape
    n_columns = columns.shape[0]
    scores = torch.empty((3, n_columns), dtype=torch.float32, device=points.device)
    index = torch.empty((2, n_columns), dtype=torch.int32, device=points.device)
    _lowest[(triton.cdiv(n_columns, COLUMNS),)](
        points,
        columns,
        scores[0],
        index[0],
        scores[1],
        index[1],
        scores[2],
        n_points,
        n_columns,
        DEPTH=depth,
        N_COLUMNS=COLUMNS,
        N_POINTS=POINTS,
        N_FEATURES=min(depth, FEATURES),
        num_warps=WARPS,
        num_stages=STAGES,
    )
    return Lowest(scores[:2], index, scores[2])


def best_atoms(
    dictionary: Dictionary, residual: Array, slope: PenaltySlope, columns: IntArray | None = None
) -> IntArray:
    """Return the best data point of every column; see `kernels.self_dictionary.best_atoms`.

    Parameters
    ----------
    dictionary : Dictionary
        The data points, on the device.
    residual : torch.Tensor of float64 of shape (n_points, n_features)
        The rows r_l, on the device.
    slope : PenaltySlope
        The penalty's part, in NumPy.
    columns : array of int, optional
        The columns wanted; all by default.

    Returns
    -------
    array of int64 of shape (n_columns,)
        In NumPy.
    """
    import torch

    scan = Scan(dictionary, residual, slope)
    wanted = np.arange(len(slope.base)) if columns is None else np.asarray(columns, dtype=np.int64)
    right, sizes = scan.scaled_columns(wanted)
    out = np.zeros(len(wanted), dtype=np.int64)
    left = np.arange(len(wanted))
    for kind in (torch.float16, torch.float32):
        part = slice(None) if len(left) == len(wanted) else scan.placed(left)
        index, close = _decided(scan, right[part], sizes[part], wanted[left], kind)
        out[left] = index
        left = left[close]
        if not len(left):
            return out
    out[left] = scan.in_float64(wanted[left])
    return out


def padded_depth(n_features: int) -> int:
    """Return the number of features that the kernel takes, zeros included.

    Parameters
    ----------
    n_features : int
        How many there are.

    Returns
    -------
    int
        A power of two from 16 to 128, or a multiple of 128.
    """
    if n_features > FEATURES:
        return -(-n_features // FEATURES) * FEATURES
    return max(16, 1 << (n_features - 1).bit_length())


def _decided(scan: Scan, right: Array, sizes: Array, wanted: IntArray, kind: Any) -> tuple[IntArray, Any]:
    # The best points by products of a type, and which columns these cannot decide; both in NumPy.
    depth = padded_depth(right.shape[1])
    points, point_error, longest = _rounded(scan.scaled_points, depth, kind)
    columns, column_error, lengths = _rounded(right, depth, kind)
    found = lowest_scores(points, columns)
    # What the products and their sum add to the roundings of the factors: exact products of half precision,
    # three TF32 products that miss some of the last bits; tensor cores cut off instead of rounding.
    unit = (depth + 32) * (2.0**-23 if str(kind) == "torch.float16" else 2.0**-22)
    error = point_error.max() * (lengths + column_error) + longest.max() * column_error
    tol = 2.02 * (error + unit * longest.max() * lengths)
    scores = found.scores.double()
    row, column, extra = (scan.placed(array) for array in scan.listed(wanted))
    for place in range(2):
        hit = row == found.points[place][column]
        # An entry is listed once, so that no two values meet.
        scores[place, column[hit]] += extra[hit] / sizes[column[hit]]
    first = scores[0] <= scores[1]
    lowest = scores.min(dim=0).values
    index = first * found.points[0] + (~first) * found.points[1]
    apart = (scores.max(dim=0).values - lowest).minimum(found.others - lowest)
    close = ~(apart > tol)
    return index.long().cpu().numpy(), close.cpu().numpy()


def _rounded(matrix: Array, depth: int, kind: Any) -> tuple[Array, Array, Array]:
    # The matrix in a type, with zeros to the right; the norms of what rounding took, and of the rows.
    import torch

    out = torch.zeros((matrix.shape[0], depth), dtype=kind, device=matrix.device)
    out[:, : matrix.shape[1]] = matrix.to(kind)
    lost = torch.linalg.vector_norm(matrix - out[:, : matrix.shape[1]], dim=1)
    return out, lost, torch.linalg.vector_norm(matrix, dim=1)
