"""Majorization-equalization with two components, two rows of the model at a time.

Both rows share the loads of the other factor and one division, which takes as long as ten multiplications;
nothing is stored in between. With the data in both orders each factor is updated row by row.
"""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import MATH
from nonneg.kernels.transforms.objectives_numba import FLOOR


@jit(fastmath=MATH, error_model="numpy")
def update_rows(data, other, w, v, eps0, g, h):
    """Update the weights w and v of two rows."""
    w0, w1, v0, v1 = w[0], w[1], v[0], v[1]
    a, b, c, d, e, f, k, m = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(g.shape[0]):
        x, y = g[i], h[i]
        p, q = eps0 + w0 * x + w1 * y, eps0 + v0 * x + v1 * y
        both = 1.0 / (p * q)
        p, q = q * both, p * both
        r, s = data[i] * (p * p), other[i] * (q * q)
        a += x * r
        b += y * r
        c += x * p
        d += y * p
        e += x * s
        f += y * s
        k += x * q
        m += y * q
    w[0], w[1] = w0 * (a / (c + FLOOR)), w1 * (b / (d + FLOOR))
    v[0], v[1] = v0 * (e / (k + FLOOR)), v1 * (f / (m + FLOOR))


@jit(fastmath=MATH, error_model="numpy")
def put_inverse(w, eps0, g, h, out):
    """Put the inverse of one row of the model into `out`."""
    w0, w1 = w[0], w[1]
    for i in range(g.shape[0]):
        out[i] = 1.0 / (eps0 + w0 * g[i] + w1 * h[i])


@jit(error_model="numpy")
def update_all_rows(data, w, eps0, other):
    """Update w (m, 2) for data (m, n) and the other factor (2, n)."""
    m = data.shape[0]
    for a in range(0, m - 1, 2):
        update_rows(data[a], data[a + 1], w[a], w[a + 1], eps0, other[0], other[1])
    if m % 2:
        last = w[m - 1]
        update_rows(data[m - 1], data[m - 1], last, last.copy(), eps0, other[0], other[1])


@jit(error_model="numpy")
def equalize_two(data, turned, eps0, activations, components, n_updates, inverse):
    """Update activations (n, 2), then components (2, m), so many times."""
    # `data` is V + eps0 as (n, m), `turned` the same as (m, n); the inverse of the model (n, m) goes to
    # `inverse`.
    n, m = data.shape
    h, w = np.empty((2, n)), np.empty((m, 2))
    for a in range(m):
        w[a, 0], w[a, 1] = components[0, a], components[1, a]
    for _ in range(n_updates):
        update_all_rows(data, activations, eps0, components)
        for i in range(n):
            h[0, i], h[1, i] = activations[i, 0], activations[i, 1]
        update_all_rows(turned, w, eps0, h)
        for c in range(2):
            total = 0.0
            for a in range(m):
                total += w[a, c]
            scale = total if total > 0.0 else 1.0
            for a in range(m):
                w[a, c] /= scale
                components[c, a] = w[a, c]
            for i in range(n):
                activations[i, c] *= scale
    for i in range(n):
        put_inverse(activations[i], eps0, components[0], components[1], inverse[i])
