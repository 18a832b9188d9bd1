"""From moments of samples and decoded weights to new features."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray
from nonneg.purification.moments import Moments

# Relative to the largest variance of the weights: directions below it are rounding (1e-16 times the number of
# samples summed, with a margin).
UNSEEN = 1e-11
# A weight whose variance is below this share of its squared mean is constant up to rounding.
CONSTANT = 1e-13
# A feature with less of itself is not scaled back: it is becoming another one. The mixing that the theorems
# allow leaves at least 0.9.
SMALLEST_SHARE = 0.1


def regression_target(H: FloatArray, moments: Moments, inverse: FloatArray | None = None) -> FloatArray:
    """Return Cov(x, x)^+ Cov(x, y): the features that predict the samples best from their decoded weights."""
    squares = np.diagonal(moments.gram)
    seen = (moments.active > 0) & (squares > CONSTANT * moments.total * moments.mean_weights**2)
    scale = np.where(seen, np.sqrt(np.where(seen, squares, 1.0)), np.inf)
    values, vectors = np.linalg.eigh(moments.gram / np.outer(scale, scale))
    kept = values > UNSEEN * values[-1]
    precision = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T / np.outer(scale, scale)
    # From the residual, so that small corrections keep their relative accuracy.
    found: FloatArray = H + precision @ (moments.cross - moments.gram @ H)
    if inverse is None:
        return found
    own = np.sum(found * inverse, axis=1)
    return found / np.where(own > SMALLEST_SHARE, own, 1.0)[:, None]


def covariance_target(
    H: FloatArray, moments: Moments, inverse: FloatArray, scale: float | FloatArray | None
) -> FloatArray:
    """Return r E[(y - y')(x - x')'] over independent pairs, with scale r: 2 r Cov(y, x), transposed."""
    covariance = moments.cross / max(moments.total, 1.0)
    if scale is not None:
        return 2.0 * np.broadcast_to(np.asarray(scale, dtype=np.float64), (len(H),))[:, None] * covariance
    own = np.sum(covariance * inverse, axis=1)
    seen = own > 1e-14 * float(np.abs(own).max(initial=0.0))
    return np.where(seen[:, None], covariance / np.where(seen, own, 1.0)[:, None], H)
