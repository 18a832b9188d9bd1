"""Planted vertices: points and scenes whose vertices are known, one difficulty at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._typing import FloatArray, IntArray
from nonneg.datasets import scene_like
from reproduction.data import load_indian_pines

POINTS: dict[str, dict[str, Any]] = {
    "5 dB": {"snr": 5},
    "10 dB": {"snr": 10},
    "20 dB": {},
    "30 dB": {"snr": 30},
    "40 dB": {"snr": 40},
    "K = 3": {"k": 3},
    "K = 10": {"k": 10},
    "K = 20": {"k": 20},
    "10,000 points": {"n": 10_000},
    "vertices 4 times closer": {"closer": 4.0, "snr": 30},
    "vertices 16 times closer": {"closer": 16.0, "snr": 40},
    "10 near-duplicates": {"copies": 10},
    "50 near-duplicates, 10 dB": {"copies": 50, "snr": 10},
    "weights near the vertices": {"alpha": 0.3},
    "weights far from the vertices": {"alpha": 2.0},
    "purity 0.9": {"purity": 0.9},
    "purity 0.7": {"purity": 0.7},
    "0.1% outliers": {"outliers": 0.001},
    "1% outliers": {"outliers": 0.01},
    "one dark vertex": {"dark": 0.02},
}
"""What sets each kind of points apart from 1000 points in 50 dimensions, 5 vertices and 20 dB."""

SCENES: dict[str, dict[str, Any]] = {
    "20 dB": {"snr": 20},
    "30 dB": {},
    "40 dB": {"snr": 40},
    "purity 0.8": {"purity": 0.8},
    "purity 0.6": {"purity": 0.6},
    "dark material": {"dark": 0.05},
    "0.1% corrupt pixels": {"outliers": 0.001},
    "even brightness": {"brightness": 0.0},
    "dark, corrupt, 20 dB": {"dark": 0.05, "outliers": 0.001, "snr": 20},
}
"""What sets each kind of scenes apart from 4 materials, 30 dB and a brightness that varies by a fifth."""

COVERS: dict[str, dict[str, Any]] = {
    "4 covers": {},
    "6 covers": {"k": 6},
    "4 covers, purity 0.8": {"purity": 0.8},
    "4 covers, 0.1% corrupt pixels": {"outliers": 0.001},
}
"""Mixtures of pixels of Indian Pines, as many land covers as named: the variety within a cover is real."""


@dataclass(frozen=True)
class Planted:
    """Samples and the vertices behind them."""

    X: FloatArray
    vertices: FloatArray
    weights: FloatArray


def planted_points(kind: Mapping[str, Any], rng: np.random.Generator) -> Planted:
    """Draw points between vertices with uniform entries."""
    n, k = kind.get("n", 1000), kind.get("k", 5)
    vertices = rng.random((k, kind.get("m", 50)))
    center = vertices.mean(axis=0)
    vertices = center + (vertices - center) / kind.get("closer", 1.0)
    vertices[0] *= kind.get("dark", 1.0)
    weights = _weights(n, k, kind, rng)
    X = weights @ vertices
    X += _noise_size(X, kind.get("snr", 20)) * rng.standard_normal(X.shape)
    return Planted(_corrupted(X, kind.get("outliers", 0.0), rng), vertices, weights)


def planted_scene(kind: Mapping[str, Any], rng: np.random.Generator) -> Planted:
    """Draw the pixels of a scene: smooth spectra, a brightness of its own for every pixel."""
    n, k = 3600, kind.get("k", 4)
    vertices = scene_like(2, 2, n_bands=100, n_materials=k, rng=rng).H / 5000.0
    vertices[0] *= kind.get("dark", 1.0)
    weights = _weights(n, k, {"alpha": 0.5, **kind}, rng)
    X = weights @ vertices
    X *= np.exp(kind.get("brightness", 0.2) * rng.standard_normal((n, 1)))
    X += _noise_size(X, kind.get("snr", 30)) * rng.standard_normal(X.shape)
    X = np.maximum(_corrupted(X, kind.get("outliers", 0.0), rng), 0.0)
    return Planted(X, vertices, weights)


def mixed_covers(kind: Mapping[str, Any], rng: np.random.Generator) -> Planted:
    """Mix real pixels of some land covers; the vertices are the means of the covers."""
    scene = load_indian_pines()
    n, k = 3600, kind.get("k", 4)
    covers = [cover for cover in np.unique(scene.y[scene.y >= 0]) if np.sum(scene.y == cover) >= 200]
    chosen = rng.choice(covers, k, replace=False)
    pixels = [scene.X[scene.y == cover] / 10_000.0 for cover in chosen]
    weights = _weights(n, k, {"alpha": 0.5, **kind}, rng)
    X = np.zeros((n, scene.X.shape[1]))
    for at, some in enumerate(pixels):
        X += weights[:, at, None] * some[rng.integers(len(some), size=n)]
    X = _corrupted(X, kind.get("outliers", 0.0), rng)
    return Planted(X, np.stack([some.mean(axis=0) for some in pixels]), weights)


def _weights(n: int, k: int, kind: Mapping[str, Any], rng: np.random.Generator) -> FloatArray:
    alpha, purity, copies = kind.get("alpha", 1.0), kind.get("purity", 1.0), kind.get("copies", 1)
    weights = rng.dirichlet(np.full(k, alpha), n)
    if purity < 1.0:
        while len(above := np.flatnonzero(weights.max(axis=1) > purity)):
            weights[above] = rng.dirichlet(np.full(k, alpha), len(above))
        return weights
    weights[: k * copies] = np.repeat(np.eye(k), copies, axis=0)
    return weights


def _noise_size(X: FloatArray, snr: float) -> float:
    return float(np.sqrt(np.mean(X**2) / 10.0 ** (snr / 10.0)))


def _corrupted(X: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Replace some samples by uniform entries, up to twice as large as the largest entry."""
    n_bad = round(share * len(X))
    bad = rng.choice(len(X), n_bad, replace=False)
    X[bad] = np.abs(X).max() * rng.uniform(0.5, 2.0, (n_bad, 1)) * rng.random((n_bad, X.shape[1]))
    return X


def vertex_error(found: FloatArray, planted: Planted) -> float:
    """Return the mean distance of matched vertices, relative to that of the vertices from their mean."""
    true = planted.vertices
    gaps = np.linalg.norm(found[:, None, :] - true[None, :, :], axis=2)
    size = np.sqrt(np.mean(np.sum((true - true.mean(axis=0)) ** 2, axis=1)))
    return float(gaps[linear_sum_assignment(gaps)].mean() / size)


def matched(found: FloatArray, true: FloatArray) -> IntArray:
    """Return the place of the spectrum that belongs to each true one."""
    return linear_sum_assignment(-_cosines(found, true))[1]


def spectral_angles(found: FloatArray, true: FloatArray) -> list[float]:
    """Return the angles in degrees of the true spectra to the matched ones."""
    cosines = _cosines(found, true)
    rows, columns = linear_sum_assignment(-cosines)
    return [float(angle) for angle in np.degrees(np.arccos(np.clip(cosines[rows, columns], -1, 1)))]


def _cosines(found: FloatArray, true: FloatArray) -> FloatArray:
    return _unit(true) @ _unit(found).T


def _unit(spectra: FloatArray) -> FloatArray:
    norms = np.linalg.norm(spectra, axis=1, keepdims=True)
    return spectra / np.where(norms > 0, norms, 1.0)
