"""Separable data: some samples are the components, all others mix them (Nguyen, Fu & Wu, MERIT)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg._arguments import is_number
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidParameterError

_BLOCK = 1 << 16


@dataclass(frozen=True)
class SeparableData:
    """Generated points with their anchors.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        The points, one per row; noise may have made entries negative.
    H : array of shape (n_components, n_features)
        The anchors without noise: the paper's W, transposed.
    W : array of shape (n_samples, n_components)
        The weights, which sum to one: the paper's H, transposed.
    anchors : array of int of shape (n_components,)
        The row of X that is each anchor.
    noise : float
        Norm of the noise.
    snr : float
        Signal-to-noise ratio in dB that the data have.
    """

    X: FloatArray
    H: FloatArray
    W: FloatArray
    anchors: IntArray
    noise: float
    snr: float


def separable_dirichlet(
    n_samples: int = 200,
    n_features: int = 50,
    n_components: int = 40,
    *,
    snr: float | None = None,
    alpha: float = 1.0,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> SeparableData:
    """Return anchors with uniform entries and points between them with Dirichlet weights.

    Parameters
    ----------
    n_samples : int, default 200
        Number of points, anchors included.
    n_features : int, default 50
        Length of a point.
    n_components : int, default 40
        Number of anchors.
    snr : float, optional
        Signal-to-noise ratio in dB of the normal noise added to all points, anchors included: ``10 log10`` of
        the squared norm of the clean points over ``n_samples n_features sigma^2``. None adds none.
    alpha : float, default 1
        Parameter of the symmetric Dirichlet distribution; 1 is uniform over the simplex.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    SeparableData
        The points in random order.

    Notes
    -----
    The setting of figures 4 and 5 and table I of the MERIT paper. Points are drawn in blocks: a million
    of them need little more memory than they occupy.
    """
    _check_counts(n_samples, n_features, n_components)
    _check_ratio(snr)
    if not is_number(alpha) or not 0 < alpha < math.inf:
        raise InvalidParameterError(f"alpha must be a finite number above 0, got {alpha!r}.")
    rng = generator(rng)
    H = rng.random((n_components, n_features))
    order = rng.permutation(n_samples)
    W = np.zeros((n_samples, n_components), dtype=dtype)
    X = np.empty((n_samples, n_features), dtype=dtype)
    W[order[:n_components]] = np.eye(n_components)
    X[order[:n_components]] = H
    square = float(np.sum(H * H))
    for start in range(n_components, n_samples, _BLOCK):
        rows = order[start : start + _BLOCK]
        weights = rng.dirichlet(np.full(n_components, alpha), size=len(rows))
        points = weights @ H
        W[rows], X[rows] = weights, points
        square += float(np.sum(points * points))
    noise = 0.0
    if snr is not None:
        sigma = math.sqrt(square / (n_samples * n_features) / 10.0 ** (snr / 10.0))
        for start in range(0, n_samples, _BLOCK):
            added = sigma * rng.standard_normal((min(_BLOCK, n_samples - start), n_features))
            X[start : start + _BLOCK] += added.astype(dtype)
            noise += float(np.sum(added * added))
    anchors = order[:n_components].astype(np.intp)
    found = math.inf if noise == 0 else 10.0 * math.log10(square / noise)
    return SeparableData(X, H.astype(dtype), W, anchors, math.sqrt(noise), found)


def middle_points(
    n_features: int = 50,
    n_components: int = 10,
    *,
    snr: float | None = None,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> SeparableData:
    """Return anchors and the midpoints of all pairs of them, which the noise pushes outward.

    Parameters
    ----------
    n_features : int, default 50
        Length of a point.
    n_components : int, default 10
        Number of anchors K; there are ``K (K + 1) / 2`` points.
    snr : float, optional
        Signal-to-noise ratio in dB: ``10 log10`` of the squared norm of the clean points over that of the
        noise. None adds none.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    SeparableData
        The points in random order.

    Notes
    -----
    The setting of figures 2 and 3 of the MERIT paper and of section 4.1 of Gillis & Luce (2018). Anchors have
    uniform entries scaled to sum to one. The noise is not random: every midpoint moves away from the mean
    of the anchors, in proportion to its distance from it, and the anchors stay clean.
    """
    _check_counts(max(n_components, 1), n_features, n_components)
    _check_ratio(snr)
    rng = generator(rng)
    H = rng.random((n_components, n_features))
    H /= H.sum(axis=1, keepdims=True)
    first, second = np.triu_indices(n_components, k=1)
    n_samples = n_components + len(first)
    W = np.zeros((n_samples, n_components))
    W[:n_components] = np.eye(n_components)
    middle = np.arange(n_components, n_samples)
    W[middle, first] = W[middle, second] = 0.5
    clean = W @ H
    noise = np.zeros_like(clean)
    if snr is not None and len(first):
        outward = clean[n_components:] - H.mean(axis=0)
        size = np.linalg.norm(clean) / 10.0 ** (snr / 20.0)
        noise[n_components:] = outward * (size / np.linalg.norm(outward))
    order = rng.permutation(n_samples)
    X = (clean + noise)[order]
    anchors = np.argsort(order)[:n_components].astype(np.intp)
    size = float(np.linalg.norm(noise))
    found = math.inf if size == 0 else 20.0 * math.log10(float(np.linalg.norm(clean)) / size)
    return SeparableData(X.astype(dtype), H.astype(dtype), W[order].astype(dtype), anchors, size, found)


def _check_ratio(snr: Any) -> None:
    if snr is not None and (not is_number(snr) or not math.isfinite(snr)):
        raise InvalidParameterError(
            f"snr must be None, for no noise, or a finite number of decibels, got {snr!r}."
        )


def _check_counts(n_samples: int, n_features: int, n_components: int) -> None:
    if not 1 <= n_components <= n_samples or n_features < 1:
        raise InvalidParameterError(
            f"Expected at least one feature and from 1 to n_samples={n_samples} anchors, got "
            f"n_features={n_features} and n_components={n_components}."
        )
