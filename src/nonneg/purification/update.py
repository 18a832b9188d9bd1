"""From moments of samples and decoded weights to new features."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray
from nonneg.purification.moments import Moments

# Directions of the weights whose variance is below this share of the largest are taken as unseen.
UNSEEN = 1e-11
# A weight whose variance is below this share of its squared mean does not vary.
CONSTANT = 1e-13
# A feature that lost more of itself than this is not scaled back: it is becoming another one.
SMALLEST_SHARE = 0.1


def regression_target(
    features: FloatArray, moments: Moments, inverse: FloatArray | None = None
) -> FloatArray:
    """Return Cov(x, x)^+ Cov(x, y): the features that predict the samples best from their decoded weights."""
    squares = np.diagonal(moments.gram)
    seen = (moments.active > 0) & (squares > CONSTANT * moments.total * moments.mean_weights**2)
    scale = np.where(seen, np.sqrt(np.where(seen, squares, 1.0)), np.inf)
    values, vectors = np.linalg.eigh(moments.gram / np.outer(scale, scale))
    kept = values > UNSEEN * max(float(values[-1]), 0.0)
    precision = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T / np.outer(scale, scale)
    # From the residual: what is small comes out with all its digits.
    found: FloatArray = features + precision @ (moments.cross - moments.gram @ features)
    if inverse is None:
        return found
    own = np.sum(found * inverse, axis=1)
    return found / np.where(own > SMALLEST_SHARE, own, 1.0)[:, None]


def covariance_target(
    features: FloatArray, moments: Moments, inverse: FloatArray, r: float | FloatArray | None
) -> FloatArray:
    """Return r E[(y - y')(x - x')'] over independent pairs, which is 2 r Cov(y, x), transposed."""
    covariance = moments.cross / max(moments.total, 1.0)
    if r is not None:
        return 2.0 * np.broadcast_to(np.asarray(r, dtype=np.float64), (len(features),))[:, None] * covariance
    own = np.sum(covariance * inverse, axis=1)
    seen = own > 1e-14 * float(np.abs(own).max(initial=0.0))
    return np.where(seen[:, None], covariance / np.where(seen, own, 1.0)[:, None], features)
