"""Values, gradients and updates of transform learning for one small problem, in place.

Arrays are the paper's way round, so that frames are contiguous: transformed virtual realizations X as (R, M,
N), power V and the inverse of the model as (M, N), components w as (M, K), activations h as (K, N).

Gradients are made of the cross power, the sums over realizations of X_a X_b, with a pair a < b a row: it is
had at the price of one gradient and serves that of any model.
"""

from __future__ import annotations

from math import log

from nonneg.kernels.jit import jit, part
from nonneg.kernels.rotations.numba import BARE, MATH

# Between these a product of four has not lost digits to underflow, nor does that of two such products.
SMALLEST, LARGEST = 1e-145, 1e145


@part(fastmath=MATH, **BARE)
def power_of(X, V):
    """Put the sums of squares over realizations into `V`."""
    m, n = V.shape
    for r in range(X.shape[0]):
        for a in range(m):
            row, x = V[a], X[r, a]
            if r == 0:
                for i in range(n):
                    row[i] = x[i] * x[i]
            else:
                for i in range(n):
                    row[i] += x[i] * x[i]


@part(fastmath=MATH, **BARE)
def cross_power_of(X, out):
    """Put the sums over realizations of X_a X_b, a < b, into the rows of `out`."""
    n_realizations, m, n = X.shape
    pair = 0
    for a in range(m):
        for b in range(a + 1, m):
            row = out[pair]
            x, y = X[0, a], X[0, b]
            for i in range(n):
                row[i] = x[i] * y[i]
            r = 1
            # Three at once spare loads and stores.
            while r + 3 <= n_realizations:
                x, x1, x2 = X[r, a], X[r + 1, a], X[r + 2, a]
                y, y1, y2 = X[r, b], X[r + 1, b], X[r + 2, b]
                for i in range(n):
                    row[i] += x[i] * y[i] + x1[i] * y1[i] + x2[i] * y2[i]
                r += 3
            while r < n_realizations:
                x, y = X[r, a], X[r, b]
                for i in range(n):
                    row[i] += x[i] * y[i]
                r += 1
            pair += 1


@part(fastmath=MATH, **BARE)
def skew_gradient(cross, inverse, out):
    """Put sum X_a X_b (inverse_a - inverse_b) into `out`, which is skew."""
    m, n = inverse.shape
    pair = 0
    for a in range(m):
        out[a, a] = 0.0
        of_a = inverse[a]
        for b in range(a + 1, m):
            of_b, row = inverse[b], cross[pair]
            total = 0.0
            for i in range(n):
                total += (of_a[i] - of_b[i]) * row[i]
            out[a, b] = total
            out[b, a] = -total
            pair += 1


@part(fastmath=MATH, **BARE)
def curvature_of(V, inverse, out):
    """Put sum (V_b inverse_a + V_a inverse_b) into `out`."""
    m, n = V.shape
    for a in range(m):
        for b in range(a, m):
            total = 0.0
            for i in range(n):
                total += V[b, i] * inverse[a, i] + V[a, i] * inverse[b, i]
            out[a, b] = total
            out[b, a] = total


@part(fastmath=MATH, **BARE)
def inner(A, B):
    """Return the sum of products."""
    total = 0.0
    m, n = A.shape
    for a in range(m):
        for i in range(n):
            total += A[a, i] * B[a, i]
    return total


@part(fastmath=MATH, **BARE)
def sum_of_logs(A, offset):
    """Return the sum of log(A + offset); eight factors share a logarithm."""
    total = 0.0
    m, n = A.shape
    for a in range(m):
        row = A[a]
        i = 0
        while i + 8 <= n:
            first = ((row[i] + offset) * (row[i + 1] + offset)) * (
                (row[i + 2] + offset) * (row[i + 3] + offset)
            )
            second = ((row[i + 4] + offset) * (row[i + 5] + offset)) * (
                (row[i + 6] + offset) * (row[i + 7] + offset)
            )
            if SMALLEST < first < LARGEST and SMALLEST < second < LARGEST:
                total += log(first * second)
            else:
                for j in range(i, i + 8):
                    total += log(row[j] + offset)
            i += 8
        while i < n:
            total += log(row[i] + offset)
            i += 1
    return total


@jit(fastmath=MATH, **BARE)
def measured(V, eps0, inverse, ratio):
    """Return C, L and I, each from its own definition; `ratio` is workspace."""
    m, n = V.shape
    fit, excess = 0.0, 0.0
    for a in range(m):
        data, one, row = V[a], inverse[a], ratio[a]
        for i in range(n):
            row[i] = (data[i] + eps0) * one[i]
            fit += row[i]
            excess += row[i] - 1.0
    # Divergences are small where ratios are near 1, so that the logarithms are taken of these.
    return (
        fit - sum_of_logs(inverse, 0.0),
        m * n + sum_of_logs(V, eps0),
        excess - sum_of_logs(ratio, 0.0),
    )
