"""L1, L2 and smoothness penalties on the factors.

Both factors are stored tall: W (n, k) and Ht = H' (m, k), X ~ W H. The penalty of a row of W is multiplied by
the weight of its sample, so that a weight of two is equivalent to a sample given twice. Given one factor, the
smoothness of the other is a ridge for each component.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from array_api_compat import array_namespace

from nonneg._arrays import to_device
from nonneg._typing import Array
from nonneg.data import DataMatrix
from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.kernels.grams import Gram, Laplacian, SmoothGram
from nonneg.kernels.rows import sum_rows


@dataclass(frozen=True)
class Penalties:
    """Weights of the penalties, scaled to the data."""

    l1_W: float = 0.0
    l2_W: Any = 0.0  # or one per component
    l1_H: float = 0.0
    l2_H: Any = 0.0
    smooth_W: Laplacian | None = None
    smooth_H: Laplacian | None = None

    @property
    def any(self) -> bool:
        """Whether any of them is positive."""
        return self.smooth or max(self.l1_W, self.l2_W, self.l1_H, self.l2_H) > 0

    @property
    def smooth(self) -> bool:
        """Whether there is a graph."""
        return self.smooth_W is not None or self.smooth_H is not None

    def given_H(self, Ht: Array) -> Penalties:
        """Return the penalties on W for this H, in which smoothness of H is a ridge."""
        return self if self.smooth_H is None else replace(self, l2_W=_ridge(self.l2_W, self.smooth_H, Ht))

    def given_W(self, W: Array) -> Penalties:
        """Return the penalties on H for this W, in which smoothness of W is a ridge."""
        return self if self.smooth_W is None else replace(self, l2_H=_ridge(self.l2_H, self.smooth_W, W))

    def system_W(self, gram: Gram, Ht: Array) -> Any:
        """Return the quadratic form of W for a given H with this Gram matrix."""
        return _system(gram, self.given_H(Ht).l2_W, self.smooth_W)

    def system_H(self, gram: Gram, W: Array) -> Any:
        """Return the quadratic form of Ht for a given W with this Gram matrix."""
        return _system(gram, self.given_W(W).l2_H, self.smooth_H)

    def of_W(self, W: Array, weights: Array | None = None) -> Any:
        """Return the penalty on the rows of W; on a GPU it stays there."""
        return _value(W, self.l1_W, self.l2_W, weights)

    def of_H(self, Ht: Array) -> Any:
        """Return the penalty on Ht; on a GPU it stays there."""
        return _value(Ht, self.l1_H, self.l2_H, None)


def scaled_penalties(
    data: DataMatrix,
    alpha_W: float,
    alpha_H: float | str,
    l1_ratio: float,
    penalty_W: Any = None,
    penalty_H: Any = None,
) -> Penalties:
    """Scale scikit-learn's penalty parameters to the data, and check the graphs."""
    of_H = float(alpha_W if isinstance(alpha_H, str) else alpha_H) * data.total_weight()
    of_W = float(alpha_W) * data.shape[1]
    smooth_W = _checked("penalty_W", penalty_W, data.shape[0], "samples")
    smooth_H = _checked("penalty_H", penalty_H, data.shape[1], "features")
    weights = of_W * l1_ratio, of_W * (1 - l1_ratio), of_H * l1_ratio, of_H * (1 - l1_ratio)
    return Penalties(*weights, smooth_W, smooth_H)


def _checked(name: str, penalty: Any, n: int, nodes: str) -> Laplacian | None:
    """Return a smoothness penalty of n nodes, or None if it has no effect."""
    if penalty is None:
        return None
    if not isinstance(penalty, Laplacian):
        raise InvalidParameterError(f"{name} must be None or what nonneg.laplacian returns, got {penalty!r}.")
    if (n_nodes := penalty.edges.shape[0]) != n:
        raise ShapeError(
            f"{name} has a graph of {n_nodes} nodes, but X has {n} {nodes}: it needs one node for each of "
            "them, in the same order."
        )
    return penalty if penalty.strength and penalty.edges.nnz else None


def _ridge(l2: Any, smooth: Laplacian, factor: Array) -> Array:
    return to_device(l2 + smooth.strength * smooth.of_columns(factor), factor, factor.dtype)


def _system(gram: Any, l2: Any, smooth: Laplacian | None) -> Any:
    if smooth is None:
        return gram.plus_ridge(l2)
    # Of a component of length one, which the diagonal makes as long as it is.
    weights = smooth.strength * gram.matrix.diagonal()
    return SmoothGram(gram.plus_ridge(l2).matrix, smooth, weights)


def _value(factor: Array, l1: float, l2: Any, weights: Array | None) -> Any:
    if l1 == 0 and isinstance(l2, float) and l2 == 0:
        return 0.0
    xp = array_namespace(factor)

    def value(factor: Array, weights: Array | None = None) -> Array:
        wide = xp.astype(factor, xp.float64)
        rows = xp.sum(wide * (l1 + 0.5 * l2 * wide), axis=1)
        return xp.sum(rows if weights is None else rows * xp.astype(weights, xp.float64))

    return sum_rows(value, *((factor,) if weights is None else (factor, weights)))
