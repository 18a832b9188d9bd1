"""Newton steps for the Kullback-Leibler divergence on dense tables (compiled).

A thread goes through its rows without the interpreter, a tile at a time, with products by BLAS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 (the products of compiled code are SciPy's)

from nonneg._threads import parallel_for
from nonneg.kernels.beta_products.logarithms import brought_near, log_ratio, ratio_exponent
from nonneg.kernels.hals.native import UNROLL, row_updates
from nonneg.kernels.jit import jit, part
from nonneg.kernels.newton_targets.array_api import LEAST_DIAGONAL
from nonneg.kernels.newton_targets.numba import LINEAR, QUADRATIC, RESIDUAL, SLOPE, targets_rows

FAST = {"contract", "nsz", "arcp", "reassoc"}
# Rows that go through a pass together: four arrays of them are about the size of a core's second-level cache.
ROWS = 128


@part(fastmath=FAST, error_model="numpy")
def times(rows, i, H, out, o):
    """Write row `i` of rows H to row `o` of `out`."""
    k, n = H.shape
    whole = k - k % 4
    for j in range(n):
        out[o, j] = 0
    for a in range(0, whole, 4):
        w0, w1, w2, w3 = rows[i, a], rows[i, a + 1], rows[i, a + 2], rows[i, a + 3]
        for j in range(n):
            out[o, j] += (w0 * H[a, j] + w1 * H[a + 1, j]) + (w2 * H[a + 2, j] + w3 * H[a + 3, j])
    for a in range(whole, k):
        w0 = rows[i, a]
        for j in range(n):
            out[o, j] += w0 * H[a, j]


@part(fastmath=FAST, error_model="numpy")
def terms(x, i, v, o, lower_bound, slope, curvature, r):
    """Write the derivatives of the divergence with respect to a row of the model."""
    one = v.dtype.type(1)
    for j in range(x.shape[1]):
        inverse = one / max(v[o, j], lower_bound)
        ratio = x[i, j] * inverse
        slope[r, j] = one - ratio
        curvature[r, j] = ratio * inverse


@jit(inline="always", error_model="numpy")
def single_divergence(count, model):
    """Return the divergence of a float32 entry, to the precision of a model that is rounded to float32."""
    near = brought_near(count, model)
    s = (near - model) / (near + model)
    z = s * s
    p = (np.float32(2 / 3) + np.float32(2 / 5) * z) + (z * z) * (np.float32(2 / 7) + np.float32(2 / 9) * z)
    log = ratio_exponent(count, model) * np.float32(0.6931471805599453) + s * (np.float32(2) + p * z)
    return max((model - count) + count * log, np.float32(0))


@part(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def add_losses(x, i, v, o, lower_bound, weights, losses, single):
    """Add the divergences of a row to those of the columns; `single` is None unless x is float32."""
    # A branch on None is decided before the types are: one of these is compiled.
    weight = np.float64(weights[i])
    for j in range(x.shape[1]):
        if single is None:
            value, entry = np.float64(max(v[o, j], lower_bound)), np.float64(x[i, j])
            losses[j] += weight * ((value - entry) + entry * log_ratio(entry, value))
        else:
            model, count = np.float32(max(v[o, j], lower_bound)), np.float32(x[i, j])
            losses[j] += weight * np.float64(single_divergence(count, model))


@part(fastmath=FAST, error_model="numpy")
def slope_along(x, i, v, o, d, r, t, lower_bound):
    """Return the derivative of the divergence of a row along row `r` of d at v + t d."""
    total = v.dtype.type(0)
    one = v.dtype.type(1)
    for j in range(x.shape[1]):
        total += d[r, j] * (one - x[i, j] / max(v[o, j] + t * d[r, j], lower_bound))
    return np.float64(total)


@part(error_model="numpy")
def step_along(x, i, v, o, d, r, linear, quadratic, down, tries, lower_bound):
    """Return a step in (0, 1] that lowers the loss of a row, 0 where there is none."""
    # As in `kernels.beta_products.line_search`, where the divergence is convex.
    t = 1.0
    if not down > 0.0:
        return 0.0
    for _ in range(tries):
        up = slope_along(x, i, v, o, d, r, v.dtype.type(t), lower_bound) + linear + quadratic * t
        if up <= 0.0:
            return t
        t *= down / (down + up)
        if up <= 2.0 * down:
            return t
    return 0.0


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def multiplicative(x, i, v, o, H, start, l1, l2, lower_bound, tiny, most, new):
    """Write the multiplicative step of row `i` to `new`; see `solvers.majorizer.update_ratio`."""
    k, n = H.shape
    times(start, i, H, v, o)
    for a in range(k):
        pull, cost = H.dtype.type(0), l1
        for j in range(n):
            pull += x[i, j] / max(v[o, j], lower_bound) * H[a, j]
            cost += H[a, j]
        w = start[i, a]
        ratio = min(pull / max(cost, tiny), most)
        if l2 > 0:
            ratio = 2 * pull / max(cost + np.sqrt(cost * cost + 4 * l2 * w * pull), tiny)
        new[i, a] = w * ratio
    times(new, i, H, v, o)


@jit(fastmath={"contract", "nsz"}, error_model="numpy")
def pass_over_tiles(
    update, x, weights, W, before, momentum, fraction, Ht, H, squares, means, model, numbers, shortest, tries,
    order, new, at_start, at_end, sums, curvatures, gram, total, single,
):  # fmt: skip
    """Move all rows and sum up what the update of H needs; see `newton_pass.newton_pass`."""
    n_rows, n = x.shape
    k = Ht.shape[1]
    kind = Ht.dtype.type
    l1, l2, lower_bound, least, tiny, most = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    )  # fmt: skip
    start, gradient = np.empty((ROWS, k), dtype=Ht.dtype), np.empty((ROWS, k), dtype=Ht.dtype)
    diagonal, direction = np.empty((ROWS, k), dtype=Ht.dtype), np.empty((ROWS, k), dtype=Ht.dtype)
    cross, notes = np.empty((ROWS, k), dtype=Ht.dtype), np.empty((4, ROWS), dtype=Ht.dtype)
    moved, squared = np.empty((ROWS, k), dtype=Ht.dtype), np.empty((ROWS, k + 1), dtype=Ht.dtype)
    v, slope = np.empty((ROWS, n), dtype=Ht.dtype), np.empty((ROWS, n), dtype=Ht.dtype)
    curvature = np.empty((ROWS, n), dtype=Ht.dtype)
    part, bent = np.empty((n, k), dtype=Ht.dtype), np.empty((n, k + 1), dtype=Ht.dtype)
    small = np.empty((k, k), dtype=Ht.dtype)
    for begin in range(0, n_rows, ROWS):
        m = min(ROWS, n_rows - begin)
        for r in range(m):
            for a in range(k):
                w = W[begin + r, a]
                if momentum > 0:
                    w = max(w + kind(momentum) * (w - before[begin + r, a]), kind(fraction) * w)
                start[r, a] = w
        np.dot(start[:m], H, v[:m])
        for r in range(m):
            if momentum == 0:
                add_losses(x, begin + r, v, r, lower_bound, weights, at_start, single)
            terms(x, begin + r, v, r, lower_bound, slope, curvature, r)
        np.dot(slope[:m], Ht, gradient[:m])
        np.dot(curvature[:m], squares, diagonal[:m])
        for r in range(m):
            for a in range(k):
                gradient[r, a] += l1 + l2 * start[r, a]
                diagonal[r, a] += l2
        targets_rows(
            update, start, gradient, diagonal, model, order, l1, l2, least, direction, cross, notes,
            np.int64(0), m,
        )  # fmt: skip
        np.dot(direction[:m], H, slope[:m])
        for r in range(m):
            i = begin + r
            t = step_along(
                x, i, v, r, slope, r, np.float64(notes[LINEAR, r]), np.float64(notes[QUADRATIC, r]),
                -np.float64(notes[SLOPE, r]), tries, lower_bound,
            )  # fmt: skip
            if t < shortest and notes[RESIDUAL, r] > 0:
                # Reads row r of the data of the tile.
                multiplicative(x[begin:], r, v, r, H, start, l1, l2, lower_bound, tiny, most, moved)
            else:
                for a in range(k):
                    moved[r, a] = max(start[r, a] + kind(t) * direction[r, a], kind(0))
                for j in range(n):
                    v[r, j] += kind(t) * slope[r, j]
        for r in range(m):
            i = begin + r
            weight = weights[i]
            add_losses(x, i, v, r, lower_bound, weights, at_end, single)
            terms(x, i, v, r, lower_bound, slope, curvature, r)
            mean = kind(0)
            for a in range(k):
                value = moved[r, a]
                new[i, a] = value
                mean += value * means[a]
                total[a] += np.float64(weight * value)
                start[r, a] = weight * value
                squared[r, a] = weight * value * value
            squared[r, k] = weight
            scale = weight / max(mean, kind(1e-6))
            for a in range(k):
                cross[r, a] = scale * moved[r, a]
        np.dot(slope[:m].T, start[:m], part)
        np.dot(curvature[:m].T, squared[:m], bent)
        np.dot(cross[:m].T, moved[:m], small)
        for j in range(n):
            for a in range(k):
                sums[j, a] += part[j, a]
                curvatures[j, a] += bent[j, a]
            curvatures[j, k] += bent[j, k]
        for a in range(k):
            for b in range(k):
                gram[a, b] += small[a, b]


def tiled_newton_pass(
    data: Any,
    W: Any,
    before: Any,
    momentum: float,
    Ht: Any,
    correlations: Any,
    squares: Any,
    *,
    l1: float,
    l2: float,
    lower_bound: float,
    unit: float,
    fraction: float,
    shortest: float,
    tries: int,
) -> tuple[Any, tuple[Any, ...]]:
    """Move the rows of W by one guarded Newton step each; see `newton_pass.newton_pass`."""
    n_rows, n = data.shape
    k, dtype = Ht.shape[1], Ht.dtype
    info = np.finfo(dtype)
    x = data.raw_rows()
    weights = np.ones(n_rows, dtype) if data.weights is None else np.ascontiguousarray(data.weights, dtype)
    small = info.smallest_normal
    numbers = np.array([l1, l2, lower_bound, small * LEAST_DIAGONAL, small, float(info.max) ** 0.25], dtype)
    W, before, Ht, squares = (np.ascontiguousarray(array) for array in (W, before, Ht, squares))
    H, means = np.ascontiguousarray(Ht.T), Ht.sum(axis=0) / dtype.type(unit)
    model = np.zeros((k, -(-k // UNROLL) * UNROLL), dtype)
    model[:, :k] = correlations
    order, new, update = np.arange(k), np.empty((n_rows, k), dtype), row_updates(dtype).address

    def work(start: int, stop: int) -> tuple[Any, ...]:
        losses, gram, total = np.zeros((2, n)), np.zeros((k, k), dtype), np.zeros(k)
        sums, curvatures = np.zeros((n, k), dtype), np.zeros((n, k + 1), dtype)
        pass_over_tiles(
            update, x[start:stop], weights[start:stop], W[start:stop], before[start:stop], float(momentum),
            fraction, Ht, H, squares, means, model, numbers, shortest, tries, order, new[start:stop],
            losses[0], losses[1], sums, curvatures, gram, total, True if dtype == np.float32 else None,
        )  # fmt: skip
        return losses, sums, curvatures, gram, total

    # Products are BLAS's, which does several operations in the time of one of our kernels.
    parts = parallel_for(work, n_rows, chunk_size=ROWS, operations=0.2 * 12.0 * n_rows * n * k)
    losses, sums, curvatures, gram, total = (sum(each[1:], each[0]) for each in zip(*parts, strict=True))
    at_start = 0.0 if momentum else losses[0]
    return new, (at_start, losses[1], sums, curvatures, gram, total.astype(dtype))
