"""Sums and products over the rows of a frame, compiled: one pass over the rows, nothing in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import MATH

# Entries below which a call costs as much as its work.
LEAST_ENTRIES = 1 << 12


def is_supported(*arrays: Any) -> bool:
    """Tell whether arrays are contiguous batches in NumPy's float64 that are not small."""
    return all(
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.flags.c_contiguous
        and array.size >= LEAST_ENTRIES
        for array in arrays
    )


def sums_of_squares(X: FloatArray, offsets: IntArray, counts: IntArray) -> FloatArray:
    """Return the sums of squares over the rows of every frame."""
    found = np.empty((len(X), len(offsets), X.shape[2]))
    for rows, sums in zip(X, found, strict=True):
        sum_squares(rows, offsets, counts, sums)
    return found


def weighted_rows(X: FloatArray, weights: FloatArray, offsets: IntArray, counts: IntArray) -> FloatArray:
    """Multiply the rows of every frame by its weights."""
    found = np.empty_like(X)
    for rows, weight, out in zip(X, weights, found, strict=True):
        weight_rows(rows, weight, offsets, counts, out)
    return found


@jit(fastmath=MATH)
def sum_squares(X, offsets, counts, out):
    """Put the sums of squares over the rows of every frame into `out`."""
    m = X.shape[1]
    for i in range(offsets.shape[0]):
        total = out[i]
        row = X[offsets[i]]
        for a in range(m):
            total[a] = row[a] * row[a]
        for r in range(offsets[i] + 1, offsets[i] + counts[i]):
            row = X[r]
            for a in range(m):
                total[a] += row[a] * row[a]


@jit(fastmath=MATH)
def weight_rows(X, weights, offsets, counts, out):
    """Put the rows of every frame, times its weights, into `out`."""
    m = X.shape[1]
    for i in range(offsets.shape[0]):
        weight = weights[i]
        for r in range(offsets[i], offsets[i] + counts[i]):
            row, into = X[r], out[r]
            for a in range(m):
                into[a] = row[a] * weight[a]
