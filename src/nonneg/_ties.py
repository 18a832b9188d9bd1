"""Choices that rounding must not make: signs of vectors, and the largest of numbers that are nearly equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray

# Numbers within this share of each other are tied: above the rounding of single precision, below any
# difference that means something.
TIED = 1e-6


def first_largest(values: FloatArray) -> IntArray:
    """Return, for every column, the first row whose entry is not below the largest but for rounding."""
    top = values.max(axis=0)
    return np.argmax(values >= top - TIED * np.abs(top), axis=0)


def vector_signs(vectors: FloatArray) -> FloatArray:
    """Return signs that make the largest entry of every column positive, of tied ones the first."""
    largest = first_largest(np.abs(vectors))
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def rounded(values: Any) -> FloatArray:
    """Return numbers with their first 40 bits: sums of one set of numbers in any order are equal."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissa, 40)), exponent - 40)
