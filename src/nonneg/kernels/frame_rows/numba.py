"""Rows that belong to frames: sums of squares, weights, and how well a model fits, one run at a time."""

from __future__ import annotations

from math import log

import numpy as np

from nonneg.kernels.frame_rows.two_components import equalize_two
from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import MATH
from nonneg.kernels.transforms.objectives_numba import FLOOR, LARGEST, SMALLEST, sum_of_logs


@jit(fastmath=MATH)
def sum_squares(X, starts, counts, out):
    """Put the sums of squares over the rows of every frame into `out`."""
    m = X.shape[1]
    for i in range(starts.shape[0]):
        total = out[i]
        row = X[starts[i]]
        for a in range(m):
            total[a] = row[a] * row[a]
        for r in range(starts[i] + 1, starts[i] + counts[i]):
            row = X[r]
            for a in range(m):
                total[a] += row[a] * row[a]


@jit(fastmath=MATH)
def add_single(X, rest, scale, starts, counts, out):
    """Add rows in single precision, times a factor, to X, and put the sums of squares into `out`."""
    m = X.shape[1]
    for i in range(starts.shape[0]):
        total = out[i]
        for a in range(m):
            total[a] = 0.0
        for r in range(starts[i], starts[i] + counts[i]):
            row, more = X[r], rest[r]
            for a in range(m):
                entry = row[a] + scale * more[a]
                row[a] = entry
                total[a] += entry * entry


@jit(fastmath=MATH)
def weight_rows(X, weights, factor, starts, counts, out):
    """Put the rows of every frame, times its weights and a factor, into `out`."""
    m = X.shape[1]
    for i in range(starts.shape[0]):
        weight = weights[i]
        for r in range(starts[i], starts[i] + counts[i]):
            row, into = X[r], out[r]
            for a in range(m):
                into[a] = row[a] * (factor * weight[a])


@jit(fastmath=MATH)
def weight_rows_twice(X, weights, starts, counts, out, single):
    """Put the rows of every frame, times its weights, into `out` and `single`."""
    m = X.shape[1]
    for i in range(starts.shape[0]):
        weight = weights[i]
        for r in range(starts[i], starts[i] + counts[i]):
            row, into, rounded = X[r], out[r], single[r]
            for a in range(m):
                entry = row[a] * weight[a]
                into[a] = entry
                rounded[a] = entry


@jit(fastmath=MATH, error_model="numpy")
def inverse_row(weights, h, eps0, out):
    """Put 1 / (weights h + eps0) into `out`; two components at a time, one division for two entries."""
    k, n = h.shape
    if k == 1:
        first, x = h[0], weights[0]
        for i in range(n):
            out[i] = eps0 + x * first[i]
    else:
        first, second, x, y = h[0], h[1], weights[0], weights[1]
        for i in range(n):
            out[i] = eps0 + x * first[i] + y * second[i]
    c = 2
    while c + 2 <= k:
        first, second, x, y = h[c], h[c + 1], weights[c], weights[c + 1]
        for i in range(n):
            out[i] += x * first[i] + y * second[i]
        c += 2
    if c < k:
        first, x = h[c], weights[c]
        for i in range(n):
            out[i] += x * first[i]
    half = n // 2
    left, right = out[:half], out[half : 2 * half]
    for i in range(half):
        p, q = left[i], right[i]
        both = 1.0 / (p * q)
        left[i], right[i] = q * both, p * both
    if 2 * half < n:
        out[n - 1] = 1.0 / out[n - 1]


@jit(fastmath=MATH, error_model="numpy")
def equalize_rows(data, eps0, w, h, n_updates, inverse):
    """Update h (k, n), then w (m, k), so many times; the inverse of the model (m, n) goes to `inverse`."""
    # `data` is V + eps0. A row of the model is made when it is needed, and stays in the fastest memory.
    m, k = w.shape
    n = h.shape[1]
    above, below = np.empty((k, n)), np.empty((k, n))
    one, two = np.empty(n), np.empty(n)
    for _ in range(n_updates):
        above[:, :] = 0.0
        below[:, :] = 0.0
        for a in range(m):
            inverse_row(w[a], h, eps0, one)
            row = data[a]
            for i in range(n):
                two[i] = row[i] * (one[i] * one[i])
            for c in range(k):
                x, up, down = w[a, c], above[c], below[c]
                for i in range(n):
                    up[i] += x * two[i]
                    down[i] += x * one[i]
        for c in range(k):
            up, down, line = above[c], below[c], h[c]
            for i in range(n):
                line[i] *= up[i] / (down[i] + FLOOR)
        for a in range(m):
            inverse_row(w[a], h, eps0, one)
            row = data[a]
            for i in range(n):
                two[i] = row[i] * (one[i] * one[i])
            for c in range(k):
                line = h[c]
                increase, decrease = 0.0, 0.0
                for i in range(n):
                    increase += line[i] * two[i]
                    decrease += line[i] * one[i]
                w[a, c] *= increase / (decrease + FLOOR)
        for c in range(k):
            total = 0.0
            for a in range(m):
                total += w[a, c]
            if total > 0.0:
                for a in range(m):
                    w[a, c] /= total
                line = h[c]
                for i in range(n):
                    line[i] *= total
    for a in range(m):
        inverse_row(w[a], h, eps0, inverse[a])


@jit(error_model="numpy")
def equalize_factors(V, eps0, activations, components, n_updates, inverse):
    """Update the factors of V (n, m), in place, and put the inverse of their model (n, m) into `inverse`."""
    n, m = V.shape
    k = components.shape[0]
    data = np.empty((m, n))
    for i in range(n):
        for a in range(m):
            data[a, i] = V[i, a] + eps0
    if k == 2:
        equalize_two(V + eps0, data, eps0, activations, components, n_updates, inverse)
        return
    w, h, turned = np.empty((m, k)), np.empty((k, n)), np.empty((m, n))
    for i in range(n):
        for c in range(k):
            h[c, i] = activations[i, c]
    for a in range(m):
        for c in range(k):
            w[a, c] = components[c, a]
    equalize_rows(data, eps0, w, h, n_updates, turned)
    for i in range(n):
        for a in range(m):
            inverse[i, a] = turned[a, i]
        for c in range(k):
            activations[i, c] = h[c, i]
    for a in range(m):
        for c in range(k):
            components[c, a] = w[a, c]


@jit(fastmath=MATH, error_model="numpy")
def fit_measures(V, eps0, inverse, facts):
    """Put C, L and I into `facts`; eight factors share a logarithm where their product is a normal number."""
    n, m = V.shape
    fit, excess, of_ratios, of_data = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        data, one = V[i], inverse[i]
        for a in range(m):
            ratio = (data[a] + eps0) * one[a]
            fit += ratio
            excess += ratio - 1.0
        a = 0
        while a < m:
            end = min(a + 8, m)
            ratios, values = 1.0, 1.0
            for b in range(a, end):
                ratios *= (data[b] + eps0) * one[b]
                values *= data[b] + eps0
            if SMALLEST < ratios < LARGEST and SMALLEST < values < LARGEST:
                of_ratios += log(ratios)
                of_data += log(values)
            else:
                for b in range(a, end):
                    of_ratios += log((data[b] + eps0) * one[b])
                    of_data += log(data[b] + eps0)
            a = end
    # The logarithm of the model is that of the data less that of their ratio.
    facts[0] = fit + of_data - of_ratios
    facts[1] = n * m + of_data
    facts[2] = excess - of_ratios


@jit(error_model="numpy")
def log_sum(V, eps0):
    """Return the sum of log(V + eps0)."""
    return sum_of_logs(V, eps0)
