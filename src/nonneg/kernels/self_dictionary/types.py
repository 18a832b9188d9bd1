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
    """The slope of a penalty on the coefficients.

    Attributes
    ----------
    base : array of float64 of shape (n_points,)
        At entries that are not listed; not negative.
    indptr, rows : array
        The listed entries, column by column.
    extra : array of float64
        What the slope is at a listed entry beyond the base of its row; not negative.
    """

    base: FloatArray
    indptr: IntArray
    rows: IntArray
    extra: FloatArray

    @property
    def base_scale(self) -> float:
        """The largest base; 0 where its inverse would overflow, which float64 scores alone can tell."""
        largest = float(self.base.max(initial=0.0))
        return largest if largest > 1e-290 else 0.0


@dataclass(frozen=True)
class TensorPenaltyGradient:
    """The slope of a penalty on the coefficients, as tensors.

    Attributes
    ----------
    base : tensor of float64 of shape (n_points,)
        At entries that are not listed; not negative.
    rows, columns : tensor of int64
        The listed entries, each once.
    extra : tensor of float64
        What the slope is there beyond the base of the row; not negative.
    n_columns : int
        How many columns there are.
    """

    base: Array
    rows: Array
    columns: Array
    extra: Array
    n_columns: int

    @classmethod
    def of(cls, slope: PenaltyGradient, device: Any) -> TensorPenaltyGradient:
        """Bring a slope to a device."""
        import torch

        n = len(slope.indptr) - 1
        base, counts, rows, extra = (
            torch.as_tensor(np.ascontiguousarray(array), device=device)
            for array in (slope.base, np.diff(slope.indptr), slope.rows, slope.extra)
        )
        every = torch.arange(n, device=device)
        columns = every.repeat_interleave(counts.long(), output_size=len(slope.rows))
        return cls(base, rows.long(), columns, extra, n)

    def of_columns(self, wanted: Array) -> TensorPenaltyGradient:
        """Return the slope of some columns."""
        import torch

        places = wanted.new_full((self.n_columns,), -1)
        places[wanted] = torch.arange(len(wanted), device=wanted.device)
        columns = places[self.columns]
        kept = (columns >= 0).nonzero()[:, 0]
        return TensorPenaltyGradient(self.base, self.rows[kept], columns[kept], self.extra[kept], len(wanted))

    def beyond_base(self, points: Array) -> Array:
        """Look up one entry of every column."""
        import torch

        hit = self.rows == points[self.columns]
        # All but one of the values that meet in a column are zero: their order does not matter.
        values = torch.where(hit, self.extra, torch.zeros_like(self.extra))
        return values.new_zeros(self.n_columns).scatter_add_(0, self.columns, values)

    def at(self, points: Array) -> Array:
        """Return the slope at one entry of every column."""
        return self.base[points] + self.beyond_base(points)


@dataclass(frozen=True)
class Dictionary:
    """Data points with what the scan needs to know of them.

    Attributes
    ----------
    points : array or scipy.sparse CSR array of shape (n_points, n_features)
        One data point a row.
    center : array of shape (n_features,)
        Taken from every point before it is rounded to float32; the choice does not depend on it.
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
        """What brings the centered points into the unit ball."""
        return 1.0 / self.radius if self.radius > 0 else 0.0


@dataclass(frozen=True)
class Lowest:
    """Some of the lowest scores of every column and a bound on the others."""

    scores: Array  # infinite where there are fewer points
    points: Array  # their points; of no meaning where the score is infinite
    others: Array  # no other score is below this


def near_tie(n_features: int, unit: float = 2.0**-24) -> float:
    """Return the distance within which two scaled float32 scores may be in the wrong order."""
    return 2.02 * (n_features + 1 + ROUNDINGS) * unit
