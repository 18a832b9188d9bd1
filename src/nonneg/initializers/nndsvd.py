"""NNDSVD: the positive or negative parts of the leading singular vectors, whichever have the larger norm."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._random import Seed, generator
from nonneg._typing import Array, SampleArray
from nonneg.data.matrix import DataMatrix, LocalMatrix, rows_only
from nonneg.data.spectral import leading_vectors
from nonneg.exceptions import InvalidParameterError
from nonneg.initializers.random import half_normal_rows, noise_projections

# Entries below it, relative to a typical entry of a factor, count as zeros (scikit-learn's `eps`).
_CUT = 1e-6
# An initialization needs no more accurate singular vectors.
_TOL = 1e-6
# "nndsvd-scaled" fills zeros so that the product of what is filled, over k components, is a hundredth of the
# mean of X: the share of scikit-learn's "nndsvdar".
_FILL = 100**-0.5


def nndsvd_init(
    data: DataMatrix, k: int, *, rng: Seed = None, name: str = "nndsvd-scaled"
) -> tuple[SampleArray, Array]:
    """Return the factors of Boutsidis and Gallopoulos, with zeros filled as the variant says."""
    # scikit-learn's conventions, except for the exactness of the singular vectors: its randomized ones are
    # approximate. Missing entries count as zeros.
    # Boutsidis & Gallopoulos (2008), Pattern Recognition 41(4), 1350-1362, Algorithm 1.
    if k > min(data.shape):
        raise InvalidParameterError(
            f"init = '{name}' can only be used when n_components <= min(n_samples, n_features). "
            f"Got n_components = {k} for data of shape {data.shape}. Use init='random', or fewer components."
        )
    rng = generator(rng)
    V = leading_vectors(data, k, tol=_TOL)
    (projected,), sums = data.map_reduce_rows(_project, V=data.to_device(V))
    # In another unit of the weights they are the same; sums beyond the number of rows count repeated rows.
    XV_norms = np.sqrt(data.counted_rows() / data.total_weight() * np.stack([*map(to_float64, sums)]))
    parts = SignedParts(V, XV_norms)
    mean = data.typical()
    # scikit-learn's values are in the unit of X, and factors in that of its root: in another unit of X they
    # are another initialization.
    filling = {
        "nndsvd": 0.0, "nndsvda": mean, "nndsvdar": mean / 100, "nndsvd-scaled": _FILL * math.sqrt(mean / k)
    }[name]  # fmt: skip
    typical = math.sqrt(math.sqrt(data.squared_norm() / (data.total_weight() * data.shape[1])))
    Ht = parts.Ht()
    cut = _CUT * typical
    Ht = np.where(Ht < cut, 0.0, Ht)
    draws = name == "nndsvdar"
    drawn = np.abs(rng.standard_normal(Ht.shape)) if draws else 1.0
    Ht = np.where(Ht == 0.0, drawn * filling, Ht)
    noise = noise_projections(data, k, rng) if draws else None
    W = data.map_rows(
        rows_only(partial(_parts)) if noise is None else _parts,
        projected,
        signs=data.to_device(parts.signs[None, :]),
        scale=data.to_device(parts.scale_of_W()[None, :]),
        cut=cut,
        filling=filling,
        noise=noise,
    )
    return W, data.to_device(Ht)


class SignedParts:
    """The choice of parts and their scales, from the vectors V and the norms of the parts of X V (2 x k)."""

    def __init__(self, V: Any, XV_norms: Any) -> None:
        s = np.sqrt(np.sum(XV_norms**2, axis=0))
        self.V = V
        V_norms = np.stack(
            [np.linalg.norm(np.maximum(V, 0), axis=0), np.linalg.norm(np.maximum(-V, 0), axis=0)]
        )
        weights = XV_norms * V_norms
        chosen = (weights[0] <= weights[1]).astype(int)
        index = np.arange(V.shape[1])
        self.signs = 1.0 - 2.0 * chosen
        # A leading pair is of one sign; rounding is folded over, as in scikit-learn.
        self.signs[0] = 0.0
        self.XV_norm = XV_norms[chosen, index]
        self.V_norm = V_norms[chosen, index]
        self.XV_norm[0], self.V_norm[0] = s[0], 1.0
        # Equals s_j times the product of the norms of the parts of u_j and v_j.
        self.size = np.sqrt(self.XV_norm * self.V_norm)

    def scale_of_W(self) -> Any:
        """Return what the columns of X V are multiplied by."""
        return np.divide(self.size, self.XV_norm, out=np.zeros_like(self.size), where=self.XV_norm > 0)

    def Ht(self) -> Any:
        """Return the parts of V, scaled."""
        parts = np.where(self.signs == 0.0, np.abs(self.V), np.maximum(self.signs * self.V, 0.0))
        scale = np.divide(self.size, self.V_norm, out=np.zeros_like(self.size), where=self.V_norm > 0)
        return parts * scale


def _project(block: LocalMatrix, *, V: Array) -> tuple[tuple[Array], tuple[Array, ...]]:
    XV = block.times(V)
    return (XV,), signed_squares(block, XV)


def signed_squares(block: LocalMatrix, XV: Array) -> tuple[Array, ...]:
    """Return the weighted squares of the positive and of the negative entries, summed by column."""
    xp, squares = block.xp, block.weighted(XV * XV)
    zero = xp.zeros_like(squares)
    return tuple(xp.sum(xp.where(side, squares, zero), axis=0) for side in (XV > 0, XV < 0))


def _parts(
    block: LocalMatrix,
    projected: Array,
    *,
    signs: Array,
    scale: Array,
    cut: float,
    filling: float,
    noise: dict[str, Array] | None,
) -> Array:
    xp = block.xp
    signed = xp.where(signs == 0, xp.abs(projected), projected * signs)
    W = signed * scale
    least = max(cut, float(xp.finfo(W.dtype).smallest_normal))
    large = W >= least  # noqa: SIM300 (W is no constant)
    filled = filling if noise is None else half_normal_rows(block, **noise) * filling
    return xp.where(large, W, filled * xp.ones_like(W))
