"""Skew matrices by reflections to tridiagonal form, and the inverse root of I - T^2 for such a form T."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import BARE, MATH
from nonneg.kernels.skew_tridiagonal.pairs import minus, pair_at, pair_of, plus, put_pair, times, total_of
from nonneg.kernels.skew_tridiagonal.reflections import COLUMNS, ROWS


@jit(**BARE)
def turn_and_multiply(A, first, u, v, y, z):
    """Add v y' - y v' to a skew matrix A, and A u to z, for rows from `first` on, a multiple of `ROWS`."""
    # Of A are used, and changed, squares of `ROWS` on the diagonal and what stands right of them; its size is
    # a multiple of `ROWS`.
    m = A.shape[0]
    for i in range(first, m, ROWS):
        v0, v1, v2, v3 = pair_of(v[i]), pair_of(v[i + 1]), pair_of(v[i + 2]), pair_of(v[i + 3])
        y0, y1, y2, y3 = pair_of(y[i]), pair_of(y[i + 1]), pair_of(y[i + 2]), pair_of(y[i + 3])
        u0, u1, u2, u3 = pair_of(u[i]), pair_of(u[i + 1]), pair_of(u[i + 2]), pair_of(u[i + 3])
        s0 = pair_of(0.0)
        s1, s2, s3 = s0, s0, s0
        row0 = i * m
        row1, row2, row3 = row0 + m, row0 + 2 * m, row0 + 3 * m
        for j in range(i, m, 2):
            p, q, x = pair_at(v, j), pair_at(y, j), pair_at(u, j)
            a = minus(plus(pair_at(A, row0 + j), v0, q), y0, p)
            b = minus(plus(pair_at(A, row1 + j), v1, q), y1, p)
            c = minus(plus(pair_at(A, row2 + j), v2, q), y2, p)
            d = minus(plus(pair_at(A, row3 + j), v3, q), y3, p)
            put_pair(A, row0 + j, a)
            put_pair(A, row1 + j, b)
            put_pair(A, row2 + j, c)
            put_pair(A, row3 + j, d)
            s0, s1, s2, s3 = plus(s0, a, x), plus(s1, b, x), plus(s2, c, x), plus(s3, d, x)
            # On the diagonal both triangles are there; elsewhere rows stand for columns too.
            if j >= i + ROWS:
                put_pair(z, j, minus(minus(minus(minus(pair_at(z, j), a, u0), b, u1), c, u2), d, u3))
        z[i] += total_of(s0)
        z[i + 1] += total_of(s1)
        z[i + 2] += total_of(s2)
        z[i + 3] += total_of(s3)


@jit(fastmath=MATH, **BARE)
def tridiagonalize(A, U, weights, beside, work):
    """Bring a skew matrix, which is overwritten, to tridiagonal form."""
    # A = Q T Q' with Q = H_0 H_1 ..., H_k = I - weights[k] u u' and u = U[k]; `beside` gets T[k, k + 1]. A
    # and U have rows and columns of zeros up to a multiple of `ROWS`, and `work` four rows of that length.
    # The reflection of one step is applied to the matrix together with the product that the next one needs.
    m = beside.shape[0] + 1
    work[:, :] = 0.0
    u, v, y, z = work[0], work[1], work[2], work[3]
    for k in range(m - 1):
        row, squares = A[k], 0.0
        for j in range(k + 1, m):
            entry = row[j] + v[k] * y[j] - y[k] * v[j]
            u[j] = entry
            squares += entry * entry
        # Rows that are done take part in the blocks of the next ones, and add nothing.
        u[k], v[k], y[k] = 0.0, 0.0, 0.0
        x = u[k + 1]
        beside[k], weights[k], scale = x, 0.0, 0.0
        if k < m - 2 and squares > 0.0:
            beta = -np.sqrt(squares) if x >= 0.0 else np.sqrt(squares)
            beside[k], weights[k], scale = beta, (beta - x) / beta, 1.0 / (x - beta)
        for j in range(k + 1, m):
            u[j] *= scale
            z[j] = 0.0
        u[k + 1] = 1.0 if weights[k] != 0.0 else 0.0
        turn_and_multiply(A, (k + 1) // ROWS * ROWS, u, v, y, z)
        into, weight = U[k], weights[k]
        for j in range(k + 1, m):
            into[j] = u[j]
            v[j] = u[j]
            y[j] = weight * z[j]


@jit(**BARE)
def solve_shifted(Y, inverses, factors, scale, work, total):
    """Add scale (shift - T^2)^-1 Y to `total`, for a panel Y."""
    # Even and odd rows, which do not meet, are solved for at once: there is an even number of rows.
    m = Y.shape[0]
    zero = pair_of(0.0)
    a, b, c, d = zero, zero, zero, zero
    e, f, g, h = zero, zero, zero, zero
    x, y = zero, zero
    for i in range(0, m, 2):
        at = COLUMNS * i
        a, b = plus(pair_at(Y, at), x, a), plus(pair_at(Y, at + 2), x, b)
        c, d = plus(pair_at(Y, at + 4), x, c), plus(pair_at(Y, at + 6), x, d)
        e, f = plus(pair_at(Y, at + 8), y, e), plus(pair_at(Y, at + 10), y, f)
        g, h = plus(pair_at(Y, at + 12), y, g), plus(pair_at(Y, at + 14), y, h)
        put_pair(work, at, a)
        put_pair(work, at + 2, b)
        put_pair(work, at + 4, c)
        put_pair(work, at + 6, d)
        put_pair(work, at + 8, e)
        put_pair(work, at + 10, f)
        put_pair(work, at + 12, g)
        put_pair(work, at + 14, h)
        x, y = pair_of(factors[i]), pair_of(factors[i + 1])
    a, b, c, d = zero, zero, zero, zero
    e, f, g, h = zero, zero, zero, zero
    s = pair_of(scale)
    for back in range(0, m, 2):
        i = m - 2 - back
        at = COLUMNS * i
        x, y = pair_of(factors[i]), pair_of(factors[i + 1])
        p, q = pair_of(inverses[i]), pair_of(inverses[i + 1])
        a, b = plus(times(pair_at(work, at), p), x, a), plus(times(pair_at(work, at + 2), p), x, b)
        c, d = plus(times(pair_at(work, at + 4), p), x, c), plus(times(pair_at(work, at + 6), p), x, d)
        e, f = plus(times(pair_at(work, at + 8), q), y, e), plus(times(pair_at(work, at + 10), q), y, f)
        g, h = plus(times(pair_at(work, at + 12), q), y, g), plus(times(pair_at(work, at + 14), q), y, h)
        put_pair(total, at, plus(pair_at(total, at), s, a))
        put_pair(total, at + 2, plus(pair_at(total, at + 2), s, b))
        put_pair(total, at + 4, plus(pair_at(total, at + 4), s, c))
        put_pair(total, at + 6, plus(pair_at(total, at + 6), s, d))
        put_pair(total, at + 8, plus(pair_at(total, at + 8), s, e))
        put_pair(total, at + 10, plus(pair_at(total, at + 10), s, f))
        put_pair(total, at + 12, plus(pair_at(total, at + 12), s, g))
        put_pair(total, at + 14, plus(pair_at(total, at + 14), s, h))


@jit(fastmath=MATH, error_model="numpy")
def sum_of_solutions(beside, panels, shifts, scales, own, out):
    """Put (own + T) times the sum of scales (shifts - T^2)^-1 times panels into `out`."""
    # T is skew, with `beside` over its diagonal; panels have an even number of rows, zeros beyond those of T.
    m, even = beside.shape[0] + 1, panels.shape[1]
    n = shifts.shape[0]
    inverses, factors = np.zeros((n, even)), np.zeros((n, even))
    squares, rests = np.zeros(m), np.empty(m)
    for i in range(m - 1):
        squares[i] = beside[i] * beside[i]
    for s in range(n):
        # Pivots of even and odd rows as sums of positive numbers: no digits are lost.
        for i in range(m):
            # What was eliminated: the part of the pivot two rows above that is not its own square.
            rest = shifts[s]
            if i == 1:
                rest += squares[0]
            elif i > 1:
                rest += squares[i - 1] * (rests[i - 2] * inverses[s, i - 2])
            rests[i] = rest
            inverses[s, i] = 1.0 / (rest + squares[i])
            factors[s, i] = beside[i] * beside[i + 1] * inverses[s, i] if i + 2 < m else 0.0
    work, total = np.empty((even, COLUMNS)), np.empty((even, COLUMNS))
    for panel in range(panels.shape[0]):
        total[:, :] = 0.0
        for s in range(n):
            solve_shifted(panels[panel], inverses[s], factors[s], scales[s], work, total)
        into = out[panel]
        for i in range(even):
            after = beside[i] if i + 1 < m else 0.0
            before = beside[i - 1] if 0 < i < m else 0.0
            here, above, below = total[i], total[max(i - 1, 0)], total[min(i + 1, even - 1)]
            for c in range(COLUMNS):
                into[i, c] = own * here[c] + (after * below[c] - before * above[c])
