"""The scan for the best data point of every column, for PyTorch tensors: nothing comes home on the way.

A first scan has products of half precision. A bound on its errors, made of the very roundings of the points
and residuals, says in which columns the best point may be another than the few lowest that the kernel keeps;
these columns are scanned again in float32, and what is still too close to call in float64. Among the points
that are kept, float64 scores decide.

The kernel does not know the few entries where the slope of the penalty is above its base: they are put right
afterwards, and because they only ever raise a score, the bound on the points that were not kept stays one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arrays import is_cuda_tensor
from nonneg._typing import Array
from nonneg.kernels.self_dictionary import triton
from nonneg.kernels.self_dictionary.types import (
    KEPT,
    Dictionary,
    Lowest,
    PenaltyGradient,
    TensorPenaltyGradient,
)

# Scores that exist at a time: 256 MB in float32.
ENTRIES = 1 << 26


class RoundedPoints:
    """The centered points within the unit ball in the types of the products, made once each."""

    def __init__(self, points: Array, center: Array, inverse: float) -> None:
        self.points, self.center, self.inverse = points, center, inverse
        self.depth = triton.padded_depth(points.shape[1] + 1)
        self._made: dict[Any, tuple[Array, Array, Array]] = {}

    def rows(self, wanted: Array) -> Array:
        """Return centered points in float64."""
        return self.points.index_select(0, wanted).double() - self.center

    def in_type(self, kind: Any, base: Array) -> tuple[Array, Array, Array]:
        """Return the rounded points with the penalty's share as a further feature."""
        if kind not in self._made:
            scaled = (self.points.double() - self.center) * self.inverse
            self._made[kind] = _rounded(scaled, self.depth, kind)
        out, lost, squares = self._made[kind]
        m = self.points.shape[1]
        out[:, m] = base
        last = base - out[:, m]
        return out, (lost + last * last).max().sqrt(), (squares + base * base).max().sqrt()


