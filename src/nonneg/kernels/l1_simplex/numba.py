"""The simplex method for rows of minimum l1 norm, compiled.

Inverses and products are written out: NumPy's would take ten times as long to compile as the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.kernels.jit import jit, part

MATH = {"contract", "nsz", "reassoc"}
# Pivots between refactorizations of the basis, before rounding adds up; simplex codes use 20 to 100.
REFACTORIZE = 40


def is_supported(A: Any) -> bool:
    """Tell whether the matrix is a NumPy array."""
    return isinstance(A, np.ndarray)


@part(error_model="numpy")
def _invert(work, out):
    # Gauss-Jordan with row pivoting; `work` is overwritten.
    n = work.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 1.0 if i == j else 0.0
    for column in range(n):
        best = column
        for i in range(column + 1, n):
            if abs(work[i, column]) > abs(work[best, column]):
                best = i
        if best != column:
            for j in range(n):
                work[column, j], work[best, j] = work[best, j], work[column, j]
                out[column, j], out[best, j] = out[best, j], out[column, j]
        pivot = work[column, column]
        for j in range(n):
            work[column, j] /= pivot
            out[column, j] /= pivot
        for i in range(n):
            factor = work[i, column]
            if i != column and factor != 0:
                for j in range(n):
                    work[i, j] -= factor * work[column, j]
                    out[i, j] -= factor * out[column, j]


@part(error_model="numpy")
def _invert_rows(A, basis, work, out):
    n = A.shape[1]
    for i in range(n):
        for j in range(n):
            work[i, j] = A[basis[i], j]
    _invert(work, out)


@part(fastmath=MATH, error_model="numpy")
def _matrix_times(matrix, vector, out):
    for i in range(matrix.shape[0]):
        total = 0.0
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * vector[j]
        out[i] = total


@part(fastmath=MATH, error_model="numpy")
def _vector_times(vector, matrix, out):
    out[:] = 0.0
    for i in range(matrix.shape[0]):
        factor = vector[i]
        for j in range(matrix.shape[1]):
            out[j] += factor * matrix[i, j]


@part(error_model="numpy")
def _exchange(inverse, coefficients, place):
    # Row `place` of the basis becomes coefficients @ basis: one column of the inverse is scaled, the others
    # lose what they have of it.
    n = inverse.shape[0]
    pivot = coefficients[place]
    for i in range(n):
        own = inverse[i, place] / pivot
        for j in range(n):
            inverse[i, j] -= coefficients[j] * own
        inverse[i, place] = own


@part(error_model="numpy")
def _leaving(values, coefficients, side, signs, slope):
    # Along b_k = side t the norm is convex and piecewise linear: it falls until enough of the other entries
    # have changed their sign.
    length, place = 0.0, -1
    while slope < 0:
        length, place = np.inf, -1
        for j in range(len(values)):
            rate = side * coefficients[j]
            if signs[j] * rate > 1e-11:
                here = max(values[j] / rate, 0.0)
                larger = place < 0 or abs(rate) > abs(coefficients[place])
                if here < length or (here == length and larger):
                    length, place = here, j
        if place < 0:
            break
        slope += 2.0 * abs(coefficients[place])
        signs[place] = -signs[place]
    return length, place


@jit(error_model="numpy")
def l1_rows(A, targets, bases, out, dual, n_pivots, tol, max_pivots, start, stop):
    """Solve problems `start` to `stop`, in place; see `kernels.l1_simplex.minimum_l1_rows`."""
    m, n = A.shape
    inside = np.zeros(m, dtype=np.bool_)
    signs, values, y, coefficients = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    z = np.empty(m)
    work, inverse = np.empty((n, n)), np.empty((n, n))
    for i in range(start, stop):
        basis = bases[i]
        inside[:] = False
        for j in range(n):
            inside[basis[j]] = True
        _invert_rows(A, basis, work, inverse)
        _vector_times(targets[i], inverse, values)
        for j in range(n):
            signs[j] = 1.0 if values[j] >= 0 else -1.0
        n_pivots[i] = -1
        for pivot in range(max_pivots):
            _matrix_times(inverse, signs, y)
            _matrix_times(A, y, z)
            best, entering = 1.0 + tol, -1
            for k in range(m):
                if abs(z[k]) > best and not inside[k]:
                    best, entering = abs(z[k]), k
            if entering < 0:
                n_pivots[i] = pivot
                break
            side = 1.0 if z[entering] > 0 else -1.0
            _vector_times(A[entering], inverse, coefficients)
            length, place = _leaving(values, coefficients, side, signs, 1.0 - best)
            if place < 0:
                break
            for j in range(n):
                values[j] -= side * length * coefficients[j]
            values[place] = side * length
            signs[place] = side
            inside[basis[place]] = False
            inside[entering] = True
            basis[place] = entering
            _exchange(inverse, coefficients, place)
            if pivot % REFACTORIZE == 0:
                _invert_rows(A, basis, work, inverse)
                _vector_times(targets[i], inverse, values)
        _invert_rows(A, basis, work, inverse)
        for k in range(m):
            out[i, k] = 0.0
        for j in range(n):
            out[i, basis[j]] = inverse[i, j]
        _matrix_times(inverse, signs, dual[i])
