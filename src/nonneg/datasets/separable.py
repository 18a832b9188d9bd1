"""Separable data: some samples are the components, all others mix them (Nguyen, Fu & Wu, MERIT)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray, IntArray
from nonneg.datasets.dataset import check_numbers
from nonneg.exceptions import InvalidParameterError, as_data_errors

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
    """

    X: FloatArray
    H: FloatArray
    W: FloatArray
    anchors: IntArray


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
    check_numbers(separable_dirichlet, locals())
    if n_components > n_samples or alpha == 0:
        raise InvalidParameterError(
            f"Expected from 1 to n_samples={n_samples} anchors, alpha above 0; got {n_components=}, {alpha=}."
        )
    with as_data_errors("dtype"):
        dtype = np.dtype(dtype)
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
    if snr is not None:
        sigma = math.sqrt(square / (n_samples * n_features) / 10.0 ** (snr / 10.0))
        for start in range(0, n_samples, _BLOCK):
            noise = sigma * rng.standard_normal((min(_BLOCK, n_samples - start), n_features))
            X[start : start + _BLOCK] += noise.astype(dtype)
    return SeparableData(X, H.astype(dtype), W, order[:n_components].astype(np.intp))
