"""Majorization-equalization compiled, one factorization at a time.

Arrays are the paper's way round, so that frames are contiguous: data V and the inverse of the model as (M,
N), components w as (M, K), activations h as (K, N).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg._typing import FloatArray
from nonneg.kernels.jit import jit, part
from nonneg.kernels.rotations.numba import BARE, MATH, multiply

# The smallest normal number, added to denominators as in the array code, and what is added to those of which
# four are multiplied.
FLOOR = 2.2250738585072014e-308
LEAST = 1e-75
# One division serves four entries of a model: their product must not underflow.
LEAST_EPS0 = 1e-75
# Smaller problems have compiled iterations of their own (`kernels.transforms`), or are done in less time than
# numba takes to load.
LEAST_ENTRIES = 1 << 12
# With more components the products of BLAS are faster: on an ARM core ten updates of 311 x 512 variances take
# 38 against 42 ms with 12 components, and 58 against 51 ms with 20.
MOST_COMPONENTS = 12


def is_supported(V: Any, n_components: int, eps0: float) -> bool:
    """Tell whether V is a batch in NumPy's float64, not small, with few components and a safe eps0."""
    return (
        isinstance(V, np.ndarray)
        and V.dtype == np.float64
        and V[0].size >= LEAST_ENTRIES
        and n_components <= MOST_COMPONENTS
        and eps0 >= LEAST_EPS0
    )


def update_factors(
    V: FloatArray, eps0: float, activations: FloatArray, components: FloatArray, n_updates: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Update the factors, and return the inverse of their model."""
    w, h = transposed(components), transposed(activations)
    data = np.ascontiguousarray(V.swapaxes(1, 2))
    inverse = np.empty((len(h), *data.shape[1:]))

    def work(start: int, stop: int) -> None:
        equalize_range(data, eps0, w, h, n_updates, inverse, start, stop)

    parallel_for(work, len(h), chunk_size=1, operations=update_cost(w, h, n_updates))
    return transposed(h), transposed(w), transposed(inverse)


def transposed(array: FloatArray) -> FloatArray:
    """Return a contiguous copy with the last two axes exchanged."""
    return np.array(array.swapaxes(1, 2), order="C")


def update_cost(w: FloatArray, h: FloatArray, n_updates: int) -> float:
    """Return the operations of the updates of a batch: six products of M N K, two each."""
    return 12.0 * h.size * w.shape[1] * n_updates


@part(fastmath=MATH, **BARE)
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


@part(fastmath=MATH, **BARE)
def weigh(V, eps0, inverse, ratio):
    """Put (V + eps0) times the square of `inverse` into `ratio`."""
    m, n = V.shape
    for a in range(m):
        one, two, data = inverse[a], ratio[a], V[a]
        for i in range(n):
            two[i] = (data[i] + eps0) * (one[i] * one[i])


@part(fastmath=MATH, **BARE)
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


@part(fastmath=MATH, **BARE)
def equalize(V, eps0, w, h, n_updates, inverse, ratio, above, below, turned):
    """Make updates of majorization-equalization for the data V + eps0."""
    # `inverse` is that of the model before and after; the arguments after it are workspace.
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


@jit(error_model="numpy")
def equalize_range(V, eps0, w, h, n_updates, inverse, start, stop):
    """Update both factors of some of a batch, in place; the inverse of their model goes to `inverse`."""
    k, m, n = w.shape[2], V.shape[1], V.shape[2]
    ratio, above, below = np.empty((m, n)), np.empty((k, n)), np.empty((k, n))
    turned = np.empty((k, m))
    for p in range(start, stop):
        inverse_model(w[p], h[p], eps0, inverse[p])
        equalize(V[p % V.shape[0]], eps0, w[p], h[p], n_updates, inverse[p], ratio, above, below, turned)
