"""Newton steps for the Kullback-Leibler divergence on large dense tables (compiled).

A thread goes through its rows without the interpreter, a tile at a time, with products by BLAS. Called piece
by piece from Python, sixteen threads would wait for each other: on an Intel Xeon they took longer than eight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 (the products of compiled code are SciPy's)

from nonneg._threads import parallel_for
from nonneg.kernels.hals.native import UNROLL, row_updates
from nonneg.kernels.jit import jit
from nonneg.kernels.kl_newton.numba import add_losses, multiplicative, step_along, terms
from nonneg.kernels.newton_targets.array_api import LEAST_DIAGONAL
from nonneg.kernels.newton_targets.numba import LINEAR, QUADRATIC, RESIDUAL, SLOPE, targets_rows

# Rows that go through a pass together: four arrays of them are about the size of a core's second-level cache.
ROWS = 128


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
    """Move the rows of W by one guarded Newton step each; see `kl_newton.kl_newton_pass`."""
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
