"""What the implementations share: data points, penalty gradients, and lists of lowest scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray, IntArray

# Rounding errors in one score besides those of its sum: of the point, of the residual, of the scales, of the
# addition at listed entries.
ROUNDINGS = 8
# Lowest scores that are kept for every column on a GPU.
KEPT = 4


@dataclass(frozen=True)
class PenaltyGradient:
    """The gradient of a penalty on the coefficients.

    Attributes
    ----------
    base : array of float64 of shape (n_points,)
        Its value at entries that are not listed; nonnegative.
    indptr, rows : array
        The listed entries, column by column.
    extra : array of float64
        Its value at a listed entry minus the base of the row; nonnegative.
    """

    base: FloatArray
    indptr: IntArray
    rows: IntArray
    extra: FloatArray

    @property
    def base_scale(self) -> float:
        """The largest base; 0 where its inverse would overflow, so that float64 scores decide."""
        largest = float(self.base.max(initial=0.0))
        return largest if largest > 1e-290 else 0.0


@dataclass(frozen=True)
class TensorPenaltyGradient:
    """The gradient of a penalty on the coefficients, as tensors.

    Attributes
    ----------
    base : tensor of float64 of shape (n_points,)
        Its value at entries that are not listed; nonnegative.
    rows, columns : tensor of int64
        The listed entries, each once.
    extra : tensor of float64
        Its value there minus the base of the row; nonnegative.
    n_columns : int
        The number of columns.
    """

    base: Array
    rows: Array
    columns: Array
    extra: Array
    n_columns: int

    @classmethod
    def of(cls, gradient: PenaltyGradient, device: Any) -> TensorPenaltyGradient:
        """Copy a gradient to a device."""
        import torch

        n = len(gradient.indptr) - 1
        base, counts, rows, extra = (
            torch.as_tensor(np.ascontiguousarray(array), device=device)
            for array in (gradient.base, np.diff(gradient.indptr), gradient.rows, gradient.extra)
        )
        every = torch.arange(n, device=device)
        columns = every.repeat_interleave(counts.long(), output_size=len(gradient.rows))
        return cls(base, rows.long(), columns, extra, n)

    def of_columns(self, wanted: Array) -> TensorPenaltyGradient:
        """Return the gradient of some columns."""
        import torch

        places = wanted.new_full((self.n_columns,), -1)
        places[wanted] = torch.arange(len(wanted), device=wanted.device)
        columns = places[self.columns]
        kept = (columns >= 0).nonzero()[:, 0]
        return TensorPenaltyGradient(self.base, self.rows[kept], columns[kept], self.extra[kept], len(wanted))

    def beyond_base(self, points: Array) -> Array:
        """Return the extra at one entry of every column; 0 where it is not listed."""
        import torch

        hit = self.rows == points[self.columns]
        # At most one value per column is not zero: the order of the sum does not matter.
        values = torch.where(hit, self.extra, torch.zeros_like(self.extra))
        return values.new_zeros(self.n_columns).scatter_add_(0, self.columns, values)

    def at(self, points: Array) -> Array:
        """Return the gradient at one entry of every column."""
        return self.base[points] + self.beyond_base(points)


@dataclass(frozen=True)
class Dictionary:
    """Data points, with their center and radius.

    Attributes
    ----------
    points : array or scipy.sparse CSR array of shape (n_points, n_features)
        One data point per row.
    center : array of shape (n_features,)
        Subtracted from every point before rounding to float32; the vertices do not depend on it.
    radius : float
        The largest distance of a point from the center.
    cache : dict
        What an implementation computes from the points once.
    """

    points: Any
    center: Array
    radius: float
    cache: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def inverse(self) -> float:
        """The factor that scales the centered points into the unit ball."""
        return 1.0 / self.radius if self.radius > 0 else 0.0


@dataclass(frozen=True)
class LowestScores:
    """Some of the lowest scores of every column and a bound on the others."""

    scores: Array  # infinite where there are fewer than `KEPT` points
    points: Array  # the points; arbitrary where the score is infinite
    others: Array  # no other score is below this


def near_tie(n_features: int, unit: float = 2.0**-24) -> float:
    """Return the distance within which two scaled float32 scores may be in the wrong order."""
    return 2.02 * (n_features + 1 + ROUNDINGS) * unit
