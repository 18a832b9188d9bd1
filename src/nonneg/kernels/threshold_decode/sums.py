"""The sums over decoded samples that an update needs."""

from __future__ import annotations

from typing import NamedTuple

from nonneg._typing import FloatArray


class DecodedSums(NamedTuple):
    """Sums over samples with decoded weights, of which a reference is subtracted; NumPy arrays of float64."""

    gram: FloatArray  # of the weights with a column of ones, shape (n + 1, n + 1)
    cross: FloatArray  # their products with the samples, shape (n + 1, m)
    # Number of negative values, the sum of their squares, and number of values kept; sample weights count.
    negative_counts: FloatArray
    negative_squares: FloatArray
    active: FloatArray
