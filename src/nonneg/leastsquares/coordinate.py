"""A few passes of coordinate descent over the rows: the inexact inner step of HALS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._typing import Array
from nonneg.kernels.grams import Gram
from nonneg.kernels.hals import hals_passes


@dataclass(frozen=True)
class CoordinatePasses:
    """Update rows by coordinate descent; see `hals_passes`."""

    max_passes: int = 1  # at most so many passes
    shrink: float = 0.0  # A row stops when a pass changed it by at most this share of its first pass
    # The components that change, in the order of the updates; all by default.
    order: tuple[int, ...] | None = None

    def __call__(self, factor: Array, gram: Gram, cross: Array) -> tuple[Array, Any]:
        return hals_passes(
            factor, gram, cross, order=self.order, max_passes=self.max_passes, shrink=self.shrink
        )
