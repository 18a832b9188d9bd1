"""Values, gradients and updates of transform learning for one small problem, in place.

Arrays are the paper's way round, so that frames are contiguous: transformed virtual realizations X as (R, M,
N), power V and the inverse of the model as (M, N), components w as (M, K), activations h as (K, N).

Gradients are made of the cross power, the sums over realizations of X_a X_b, with a pair a < b a row: it is
had at the price of one gradient and serves that of any model.
"""

from __future__ import annotations

from math import log

from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import BARE, MATH, multiply

# Between these a product of four has not lost digits to underflow, nor does that of two such products.
SMALLEST, LARGEST = 1e-145, 1e145
# Added to denominators, as in `nonneg.transforms.factor_updates`, and to those of which four are multiplied.
FLOOR = 2.2250738585072014e-308
LEAST = 1e-75


@jit(fastmath=MATH, **BARE)
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


@jit(fastmath=MATH, **BARE)
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


@jit(fastmath=MATH, **BARE)
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


@jit(fastmath=MATH, **BARE)
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


@jit(fastmath=MATH, **BARE)
def inner(A, B):
    """Return the sum of products."""
    total = 0.0
    m, n = A.shape
    for a in range(m):
        for i in range(n):
            total += A[a, i] * B[a, i]
    return total


@jit(fastmath=MATH, **BARE)
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
def invert(out, offset):
    """Put 1 / (out + offset) into `out`: one division for four rows, which takes as long as ten products."""
    m, n = out.shape
    a = 0
    while a + 4 <= m:
        first, second, third, fourth = out[a], out[a + 1], out[a + 2], out[a + 3]
        for i in range(n):
            x, y, z, t = first[i] + offset, second[i] + offset, third[i] + offset, fourth[i] + offset
            xy, zt = x * y, z * t
            every = 1.0 / (xy * zt)
            xy, zt = xy * every, zt * every
            first[i], second[i], third[i], fourth[i] = y * zt, x * zt, t * xy, z * xy
        a += 4
    while a < m:
        other = min(a + 1, m - 1)
        first, second = out[a], out[other]
        if other > a:
            for i in range(n):
                x, y = first[i] + offset, second[i] + offset
                both = 1.0 / (x * y)
                first[i], second[i] = y * both, x * both
        else:
            for i in range(n):
                first[i] = 1.0 / (first[i] + offset)
        a += 2


@jit(fastmath=MATH, **BARE)
def inverse_model(w, h, eps0, out):
    """Put 1 / (w h + eps0) into `out`."""
    multiply(w, h, out)
    invert(out, eps0)


@jit(fastmath=MATH, **BARE)
def weigh(V, eps0, inverse, ratio):
    """Put (V + eps0) times the square of `inverse` into `ratio`."""
    m, n = V.shape
    for a in range(m):
        one, two, data = inverse[a], ratio[a], V[a]
        for i in range(n):
            two[i] = (data[i] + eps0) * (one[i] * one[i])


@jit(fastmath=MATH, **BARE)
def equalize_components(w, h, inverse, ratio):
    """Multiply every w by (ratio h') / (inverse h'); two rows and two components at once spare loads."""
    m, k = w.shape
    n = h.shape[1]
    a = 0
    while a < m:
        b = min(a + 1, m - 1)
        under, over, under_b, over_b = inverse[a], ratio[a], inverse[b], ratio[b]
        c = 0
        while c < k:
            d = min(c + 1, k - 1)
            x, y = h[c], h[d]
            above, above_d, below, below_d = 0.0, 0.0, 0.0, 0.0
            next_above, next_above_d, next_below, next_below_d = 0.0, 0.0, 0.0, 0.0
            for i in range(n):
                above += x[i] * over[i]
                below += x[i] * under[i]
                above_d += y[i] * over[i]
                below_d += y[i] * under[i]
                next_above += x[i] * over_b[i]
                next_below += x[i] * under_b[i]
                next_above_d += y[i] * over_b[i]
                next_below_d += y[i] * under_b[i]
            w[a, c] *= above / (below + FLOOR)
            if d > c:
                w[a, d] *= above_d / (below_d + FLOOR)
            if b > a:
                w[b, c] *= next_above / (next_below + FLOOR)
                if d > c:
                    w[b, d] *= next_above_d / (next_below_d + FLOOR)
            c += 2
        a += 2


@jit(fastmath=MATH, **BARE)
def equalize(V, eps0, w, h, n_updates, inverse, ratio, above, below, turned):
    """Make updates of majorization-equalization for the data V + eps0."""
    # `inverse` is that of the model before and after; what comes behind it is room to work in.
    m, k = w.shape
    n = h.shape[1]
    for _ in range(n_updates):
        weigh(V, eps0, inverse, ratio)
        for c in range(k):
            for a in range(m):
                turned[c, a] = w[a, c]
        multiply(turned, ratio, above)
        multiply(turned, inverse, below)
        invert(below, LEAST)
        for c in range(k):
            up, down, row = above[c], below[c], h[c]
            for i in range(n):
                row[i] *= up[i] * down[i]
        inverse_model(w, h, eps0, inverse)
        weigh(V, eps0, inverse, ratio)
        equalize_components(w, h, inverse, ratio)
        for c in range(k):
            total = 0.0
            for a in range(m):
                total += w[a, c]
            if total > 0.0:
                row, share = h[c], 1.0 / total
                for a in range(m):
                    w[a, c] *= share
                for i in range(n):
                    row[i] *= total
        inverse_model(w, h, eps0, inverse)


@jit(fastmath=MATH, **BARE)
def measured(V, eps0, inverse, ratio):
    """Return C, L and I, each from its own definition; `ratio` is room to work in."""
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
