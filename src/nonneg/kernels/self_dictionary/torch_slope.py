"""The slope of a penalty on coefficients with few entries, as PyTorch tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nonneg._typing import Array

if TYPE_CHECKING:
    from nonneg.kernels.self_dictionary import PenaltySlope


@dataclass(frozen=True)
class TensorSlope:
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
    def of(cls, slope: PenaltySlope, device: Any) -> TensorSlope:
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

    def of_columns(self, wanted: Array) -> TensorSlope:
        """Return the slope of some columns."""
        import torch

        places = wanted.new_full((self.n_columns,), -1)
        places[wanted] = torch.arange(len(wanted), device=wanted.device)
        columns = places[self.columns]
        kept = (columns >= 0).nonzero()[:, 0]
        return TensorSlope(self.base, self.rows[kept], columns[kept], self.extra[kept], len(wanted))

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