class TensorScan:
    """One scan."""

    def __init__(self, dictionary: Dictionary, residual: Array, slope: TensorPenaltyGradient) -> None:
        if "rounded_tensors" not in dictionary.cache:
            dictionary.cache["rounded_tensors"] = RoundedPoints(
                dictionary.points, dictionary.center, dictionary.inverse
            )
        self.rounded: RoundedPoints = dictionary.cache["rounded_tensors"]
        self.radius = dictionary.radius
        self.residual, self.slope = residual, slope
        largest = slope.base.max()
        # Where its inverse would overflow, float64 scores alone can tell.
        self.base_scale = largest * (largest > 1e-290)
        inverse = 1.0 / (self.base_scale + (self.base_scale == 0))
        self.base = slope.base * (inverse * (self.base_scale > 0))

    def scaled_columns(self, rows: Array, kind: Any) -> tuple[Array, Array, Array, Array]:
        """Return residuals scaled so that no score exceeds 1, in the type of the products."""
        m = rows.shape[1]
        sizes = self.radius * (rows * rows).sum(dim=1).sqrt() + self.base_scale
        sizes = sizes + (sizes == 0)
        out, lost, squares = _rounded(rows * (self.radius / sizes)[:, None], self.rounded.depth, kind)
        factor = self.base_scale / sizes
        out[:, m] = factor
        last = factor - out[:, m]
        return out, (lost + last * last).sqrt(), (squares + factor * factor).sqrt(), sizes

    def decided(self, wanted: Array | None, kind: Any) -> tuple[Array, Array]:
        """Return the best points by products of a type."""
        import torch

        rows = self.residual if wanted is None else self.residual.index_select(0, wanted)
        slope = self.slope if wanted is None else self.slope.of_columns(wanted)
        points, point_error, longest = self.rounded.in_type(kind, self.base)
        columns, column_error, lengths, sizes = self.scaled_columns(rows, kind)
        scan = triton.lowest_scores if is_cuda_tensor(points) else lowest_scores
        found = scan(points, columns)
        # What the products and their sum add to the roundings of the factors: exact products of half
        # precision, three TF32 products that miss some of the last bits; tensor cores cut off instead of
        # rounding.
        unit = (self.rounded.depth + 32) * (2.0**-23 if str(kind) == "torch.float16" else 2.0**-22)
        error = point_error * (lengths + column_error) + longest * column_error
        tol = 2.02 * (error + unit * longest * lengths)
        index = torch.zeros_like(found.points[0], dtype=torch.int64)
        lowest, best = (torch.full_like(sizes, float("inf")) for _ in range(2))
        for score, point in zip(found.scores, found.points, strict=True):
            real = score.isfinite()
            place = (point * real).long()
            extra = slope.beyond_base(place)
            lowest = lowest.minimum(score + extra / sizes)
            exact = (self.rounded.rows(place) * rows).sum(dim=1) + slope.base[place] + extra
            better = real & ((exact < best) | ((exact == best) & (place < index)))
            best, index = exact.where(better, best), place.where(better, index)
        return index, ~(found.others - lowest > tol)

    def in_float64(self, wanted: Array) -> Array:
        """Return the best points by float64 scores of all points."""
        import torch

        centered = (self.rounded.points.double() - self.rounded.center).T
        parts = []
        for part in wanted.split(max(1, ENTRIES // centered.shape[1])):
            slope = self.slope.of_columns(part)
            scores = self.residual.index_select(0, part) @ centered
            scores += slope.base
            scores[slope.columns, slope.rows] += slope.extra
            parts.append(scores.argmin(dim=1))
        return torch.cat(parts)


def minimizing_vertices(
    dictionary: Dictionary,
    residual: Array,
    slope: PenaltyGradient | TensorPenaltyGradient,
    columns: Any = None,
) -> Any:
    """Return the best data point of every column; see `kernels.self_dictionary.minimizing_vertices`."""
    if isinstance(slope, TensorPenaltyGradient):
        return _minimizing_vertices(dictionary, residual, slope, columns)
    import torch

    if columns is not None:
        columns = torch.as_tensor(np.asarray(columns, dtype=np.int64), device=residual.device)
    found = _minimizing_vertices(
        dictionary, residual, TensorPenaltyGradient.of(slope, residual.device), columns
    )
    return found.cpu().numpy()


def _minimizing_vertices(
    dictionary: Dictionary, residual: Array, slope: TensorPenaltyGradient, columns: Array | None
) -> Array:
    import torch

    scan = TensorScan(dictionary, residual, slope)
    out, doubtful = scan.decided(columns, torch.float16)
    left = doubtful.nonzero()[:, 0]
    if len(left):
        out[left], doubtful = scan.decided(left if columns is None else columns[left], torch.float32)
        left = left[doubtful]
    if len(left):
        out[left] = scan.in_float64(left if columns is None else columns[left])
    return out


def lowest_scores(points: Array, columns: Array) -> Lowest:
    """Return the lowest products of points with columns; see `kernels.self_dictionary.triton`."""
    import torch

    n_points, n_columns = points.shape[0], columns.shape[0]
    scores = torch.full((n_columns, KEPT + 1), float("inf"), device=points.device)
    index = torch.zeros((n_columns, KEPT + 1), dtype=torch.int32, device=points.device)
    n_kept, step = min(KEPT + 1, n_points), max(1, ENTRIES // n_points)
    for start in range(0, n_columns, step):
        part = slice(start, start + step)
        found = (columns[part].float() @ points.float().T).topk(n_kept, dim=1, largest=False)
        scores[part, :n_kept], index[part, :n_kept] = found.values, found.indices.int()
    return Lowest(scores[:, :KEPT].T, index[:, :KEPT].T, scores[:, KEPT])


def _rounded(matrix: Array, depth: int, kind: Any) -> tuple[Array, Array, Array]:
    # The matrix in a type, with zeros to the right; the squared norms of what rounding took, and of the rows.
    out = matrix.new_zeros((matrix.shape[0], depth), dtype=kind)
    out[:, : matrix.shape[1]] = matrix
    lost = matrix - out[:, : matrix.shape[1]]
    return out, (lost * lost).sum(dim=1), (matrix * matrix).sum(dim=1)
