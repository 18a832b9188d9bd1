"""The objective 0.5 ||X - W H||^2 + lam/2 logdet: weights on the simplex, and the volume of the components.

With weights that sum to one, the components are the vertices of a simplex in an affine subspace, and the
volume is that of the simplex itself: logdet(D H H' D' + delta I) with an orthonormal basis D of contrasts.
With weights that sum to at most one, the origin is one more vertex and D is the identity. An estimate that
counts the distance to the origin as volume pulls dark components toward it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.leastsquares.simplex import simplex_least_squares

CONSTRAINTS = {
    "sum-to-one": "the weights of a sample sum to one",
    "at-most-one": "they sum to at most one; the rest is shade",
}
"""The constraints on the rows of W."""


@dataclass(frozen=True)
class Fit:
    """The best W for some H, and what the next update of H needs."""

    W: SampleArray
    gram: FloatArray  # W' W
    misfit: FloatArray  # (X - W H)' W
    curvature: FloatArray  # P, for which tr(P H H') bounds the volume term from above, up to a constant
    loss: float  # the objective


@dataclass(frozen=True)
class Problem:
    """Minimum-volume NMF of one data matrix."""

    data: DataMatrix
    lam: float  # weight of the volume
    delta: float  # added to the Gram matrix of the volume, so that flat simplices have one
    nonnegative: bool  # whether H is
    constraint: str  # a name in CONSTRAINTS

    def fit(self, Ht: FloatArray, W: SampleArray | None = None) -> Fit:
        """Return the best W for H, given that of a nearby H or none."""
        guess = () if W is None else (W,)
        (W,), (gram, misfit, square) = self.data.map_reduce_rows(
            _on_simplex,
            *guess,
            Ht=self.data.to_device(Ht),
            **simplex_system(self.data, Ht, self.constraint),
        )
        loss = 0.5 * (square + self.lam * self.log_volume(Ht))
        D = contrasts(Ht.shape[1], self.constraint)
        # A flat simplex may leave a matrix that rounding has made singular; one component has no volume.
        curvature = np.zeros((1, 1))
        if len(D):
            curvature = D.T @ np.linalg.pinv(self._volume_gram(Ht), hermitian=True) @ D
        return Fit(W, to_float64(gram), to_float64(misfit), curvature, loss)

    def log_volume(self, Ht: FloatArray) -> float:
        """Return the logarithm of the determinant, twice that of the volume up to a constant."""
        return float(np.linalg.slogdet(self._volume_gram(Ht))[1])

    def _volume_gram(self, Ht: FloatArray) -> FloatArray:
        edges = Ht @ contrasts(Ht.shape[1], self.constraint).T
        return edges.T @ edges + self.delta * np.eye(edges.shape[1])

    def system(self, fit: Fit) -> FloatArray:
        """Return the matrix of the quadratic majorizer at the present factors."""
        return fit.gram + self.lam * fit.curvature

    def gradient(self, Ht: FloatArray, fit: Fit) -> FloatArray:
        """Return the gradient of the objective in H, minimized over W."""
        return self.lam * (Ht @ fit.curvature) - fit.misfit

    def minimize_majorizer(self, Ht: FloatArray, fit: Fit) -> FloatArray:
        """Return the H that minimizes the quadratic majorizer at the present factors."""
        system = self.system(fit)
        cross = fit.misfit + Ht @ fit.gram
        if self.nonnegative:
            return np.asarray(nonnegative_least_squares(SharedGram(system), cross, start=Ht))
        return cross @ np.linalg.pinv(system, hermitian=True)

    def imbalance(self, Ht: FloatArray, fit: Fit) -> float:
        """Return the norm of the projected gradient in H, relative to that of the volume term."""
        gradient = self.gradient(Ht, fit)
        if self.nonnegative:
            gradient = np.where((Ht > 0) | (gradient < 0), gradient, 0.0)
        size = float(np.linalg.norm(self.lam * (Ht @ fit.curvature)))
        return float(np.linalg.norm(gradient)) / size if size > 0 else 0.0


@cache
def contrasts(k: int, constraint: str) -> FloatArray:
    """Return orthonormal rows whose products with H span the edges of the simplex."""
    if constraint == "at-most-one":
        return np.eye(k)
    # Helmert's: row i compares component i with the mean of those before it.
    D = np.tril(np.ones((k, k)), -1) - np.diag(np.arange(k, dtype=np.float64))
    norms = np.sqrt(np.arange(1.0, k) * np.arange(2.0, k + 1))
    return D[1:] / norms[:, None]


def simplex_system(data: DataMatrix, Ht: FloatArray, constraint: str) -> dict[str, Any]:
    """Return what the rows of W are solved from."""
    H = np.asarray(Ht, dtype=np.float64).T
    if constraint == "at-most-one":
        H = np.concatenate([H, np.zeros_like(H[:1])])
    # Relative to their mean, components far from the origin keep their digits.
    mean = H.mean(axis=0)
    shifted = H - mean
    return {
        "right": data.to_device(shifted.T),
        "offset": data.to_device((shifted @ mean)[None, :]),
        "system": shifted @ shifted.T,
        "shade": constraint == "at-most-one",
    }


def simplex_weights(data: DataMatrix, H: Any, constraint: str) -> SampleArray:
    """Return the W on the simplex that minimizes ||X - W H||."""
    system = simplex_system(data, to_float64(H).T, constraint)
    return data.map_rows(_weights, **system)


def _weights(
    block: LocalMatrix,
    before: Array | None = None,
    *,
    right: Array,
    offset: Array,
    system: Any,
    shade: bool,
) -> Array:
    xp = block.xp
    if before is not None and shade:
        before = xp.concat([before, 1.0 - xp.sum(before, axis=1, keepdims=True)], axis=1)
    W = simplex_least_squares(system, block.times(right) - offset, start=before)
    return W[:, :-1] if shade else W


def _on_simplex(
    block: LocalMatrix, before: Array | None = None, *, Ht: Array, **system: Any
) -> tuple[tuple[Array], tuple[Array, Array, float]]:
    W = _weights(block, before, **system)
    xp, misfit, square = block.xp, 0.0, 0.0
    # Differences of Gram matrices would lose the digits of a small residual, which the volume balances.
    for start, stop in block.row_blocks(1 << 20):
        rows = W[start:stop, :]
        residual = block.dense_rows(start, stop) - rows @ Ht.T
        misfit = misfit + xp.astype(residual.T @ rows, xp.float64)
        square = square + xp.sum(xp.astype(residual, xp.float64) ** 2)
    return (W,), (block.weighted_gram(W), misfit, float(square))
