"""Weights of uneven size: the diagonal that evens them out, and the constants of the theorems."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nonneg._typing import FloatArray


class WeightConstants(NamedTuple):
    """The constants C1, c2 and C2 of assumption (A2), for weights scaled to [0, 1]."""

    C1: float  # n times the largest mean of a weight
    c2: float  # n times the smallest mean square
    C2: float  # n times the largest mean square
    scale: float  # the largest weight, by which all were divided

    @property
    def imbalance(self) -> float:
        """The quotient C2 / c2, at most 2 in Theorems 6 and 7."""
        return self.C2 / self.c2 if self.c2 > 0 else float("inf")

    def density(self, n: int) -> float:
        """Return C1^3 / (c2^2 n), which the theorems want below a constant that they do not give."""
        return self.C1**3 / (self.c2**2 * n) if self.c2 > 0 else float("inf")


def weight_constants(weights: FloatArray) -> WeightConstants:
    """Estimate C1, c2 and C2 from decoded weights."""
    n = weights.shape[1]
    scale = float(weights.max(initial=0.0)) or 1.0
    units = weights / scale
    squares = (units**2).mean(axis=0)
    return WeightConstants(
        n * float(units.mean(axis=0).max()), n * float(squares.min()), n * float(squares.max()), scale
    )


def balancing_scales(weights: FloatArray) -> FloatArray:
    """Return the diagonal D for which x / D has equal second moments."""
    squares = (weights**2).mean(axis=0)
    largest = float(squares.max(initial=0.0))
    return np.where(squares > 0, np.sqrt(squares / (largest or 1.0)), 1.0)
