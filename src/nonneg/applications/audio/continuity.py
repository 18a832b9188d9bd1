"""NMF of spectrograms with priors on the shape of components: smooth or sparse, in time or over frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.iteration import Run, iterate


@dataclass(frozen=True)
class Priors:
    """Weights of the priors, one per component, relative to the mean mass of a component per frame (or bin).

    Smoothness is the sum of squared differences of neighbors over the mean square (Virtanen 2007, eq. 10),
    sparseness the sum over the root mean square (Canadas-Quesada et al. 2014, eq. 7).
    """

    smooth_W: FloatArray
    sparse_W: FloatArray
    smooth_H: FloatArray
    sparse_H: FloatArray

    @classmethod
    def continuity(cls, n_components: int, weight: float) -> Priors:
        """All activations are smooth in time."""
        zeros = np.zeros(n_components)
        return cls(np.full(n_components, weight), zeros, zeros, zeros)

    @classmethod
    def harmonic_percussive(cls, n_harmonic: int, n_percussive: int, weight: float) -> Priors:
        """The first components are smooth in time and sparse over frequency, the others the reverse."""
        harmonic = np.repeat([weight, 0.0], [n_harmonic, n_percussive])
        return cls(harmonic, weight - harmonic, weight - harmonic, harmonic)


@dataclass(frozen=True)
class Factors:
    """The state of the iterations."""

    W: FloatArray
    H: FloatArray


def factorize_with_priors(
    V: FloatArray, W: FloatArray, H: FloatArray, priors: Priors, **run: Any
) -> Run[Any]:
    """Minimize the Kullback-Leibler divergence of V and W H plus the priors by multiplicative updates.

    As in Virtanen (2007), the gradients of the priors are split into positive and negative parts. There is no
    proof that the sum decreases, and no need: the stopping rule sees the sum.
    """
    tiny = float(np.finfo(V.dtype).tiny) ** 0.5
    mass = float(V.sum()) / W.shape[1]
    # Each prior is scale-invariant and of the size of the length of its factor.
    of_W, of_H = (
        mass / n * np.stack(pair).astype(V.dtype)
        for n, pair in (
            (V.shape[0], (priors.smooth_W, priors.sparse_W)),
            (V.shape[1], (priors.smooth_H, priors.sparse_H)),
        )
    )
    logs = float(np.sum(V * np.log(np.maximum(V, tiny)), dtype=np.float64)) - float(V.sum())

    def step(now: Factors) -> tuple[Factors, dict[str, Any]]:
        W, H = now.W, now.H
        plus, minus = _gradient(H.T, of_H)
        H = H * ((W.T @ (V / (W @ H + tiny)) + minus.T) / (W.sum(axis=0)[:, None] + plus.T + tiny))
        model = W @ H + tiny
        plus, minus = _gradient(W, of_W)
        new = W * (((V / model) @ H.T + minus) / (H.sum(axis=1) + plus + tiny))

        def loss() -> float:
            # Of the pair before the last update, whose product is at hand.
            divergence = logs + float(np.sum(model - V * np.log(model), dtype=np.float64))
            return divergence + _value(W, of_W) + _value(H.T, of_H)

        return Factors(new, H), {"loss": loss}

    return iterate(step, Factors(W, H), **run)


def _gradient(factor: FloatArray, weights: FloatArray) -> tuple[Any, Any]:
    """Return the positive and negative parts of the gradient of the priors on the columns of a factor."""
    smooth, sparse = weights
    n = len(factor)
    squares = np.square(factor).sum(axis=0) + np.finfo(factor.dtype).tiny
    plus = minus = factor.dtype.type(0.0)
    if smooth.any():
        neighbors = np.zeros_like(factor)
        neighbors[1:] += factor[:-1]
        neighbors[:-1] += factor[1:]
        changes = np.square(np.diff(factor, axis=0)).sum(axis=0)
        count = np.full((n, 1), 2, dtype=factor.dtype)  # neighbors: one at either end
        count[[0, -1]] = 1 if n > 1 else 0
        plus = (2 * n * smooth / squares) * (count * factor)
        minus = (2 * n * smooth / squares) * (neighbors + (changes / squares) * factor)
    if sparse.any():
        root = np.sqrt(squares / n)
        plus = plus + sparse / root
        minus = minus + (sparse * factor.sum(axis=0) / (root * squares)) * factor
    return plus, minus


def _value(factor: FloatArray, weights: FloatArray) -> float:
    """Return the priors on the columns of a factor."""
    squares = np.square(factor).mean(axis=0) + np.finfo(factor.dtype).tiny
    changes = np.square(np.diff(factor, axis=0)).sum(axis=0)
    smooth, sparse = weights
    return float(smooth @ (changes / squares) + sparse @ (factor.sum(axis=0) / np.sqrt(squares)))
