"""The scan for the best data point of every column, for PyTorch tensors: nothing comes home on the way.

A first scan has products of half precision. A bound on its errors, made of the very roundings of the points
and residuals, says in which columns the best point may be another than the few lowest that the kernel keeps;
these columns are scanned again in float32, and what is still too close to call in float64. Among the points
that are kept, float64 scores decide.

The kernel does not know the few entries where the slope of the penalty is above its base: they are put right
afterwards, and because they only ever raise a score, the bound on the points that were not kept stays one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nonneg._arrays import is_cuda_tensor
from nonneg._typing import Array, IntArray
from nonneg.kernels.self_dictionary import triton as triton_scan
from nonneg.kernels.self_dictionary.array_api import ENTRIES, lowest_scores
from nonneg.kernels.self_dictionary.torch_slope import TensorSlope

if TYPE_CHECKING:
    from nonneg.kernels.self_dictionary import Dictionary, PenaltySlope


class RoundedPoints:
    """The centred points within the unit ball in the types of the products, made once each."""

    def __init__(self, points: Array, centre: Array, inverse: float) -> None:
        self.points, self.centre, self.inverse = points, centre, inverse
        self.depth = triton_scan.padded_depth(points.shape[1] + 1)
        self._made: dict[Any, tuple[Array, Array, Array]] = {}

    def rows(self, wanted: Array) -> Array:
        """Return centred points in float64."""
        return self.points.index_select(0, wanted).double() - self.centre

    def in_type(self, kind: Any, base: Array) -> tuple[Array, Array, Array]:
        """Return the rounded points with the penalty's share as a further feature."""
        if kind not in self._made:
            scaled = (self.points.double() - self.centre) * self.inverse
            self._made[kind] = _rounded(scaled, self.depth, kind)
        out, lost, squares = self._made[kind]
        m = self.points.shape[1]
        out[:, m] = base
        last = base - out[:, m]
        return out, (lost + last * last).max().sqrt(), (squares + base * base).max().sqrt()


class TensorScan:
    """One scan."""

    def __init__(self, dictionary: Dictionary, residual: Array, slope: TensorSlope) -> None:
        self.rounded, self.radius = dictionary.rounded_tensor, dictionary.radius
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
        scan = triton_scan.lowest_scores if is_cuda_tensor(points) else lowest_scores
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

        centred = (self.rounded.points.double() - self.rounded.centre).T
        parts = []
        for part in wanted.split(max(1, ENTRIES // centred.shape[1])):
            slope = self.slope.of_columns(part)
            scores = self.residual.index_select(0, part) @ centred
            scores += slope.base
            scores[slope.columns, slope.rows] += slope.extra
            parts.append(scores.argmin(dim=1))
        return torch.cat(parts)


def best_atoms(
    dictionary: Dictionary, residual: Array, slope: TensorSlope, columns: Array | None = None
) -> Array:
    """Return the best data point of every column; see `kernels.self_dictionary.best_atoms`."""
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


def best_atoms_of_host(
    dictionary: Dictionary, residual: Array, slope: PenaltySlope, columns: IntArray | None = None
) -> IntArray:
    """Do the same where the penalty's part is in NumPy."""
    import torch

    there = TensorSlope.of(slope, residual.device)
    wanted = None
    if columns is not None:
        wanted = torch.as_tensor(np.asarray(columns, dtype=np.int64), device=residual.device)
    found: IntArray = best_atoms(dictionary, residual, there, wanted).cpu().numpy()
    return found


def _rounded(matrix: Array, depth: int, kind: Any) -> tuple[Array, Array, Array]:
    # The matrix in a type, with zeros to the right; the squared norms of what rounding took, and of the rows.
    out = matrix.new_zeros((matrix.shape[0], depth), dtype=kind)
    out[:, : matrix.shape[1]] = matrix
    lost = matrix - out[:, : matrix.shape[1]]
    return out, (lost * lost).sum(dim=1), (matrix * matrix).sum(dim=1)
