"""L1 and L2 penalties on the factors.

Both factors are stored tall: W (n, k) and Ht = H' (m, k), X ~ W H. The penalty of a row of W is multiplied by
the weight of its sample, so that a weight of two is equivalent to a sample given twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.data import DataMatrix
from nonneg.kernels.rows import sum_rows


@dataclass(frozen=True)
class Penalties:
    """Weights of the penalties, scaled to the data."""

    l1_W: float = 0.0
    l2_W: float = 0.0
    l1_H: float = 0.0
    l2_H: float = 0.0

    @property
    def any(self) -> bool:
        """Whether any of them is positive."""
        return max(self.l1_W, self.l2_W, self.l1_H, self.l2_H) > 0

    def of_W(self, W: Array, weights: Array | None = None) -> Any:
        """Return the penalty on the rows of W; on a GPU it stays there."""
        return _value(W, self.l1_W, self.l2_W, weights)

    def of_H(self, Ht: Array) -> Any:
        """Return the penalty on Ht; on a GPU it stays there."""
        return _value(Ht, self.l1_H, self.l2_H, None)


def scaled_penalties(data: DataMatrix, alpha_W: float, alpha_H: float | str, l1_ratio: float) -> Penalties:
    """Scale scikit-learn's penalty parameters to the data."""
    of_H = float(alpha_W if isinstance(alpha_H, str) else alpha_H) * data.total_weight()
    of_W = float(alpha_W) * data.shape[1]
    return Penalties(of_W * l1_ratio, of_W * (1 - l1_ratio), of_H * l1_ratio, of_H * (1 - l1_ratio))


def _value(factor: Array, l1: float, l2: float, weights: Array | None) -> Any:
    if l1 == 0 and l2 == 0:
        return 0.0
    xp = array_namespace(factor)

    def value(factor: Array, weights: Array | None = None) -> Array:
        wide = xp.astype(factor, xp.float64)
        rows = xp.sum(wide * (l1 + 0.5 * l2 * wide), axis=1)
        return xp.sum(rows if weights is None else rows * xp.astype(weights, xp.float64))

    return sum_rows(value, *((factor,) if weights is None else (factor, weights)))
