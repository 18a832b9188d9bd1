"""Rows that belong to frames: sums of squares, weights, and how well a model fits, one run at a time."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.compiled.jit import jit
from nonneg.kernels.compiled.rotations import MATH
from nonneg.kernels.compiled.transform_objectives import (
    equalize,
    inverse_model,
    put_measures,
    sum_of_logs,
)


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
def weight_rows(X, weights, factor, starts, counts, out):
    """Put the rows of every frame, times its weights and a factor, into `out`."""
    m = X.shape[1]
    for i in range(starts.shape[0]):
        weight = weights[i]
        for r in range(starts[i], starts[i] + counts[i]):
            row, into = X[r], out[r]
            for a in range(m):
                into[a] = row[a] * (factor * weight[a])


@jit(error_model="numpy")
def equalize_factors(V, eps0, activations, components, n_updates, inverse):
    """Update the factors of V (n, m), in place, and put the inverse of their model (n, m) into `inverse`."""
    n, m = V.shape
    k = components.shape[0]
    data, w = np.empty((m, n)), np.empty((m, k))
    h, turned = np.empty((k, n)), np.empty((m, n))
    for i in range(n):
        for a in range(m):
            data[a, i] = V[i, a]
        for c in range(k):
            h[c, i] = activations[i, c]
    for a in range(m):
        for c in range(k):
            w[a, c] = components[c, a]
    inverse_model(w, h, eps0, turned)
    room = np.empty((m, n))
    equalize(data, eps0, w, h, n_updates, turned, room, np.empty((k, n)), np.empty((k, n)))
    for i in range(n):
        for a in range(m):
            inverse[i, a] = turned[a, i]
        for c in range(k):
            activations[i, c] = h[c, i]
    for a in range(m):
        for c in range(k):
            components[c, a] = w[a, c]


@jit(error_model="numpy")
def fit_measures(V, eps0, inverse, facts):
    """Put C, L and I into `facts`."""
    put_measures(V, eps0, inverse, facts)


@jit(error_model="numpy")
def log_sum(V, eps0):
    """Return the sum of log(V + eps0)."""
    return sum_of_logs(V, eps0)
