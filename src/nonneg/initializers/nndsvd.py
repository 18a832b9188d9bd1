"""NNDSVD starts: the positive or negative halves of the leading singular vectors, whichever weigh more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix
from nonneg.data.spectral import leading_vectors
from nonneg.exceptions import InvalidParameterError
from nonneg.initializers.row_noise import half_normal_rows, noise_projections

_CUT = (
    1e-6  # entries below it, in units of a typical entry of a factor, count as zeros (scikit-learn's `eps`)
)
_TOL = 1e-6  # a start needs no more, and the vectors do not depend on it where there are few columns


def nndsvd_init(
    data: DataMatrix, k: int, *, rng: Seed = None, fill: str = "mean", name: str = "nndsvda"
) -> tuple[SampleArray, Array]:
    """Return the factors of Boutsidis and Gallopoulos, zeros filled as the variant asks."""
    # scikit-learn's conventions, but for the exactness of the singular vectors: its randomized ones are
    # approximate. Missing entries count as zeros.
    # Boutsidis & Gallopoulos (2008), Pattern Recognition 41(4), 1350-1362, Algorithm 1.
    if k > min(data.shape):
        raise InvalidParameterError(
            f"init = '{name}' can only be used when n_components <= min(n_samples, n_features). "
            f"Got n_components = {k} for data of shape {data.shape}. Use init='random', or fewer components."
        )
    rng = generator(rng)
    V = leading_vectors(data, k, tol=_TOL)
    (projected,), sums = data.map_reduce_rows(_project, right=data.to_device(V))
    left_halves = np.sqrt(np.stack([to_float64(part) for part in sums]))
    columns = _Columns(V, left_halves)
    mean = data.mean()
    typical = math.sqrt(math.sqrt(data.squared_norm() / max(data.total_weight() * data.shape[1], 1.0)))
    Ht = columns.right()
    cut = _CUT * typical
    Ht = np.where(Ht < cut, 0.0, Ht)
    if fill == "mean":
        Ht = np.where(Ht == 0.0, mean, Ht)
    elif fill == "random":
        Ht = np.where(Ht == 0.0, np.abs(rng.standard_normal(Ht.shape)) * (mean / 100), Ht)
    noise = noise_projections(data, k, rng) if fill == "random" else None
    (W,), _ = data.map_reduce_rows(
        _halves,
        projected,
        signs=data.to_device(columns.signs[None, :]),
        scale=data.to_device(columns.left_scale()[None, :]),
        cut=cut,
        mean=0.0 if fill == "zero" else mean,
        noise=noise,
    )
    return W, data.to_device(Ht)


class _Columns:
    # The choice of halves and their scales, from the vectors V and the norms of the halves of X V (2 x k).
    def __init__(self, V: Any, left_halves: Any) -> None:
        s = np.sqrt(np.sum(left_halves**2, axis=0))
        self.V = V
        right_halves = np.stack(
            [np.linalg.norm(np.maximum(V, 0), axis=0), np.linalg.norm(np.maximum(-V, 0), axis=0)]
        )
        weights = left_halves * right_halves
        chosen = (weights[0] <= weights[1]).astype(int)
        index = np.arange(V.shape[1])
        self.signs = 1.0 - 2.0 * chosen
        # A leading pair is of one sign; rounding is folded over, as in scikit-learn.
        self.signs[0] = 0.0
        self.left_norm = left_halves[chosen, index]
        self.right_norm = right_halves[chosen, index]
        self.left_norm[0], self.right_norm[0] = s[0], 1.0
        # Equals s_j times the product of the norms of the halves of u_j and v_j.
        self.size = np.sqrt(self.left_norm * self.right_norm)

    def left_scale(self) -> Any:
        return np.divide(self.size, self.left_norm, out=np.zeros_like(self.size), where=self.left_norm > 0)

    def right(self) -> Any:
        parts = np.where(self.signs == 0.0, np.abs(self.V), np.maximum(self.signs * self.V, 0.0))
        scale = np.divide(self.size, self.right_norm, out=np.zeros_like(self.size), where=self.right_norm > 0)
        return parts * scale


def _project(block: LocalMatrix, *, right: Array) -> tuple[tuple[Array], tuple[Array, Array]]:
    xp = block.xp
    left = block.times(right)
    squares = block.weighted(left * left)
    zero = xp.zeros_like(squares)
    positive = xp.sum(xp.where(left > 0, squares, zero), axis=0)
    negative = xp.sum(xp.where(left < 0, squares, zero), axis=0)
    return (left,), (positive, negative)


def _halves(
    block: LocalMatrix,
    projected: Array,
    *,
    signs: Array,
    scale: Array,
    cut: float,
    mean: float,
    noise: dict[str, Array] | None,
) -> tuple[tuple[Array], tuple[()]]:
    xp = block.xp
    signed = xp.where(signs == 0, xp.abs(projected), projected * signs)
    W = signed * scale
    least = max(cut, float(xp.finfo(W.dtype).smallest_normal))
    kept = W >= least  # noqa: SIM300 (W is no constant)
    if noise is not None:
        filling = half_normal_rows(block, **noise) * (mean / 100)
    else:
        filling = xp.full_like(W, mean)
    return (xp.where(kept, W, filling),), ()
