"""Planted anchors of many kinds, and how many of them a selection found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.datasets import SeparableData

# A sample counts as an anchor where this much of it is one component.
PURE = 0.9
KINDS = {
    "uniform": "uniform over the simplex: Dirichlet weights with parameter 1",
    "sparse": "Dirichlet weights with parameter 0.3",
    "near-duplicates": "as uniform, and every tenth sample is a near-copy of an anchor (weight 0.98)",
    "duplicates": "as uniform, and every tenth sample is an exact copy of an anchor, with its noise",
    "scattered": "Dirichlet weights with parameter 0.6; lengths of anchors between 0.5 and 2",
    "spectra": "uniform weights; anchors are smooth spectra, which are ill-conditioned",
    "laplace": "as uniform, with Laplace noise",
    "uneven": "as uniform, with noise whose level differs by a factor of 3 between features",
    "student": "as uniform, with noise of Student's distribution with five degrees of freedom",
    "shot": "as uniform, with noise whose variance is proportional to the entry",
    "unbalanced": "Dirichlet weights with parameters between 0.2 and 2, one per anchor",
}
"""Kind -> what the weights, anchors and noise are. The first three choose rules; the others only report."""
CHOOSING = ("uniform", "sparse", "near-duplicates")
_ALPHA = {"sparse": 0.3, "scattered": 0.6}


def planted(
    kind: str, n: int, m: int, k: int, snr: float, draw: int, *, stream: int = 0, dtype: Any = np.float64
) -> SeparableData:
    """Draw n samples with m features between k anchors, at a signal-to-noise ratio in dB."""
    seed = [list(KINDS).index(kind), n, m, k, round(1000 * snr), draw, stream]
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    H = _anchors(kind, k, m, rng)
    order = rng.permutation(n)
    anchors = order[:k].astype(np.intp)
    W = np.empty((n, k), dtype=dtype)
    W[order[:k]] = np.eye(k)
    alpha = dirichlet_parameters(kind, k)
    for start in range(k, n, 1 << 16):
        rows = order[start : start + (1 << 16)]
        W[rows] = rng.dirichlet(alpha, size=len(rows))
    copies = order[k : k + n // 10] if kind.endswith("duplicates") else order[:0]
    copied = rng.integers(k, size=len(copies))
    if kind == "near-duplicates":
        W[copies] = 0.02 * W[copies] + 0.98 * np.eye(k)[copied]
    elif kind == "duplicates":
        W[copies] = np.eye(k)[copied]
    X = np.asarray(W @ H.astype(dtype))
    square = float(np.einsum("ij,ij->", X, X, dtype=np.float64))
    sigma = math.sqrt(square / X.size / 10.0 ** (snr / 10.0))
    noise = 0.0
    levels = np.linspace(1.0, 3.0, m) if kind == "uneven" else np.ones(m)
    levels *= sigma / math.sqrt(float(np.mean(levels**2)))
    for start in range(0, n, 1 << 16):
        shape = (min(1 << 16, n - start), m)
        drawn = _unit_noise(kind, shape, rng) * levels
        if kind == "shot":
            block = X[start : start + (1 << 16)]
            drawn *= np.sqrt(block / math.sqrt(square / X.size))
        X[start : start + (1 << 16)] += drawn.astype(dtype)
        noise += float(np.sum(drawn**2))
    if kind == "duplicates":
        X[copies] = X[anchors[copied]]
    return SeparableData(X, H, W, anchors, math.sqrt(noise), 10.0 * math.log10(square / noise))


def dirichlet_parameters(kind: str, k: int) -> FloatArray:
    """Return the parameters of the weights of mixtures, one per anchor."""
    return np.geomspace(0.2, 2.0, k) if kind == "unbalanced" else np.full(k, _ALPHA.get(kind, 1.0))


def _unit_noise(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    if kind == "laplace":
        return rng.laplace(scale=math.sqrt(0.5), size=shape)
    if kind == "student":
        return rng.standard_t(5, size=shape) * math.sqrt(0.6)
    return rng.normal(size=shape)


def _anchors(kind: str, k: int, m: int, rng: np.random.Generator) -> FloatArray:
    if kind != "spectra":
        H = rng.random((k, m))
        return H * rng.uniform(0.5, 2.0, (k, 1)) if kind == "scattered" else H
    # Sums of three bumps over the features, on a common background.
    places = np.linspace(0.0, 1.0, m)
    centers, widths = rng.random((k, 3, 1)), rng.uniform(0.03, 0.15, (k, 3, 1))
    bumps = np.exp(-0.5 * ((places - centers) / widths) ** 2)
    return 0.2 + np.sum(rng.uniform(0.3, 1.0, (k, 3, 1)) * bumps, axis=1)


def n_found(data: SeparableData, anchors: IntArray) -> int:
    """Return the number of anchors of which the selection has a (nearly) pure sample."""
    return int(np.sum(np.asarray(data.W)[anchors].max(axis=0) >= PURE))
