"""Choices that rounding must not make: signs of vectors, and the largest of numbers that are nearly equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray

# Numbers within this share of each other are tied: above the rounding of single precision, below any
# difference that means something.
TIED = 1e-6
# Eigenvalues within this share of the largest are equal: the accuracy to which they are computed.
REPEATED = 1e-12


def first_largest(values: FloatArray) -> IntArray:
    """Return, for every column, the first row whose entry is not below the largest but for rounding."""
    top = values.max(axis=0)
    return np.argmax(values >= top - TIED * np.abs(top), axis=0)


def vector_signs(vectors: FloatArray) -> FloatArray:
    """Return signs that make the largest entry of every column positive, of tied ones the first."""
    largest = first_largest(np.abs(vectors))
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def fixed_vectors(values: Any, vectors: Any, repeated: float = REPEATED) -> Any:
    """Return eigenvectors with signs that are fixed, and a fixed basis where an eigenvalue is repeated."""
    size = float(np.abs(values).max(initial=0.0))
    gaps = np.abs(np.diff(values)) > repeated * size
    fixed = vectors.copy()
    for group in np.split(np.arange(len(values)), np.flatnonzero(gaps) + 1):
        # The vectors of zero are left alone: there may be many, and nothing is made of them.
        if len(group) > 1 and abs(values[group[0]]) > repeated * size:
            fixed[:, group] = _fixed_basis(vectors[:, group])
    return fixed * vector_signs(fixed)


def _fixed_basis(basis: FloatArray) -> FloatArray:
    """Return an orthonormal basis that depends on the span alone: projected unit vectors, longest first."""
    rest, directions = basis.copy(), []
    for _ in range(basis.shape[1]):
        longest = rest[first_largest(np.sum(rest**2, axis=1))]
        directions.append(longest / np.linalg.norm(longest))
        rest -= np.outer(rest @ directions[-1], directions[-1])
    return basis @ np.stack(directions, axis=1)


def rounded(values: Any) -> FloatArray:
    """Return numbers with their first 40 bits: sums of one set of numbers in any order are equal."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissa, 40)), exponent - 40)
