"""Bounds and predictions of the relative error of one direction per cone (Liu & Tan, the cr1-nmf paper).

Two kinds of numbers, which must not be confused. `cluster_bound` and `largest_angle_bound` hold for every
clustering of every data set. `expected_error` is what the error tends to when the data were drawn by the
paper's process (Theorems 6 and 8): single draws lie on both sides of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray

# Below this angle 1/2 - sin(2a)/(4a) loses more than a digit, and four terms of its series are exact.
_SERIES_BELOW = 0.05


def mean_squared_sine(angle: Any) -> Any:
    """Return f(a) = 1/2 - sin(2a)/(4a), the mean of sin^2 over angles that are uniform on (0, a)."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equation (26) and Lemma 11.
    angle = np.asarray(angle, dtype=np.float64)
    square = angle * angle
    series = square * (1 / 3 - square * (1 / 15 - square * (2 / 315 - square * (1 / 2835))))
    wide = np.where(angle > _SERIES_BELOW, angle, 1.0)
    values = np.where(angle > _SERIES_BELOW, 0.5 - np.sin(2 * wide) / (4 * wide), series)
    return float(values) if values.ndim == 0 else values


def cluster_bound(angles: Any, squared_norms: Any) -> float:
    """Return the bound (12) on the relative error of one direction per cluster, for any clustering."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Theorem 4, equation (12).
    sines = np.sin(np.minimum(angles, np.pi / 2))
    return float(np.sqrt(np.sum(_shares(squared_norms) * sines * sines)))


def largest_angle_bound(angles: Any) -> float:
    """Return the sine of the largest size angle: Theorem 4's bound (8), and Theorem 5's (17)."""
    largest = float(np.max(np.asarray(angles, dtype=np.float64), initial=0.0))
    return float(np.sin(min(largest, np.pi / 2)))


def expected_error(angles: Any, squared_norms: Any) -> float:
    """Return Theorem 6's value, which is also Theorem 8's limit: a prediction, not a bound."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Theorems 6 and 8, Remark 1.
    return float(np.sqrt(np.sum(_shares(squared_norms) * mean_squared_sine(angles))))


def error_about_axes(squared_norms: Any, outside: Any) -> float:
    """Return the relative error of projecting every point on the axis of its cone, equation (10)."""
    total = float(np.sum(np.asarray(squared_norms, dtype=np.float64)))
    residual = float(np.sum(np.asarray(outside, dtype=np.float64)))
    return float(np.sqrt(max(residual, 0.0) / total)) if total > 0 else 0.0


def corrected_size_angles(angles: Any, counts: Any) -> FloatArray:
    """Return size angles corrected for the size of the sample: (n + 1) / n times the largest angle seen."""
    angles = np.asarray(angles, dtype=np.float64)
    counts = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    return np.minimum(angles * (counts + 1.0) / counts, np.pi / 2)


def _shares(squared_norms: Any) -> FloatArray:
    weights = np.asarray(squared_norms, dtype=np.float64)
    total = float(weights.sum())
    return weights / total if total > 0 else np.zeros_like(weights)
