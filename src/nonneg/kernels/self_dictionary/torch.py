"""The vertex of every column for PyTorch tensors, without transfers to the host.

A first scan uses products of half precision. An error bound, computed from the actual rounding errors of the
points and residuals, says in which columns the minimum may not be among the few lowest scores that the kernel
keeps; these columns are scanned again in float32, and what is still too close to call in float64. Among the
points that are kept, float64 scores decide.

The kernel does not know the few entries where the gradient of the penalty exceeds its base: they are
corrected afterwards. Because they only increase a score, the bound on the other points remains valid.
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
    LowestScores,
    PenaltyGradient,
    TensorPenaltyGradient,
)

# Scores that exist at a time: 256 MB in float32.
ENTRIES = 1 << 26


class RoundedPoints:
    """The points, centered and scaled into the unit ball, in each dtype of the products; computed once."""

    def __init__(self, points: Array, center: Array, inverse: float) -> None:
        self.points, self.center, self.inverse = points, center, inverse
        self.depth = triton.padded_depth(points.shape[1] + 1)
        self._made: dict[Any, tuple[Array, Array, Array]] = {}

    def rows(self, wanted: Array) -> Array:
        """Return centered points in float64."""
        return self.points.index_select(0, wanted).double() - self.center

    def in_type(self, dtype: Any, base: Array) -> tuple[Array, Array, Array]:
        """Return the rounded points with the base of the penalty as one more feature."""
        if dtype not in self._made:
            scaled = (self.points.double() - self.center) * self.inverse
            self._made[dtype] = _rounded(scaled, self.depth, dtype)
        out, lost, squares = self._made[dtype]
        m = self.points.shape[1]
        out[:, m] = base
        last = base - out[:, m]
        return out, (lost + last * last).max().sqrt(), (squares + base * base).max().sqrt()


class TensorScan:
    """One scan."""

    def __init__(self, dictionary: Dictionary, residual: Array, gradient: TensorPenaltyGradient) -> None:
        if "rounded_tensors" not in dictionary.cache:
            dictionary.cache["rounded_tensors"] = RoundedPoints(
                dictionary.points, dictionary.center, dictionary.inverse
            )
        self.rounded: RoundedPoints = dictionary.cache["rounded_tensors"]
        self.radius = dictionary.radius
        self.residual, self.gradient = residual, gradient
        largest = gradient.base.max()
        # Where its inverse would overflow, float64 scores decide.
        self.base_scale = largest * (largest > 1e-290)
        inverse = 1.0 / (self.base_scale + (self.base_scale == 0))
        self.base = gradient.base * (inverse * (self.base_scale > 0))

    def scaled_columns(self, rows: Array, dtype: Any) -> tuple[Array, Array, Array, Array]:
        """Return residuals scaled so that no score exceeds 1, in the dtype of the products."""
        m = rows.shape[1]
        sizes = self.radius * (rows * rows).sum(dim=1).sqrt() + self.base_scale
        sizes = sizes + (sizes == 0)
        out, lost, squares = _rounded(rows * (self.radius / sizes)[:, None], self.rounded.depth, dtype)
        factor = self.base_scale / sizes
        out[:, m] = factor
        last = factor - out[:, m]
        return out, (lost + last * last).sqrt(), (squares + factor * factor).sqrt(), sizes

    def decided(self, wanted: Array | None, dtype: Any) -> tuple[Array, Array]:
        """Return the vertices by products of a dtype, and which of them are undecided."""
        import torch

        rows = self.residual if wanted is None else self.residual.index_select(0, wanted)
        gradient = self.gradient if wanted is None else self.gradient.of_columns(wanted)
        points, point_error, longest = self.rounded.in_type(dtype, self.base)
        columns, column_error, lengths, sizes = self.scaled_columns(rows, dtype)
        scan = triton.lowest_scores if is_cuda_tensor(points) else lowest_scores
        found = scan(points, columns)
        # What the products and their sum add to the rounding errors of the factors: products of half
        # precision are exact, three TF32 products miss some of the last bits; tensor cores truncate instead
        # of rounding.
        unit = (self.rounded.depth + 32) * (2.0**-23 if str(dtype) == "torch.float16" else 2.0**-22)
        error = point_error * (lengths + column_error) + longest * column_error
        tol = 2.02 * (error + unit * longest * lengths)
        index = torch.zeros_like(found.points[0], dtype=torch.int64)
        lowest, best = (torch.full_like(sizes, float("inf")) for _ in range(2))
        for score, point in zip(found.scores, found.points, strict=True):
            real = score.isfinite()
            place = (point * real).long()
            extra = gradient.beyond_base(place)
            lowest = lowest.minimum(score + extra / sizes)
            exact = (self.rounded.rows(place) * rows).sum(dim=1) + gradient.base[place] + extra
            better = real & ((exact < best) | ((exact == best) & (place < index)))
            best, index = exact.where(better, best), place.where(better, index)
        return index, ~(found.others - lowest > tol)

    def in_float64(self, wanted: Array) -> Array:
        """Return the vertices by float64 scores of all points."""
        import torch

        centered = (self.rounded.points.double() - self.rounded.center).T
        parts = []
        for part in wanted.split(max(1, ENTRIES // centered.shape[1])):
            gradient = self.gradient.of_columns(part)
            scores = self.residual.index_select(0, part) @ centered
            scores += gradient.base
            scores[gradient.columns, gradient.rows] += gradient.extra
            parts.append(scores.argmin(dim=1))
        return torch.cat(parts)


def minimizing_vertices(
    dictionary: Dictionary,
    residual: Array,
    gradient: PenaltyGradient | TensorPenaltyGradient,
    columns: Any = None,
) -> Any:
    """Return the vertex of every column; see `kernels.self_dictionary.minimizing_vertices`."""
    if isinstance(gradient, TensorPenaltyGradient):
        return _minimizing_vertices(dictionary, residual, gradient, columns)
    import torch

    if columns is not None:
        columns = torch.as_tensor(np.asarray(columns, dtype=np.int64), device=residual.device)
    found = _minimizing_vertices(
        dictionary, residual, TensorPenaltyGradient.of(gradient, residual.device), columns
    )
    return found.cpu().numpy()


def _minimizing_vertices(
    dictionary: Dictionary, residual: Array, gradient: TensorPenaltyGradient, columns: Array | None
) -> Array:
    import torch

    scan = TensorScan(dictionary, residual, gradient)
    out, undecided = scan.decided(columns, torch.float16)
    left = undecided.nonzero()[:, 0]
    if len(left):
        out[left], undecided = scan.decided(left if columns is None else columns[left], torch.float32)
        left = left[undecided]
    if len(left):
        out[left] = scan.in_float64(left if columns is None else columns[left])
    return out


def lowest_scores(points: Array, columns: Array) -> LowestScores:
    """Return the lowest products of points with columns, as `triton.lowest_scores` does."""
    import torch

    n_points, n_columns = points.shape[0], columns.shape[0]
    scores = torch.full((n_columns, KEPT + 1), float("inf"), device=points.device)
    index = torch.zeros((n_columns, KEPT + 1), dtype=torch.int32, device=points.device)
    n_kept, step = min(KEPT + 1, n_points), max(1, ENTRIES // n_points)
    for start in range(0, n_columns, step):
        part = slice(start, start + step)
        found = (columns[part].float() @ points.float().T).topk(n_kept, dim=1, largest=False)
        scores[part, :n_kept], index[part, :n_kept] = found.values, found.indices.int()
    return LowestScores(scores[:, :KEPT].T, index[:, :KEPT].T, scores[:, KEPT])


def _rounded(matrix: Array, depth: int, dtype: Any) -> tuple[Array, Array, Array]:
    # The matrix in a dtype, padded with zeros; the squared norms of the rounding errors, and of the rows.
    out = matrix.new_zeros((matrix.shape[0], depth), dtype=dtype)
    out[:, : matrix.shape[1]] = matrix
    lost = matrix - out[:, : matrix.shape[1]]
    return out, (lost * lost).sum(dim=1), (matrix * matrix).sum(dim=1)
