"""Values, gradients and updates of transform learning for one small problem, in place.

Arrays are the paper's way round, so that frames are contiguous: transformed virtual realizations X as (M, R
N) with the frames of one realization side by side, power V and the inverse of the model as (M, N), components
w as (M, K), activations h as (K, N).
"""

from __future__ import annotations

from math import log

from nonneg.kernels.compiled.jit import jit
from nonneg.kernels.compiled.rotations import MATH, multiply

# Between these a product of four has not lost digits to underflow.
SMALLEST, LARGEST = 1e-290, 1e290
# Added to denominators, as in `nonneg.transforms.factor_updates`.
FLOOR = 2.2250738585072014e-308


@jit(fastmath=MATH, error_model="numpy")
def power_of(X, V):
    """Put the sums of squares over realizations into `V`."""
    m, n = V.shape
    n_realizations = X.shape[1] // n
    for a in range(m):
        row = V[a]
        for i in range(n):
            row[i] = 0.0
        for r in range(n_realizations):
            x = X[a, r * n : (r + 1) * n]
            for i in range(n):
                row[i] += x[i] * x[i]


@jit(fastmath=MATH, error_model="numpy")
def skew_gradient(X, inverse, out):
    """Put sum X_a X_b (inverse_a - inverse_b) into `out`, which is skew."""
    m, n = inverse.shape
    n_realizations = X.shape[1] // n
    for a in range(m):
        out[a, a] = 0.0
        for b in range(a + 1, m):
            of_a, of_b = inverse[a], inverse[b]
            total = 0.0
            for r in range(n_realizations):
                x, y = X[a, r * n : (r + 1) * n], X[b, r * n : (r + 1) * n]
                for i in range(n):
                    total += (of_a[i] - of_b[i]) * (x[i] * y[i])
            out[a, b] = total
            out[b, a] = -total


@jit(fastmath=MATH, error_model="numpy")
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


@jit(fastmath=MATH, error_model="numpy")
def inner(A, B):
    """Return the sum of products."""
    total = 0.0
    m, n = A.shape
    for a in range(m):
        for i in range(n):
            total += A[a, i] * B[a, i]
    return total


@jit(fastmath=MATH, error_model="numpy")
def sum_of_logs(A, offset):
    """Return the sum of log(A + offset); four factors share a logarithm."""
    total = 0.0
    m, n = A.shape
    for a in range(m):
        row = A[a]
        i = 0
        while i + 4 <= n:
            product = ((row[i] + offset) * (row[i + 1] + offset)) * (
                (row[i + 2] + offset) * (row[i + 3] + offset)
            )
            if SMALLEST < product < LARGEST:
                total += log(product)
            else:
                for j in range(i, i + 4):
                    total += log(row[j] + offset)
            i += 4
        while i < n:
            total += log(row[i] + offset)
            i += 1
    return total


@jit(fastmath=MATH, error_model="numpy")
def inverse_model(w, h, eps0, out):
    """Put 1 / (w h + eps0) into `out`."""
    multiply(w, h, out)
    m, n = out.shape
    a = 0
    while a + 2 <= m:
        row, other = out[a], out[a + 1]
        for i in range(n):
            # One division for two rows: a division takes as long as ten multiplications.
            x, y = row[i] + eps0, other[i] + eps0
            both = 1.0 / (x * y)
            row[i], other[i] = y * both, x * both
        a += 2
    if a < m:
        row = out[a]
        for i in range(n):
            row[i] = 1.0 / (row[i] + eps0)


@jit(fastmath=MATH, error_model="numpy")
def equalize(V, eps0, w, h, n_updates, inverse, ratio, above, below, turned):
    """Make updates of majorization-equalization for the data V + eps0.

    `inverse` is that of the model before and after; what comes behind it is room to work in.
    """
    m, k = w.shape
    n = h.shape[1]
    for _ in range(n_updates):
        for a in range(m):
            one, two, data = inverse[a], ratio[a], V[a]
            for i in range(n):
                two[i] = (data[i] + eps0) * (one[i] * one[i])
        for c in range(k):
            for a in range(m):
                turned[c, a] = w[a, c]
        multiply(turned, ratio, above)
        multiply(turned, inverse, below)
        for c in range(k):
            up, down, row = above[c], below[c], h[c]
            for i in range(n):
                row[i] *= up[i] / (down[i] + FLOOR)
        inverse_model(w, h, eps0, inverse)
        for a in range(m):
            one, two, data = inverse[a], ratio[a], V[a]
            for i in range(n):
                two[i] = (data[i] + eps0) * (one[i] * one[i])
            c = 0
            while c < k:
                # Two components at once, so that rows are loaded half as often; the last may stand alone.
                other = min(c + 1, k - 1)
                x, y = h[c], h[other]
                of_x, of_y, under_x, under_y = 0.0, 0.0, 0.0, 0.0
                for i in range(n):
                    of_x += x[i] * two[i]
                    under_x += x[i] * one[i]
                    of_y += y[i] * two[i]
                    under_y += y[i] * one[i]
                w[a, c] *= of_x / (under_x + FLOOR)
                if other > c:
                    w[a, other] *= of_y / (under_y + FLOOR)
                c += 2
        for c in range(k):
            total = 0.0
            for a in range(m):
                total += w[a, c]
            if total > 0.0:
                row = h[c]
                for a in range(m):
                    w[a, c] /= total
                for i in range(n):
                    row[i] *= total
        inverse_model(w, h, eps0, inverse)


@jit(fastmath=MATH, error_model="numpy")
def put_measures(V, eps0, inverse, facts):
    """Put C, L and I into `facts`, each from its own definition."""
    m, n = V.shape
    fit, excess, logs = 0.0, 0.0, 0.0
    for a in range(m):
        data, one = V[a], inverse[a]
        for i in range(n):
            ratio = (data[i] + eps0) * one[i]
            fit += ratio
            excess += ratio - 1.0
        i = 0
        while i + 4 <= n:
            # Divergences are small where ratios are near 1, so that their logarithms are taken of them.
            product = 1.0
            for j in range(i, i + 4):
                product *= (data[j] + eps0) * one[j]
            if SMALLEST < product < LARGEST:
                logs += log(product)
            else:
                for j in range(i, i + 4):
                    logs += log((data[j] + eps0) * one[j])
            i += 4
        while i < n:
            logs += log((data[i] + eps0) * one[i])
            i += 1
    facts[0] = fit - sum_of_logs(inverse, 0.0)
    facts[1] = m * n + sum_of_logs(V, eps0)
    facts[2] = excess - logs
