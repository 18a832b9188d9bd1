"""Blocks of reflections applied to matrices: products of shapes too small for BLAS to be quick with.

Matrices come as panels of eight columns, an array of shape (n_panels, m, 8). Sizes m are multiples of four.
"""

from __future__ import annotations

from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import BARE, MATH
from nonneg.kernels.skew_tridiagonal.pairs import minus, pair_at, pair_of, plus, put_pair, twice_at

# Rows that are worked on at once, and columns of a panel.
ROWS = 4
COLUMNS = 8


@jit(**BARE)
def put_panels(P, out):
    """Put a matrix into panels that hold zeros."""
    m, p = P.shape
    for i in range(m):
        for j in range(p):
            out[j // COLUMNS, i, j % COLUMNS] = P[i, j]


@jit(**BARE)
def put_matrix(panels, out):
    """Put panels into a matrix, as much as it holds of them."""
    m, p = out.shape
    for i in range(m):
        for j in range(p):
            out[i, j] = panels[j // COLUMNS, i, j % COLUMNS]


@jit(**BARE)
def put_four(out, at, a, b, c, d):
    """Write eight entries."""
    put_pair(out, at, a)
    put_pair(out, at + 2, b)
    put_pair(out, at + 4, c)
    put_pair(out, at + 6, d)


@jit(**BARE)
def project(V, start, stop, C, first, out):
    """Put V[start:stop] times a panel, which begins at entry `first` of C, into `out`."""
    # Entry (r, j) of V is zero for j < r.
    m = V.shape[1]
    for i in range(start, stop, ROWS):
        a0 = pair_of(0.0)
        a1, a2, a3, b0, b1, b2, b3 = a0, a0, a0, a0, a0, a0, a0
        c0, c1, c2, c3, d0, d1, d2, d3 = a0, a0, a0, a0, a0, a0, a0, a0
        row = i * m
        for k in range(i, m):
            at = first + k * COLUMNS
            x, y, z, w = pair_at(C, at), pair_at(C, at + 2), pair_at(C, at + 4), pair_at(C, at + 6)
            e = twice_at(V, row + k)
            a0, a1, a2, a3 = plus(a0, e, x), plus(a1, e, y), plus(a2, e, z), plus(a3, e, w)
            e = twice_at(V, row + m + k)
            b0, b1, b2, b3 = plus(b0, e, x), plus(b1, e, y), plus(b2, e, z), plus(b3, e, w)
            e = twice_at(V, row + 2 * m + k)
            c0, c1, c2, c3 = plus(c0, e, x), plus(c1, e, y), plus(c2, e, z), plus(c3, e, w)
            e = twice_at(V, row + 3 * m + k)
            d0, d1, d2, d3 = plus(d0, e, x), plus(d1, e, y), plus(d2, e, z), plus(d3, e, w)
        at = (i - start) * COLUMNS
        put_four(out, at, a0, a1, a2, a3)
        put_four(out, at + COLUMNS, b0, b1, b2, b3)
        put_four(out, at + 2 * COLUMNS, c0, c1, c2, c3)
        put_four(out, at + 3 * COLUMNS, d0, d1, d2, d3)


@jit(**BARE)
def take_off(V, start, stop, D, C, first):
    """Take V[start:stop]' D off a panel, which begins at entry `first` of C."""
    # Entry (r, j) of V is zero for j < r.
    m = V.shape[1]
    for i in range(start, m, ROWS):
        at = first + i * COLUMNS
        a0, a1, a2, a3 = pair_at(C, at), pair_at(C, at + 2), pair_at(C, at + 4), pair_at(C, at + 6)
        b0, b1, b2, b3 = pair_at(C, at + 8), pair_at(C, at + 10), pair_at(C, at + 12), pair_at(C, at + 14)
        c0, c1, c2, c3 = pair_at(C, at + 16), pair_at(C, at + 18), pair_at(C, at + 20), pair_at(C, at + 22)
        d0, d1, d2, d3 = pair_at(C, at + 24), pair_at(C, at + 26), pair_at(C, at + 28), pair_at(C, at + 30)
        for k in range(start, min(stop, i + ROWS)):
            place = (k - start) * COLUMNS
            x, y = pair_at(D, place), pair_at(D, place + 2)
            z, w = pair_at(D, place + 4), pair_at(D, place + 6)
            place = k * m + i
            e = twice_at(V, place)
            a0, a1, a2, a3 = minus(a0, e, x), minus(a1, e, y), minus(a2, e, z), minus(a3, e, w)
            e = twice_at(V, place + 1)
            b0, b1, b2, b3 = minus(b0, e, x), minus(b1, e, y), minus(b2, e, z), minus(b3, e, w)
            e = twice_at(V, place + 2)
            c0, c1, c2, c3 = minus(c0, e, x), minus(c1, e, y), minus(c2, e, z), minus(c3, e, w)
            e = twice_at(V, place + 3)
            d0, d1, d2, d3 = minus(d0, e, x), minus(d1, e, y), minus(d2, e, z), minus(d3, e, w)
        put_four(C, at, a0, a1, a2, a3)
        put_four(C, at + 8, b0, b1, b2, b3)
        put_four(C, at + 16, c0, c1, c2, c3)
        put_four(C, at + 24, d0, d1, d2, d3)


@jit(**BARE)
def times_triangle(T, start, stop, D):
    """Multiply D by the upper triangle T[start:stop], in place."""
    block = T.shape[1]
    for i in range(stop - start):
        a = pair_of(0.0)
        b, c, d = a, a, a
        for k in range(i, stop - start):
            e, at = twice_at(T, (start + i) * block + k), k * COLUMNS
            a, b = plus(a, e, pair_at(D, at)), plus(b, e, pair_at(D, at + 2))
            c, d = plus(c, e, pair_at(D, at + 4)), plus(d, e, pair_at(D, at + 6))
        put_four(D, i * COLUMNS, a, b, c, d)


@jit(**BARE)
def times_transpose(T, start, stop, D):
    """Multiply D by the transpose of the upper triangle T[start:stop], in place."""
    block = T.shape[1]
    for i in range(stop - start - 1, -1, -1):
        a = pair_of(0.0)
        b, c, d = a, a, a
        for k in range(i + 1):
            e, at = twice_at(T, (start + k) * block + i), k * COLUMNS
            a, b = plus(a, e, pair_at(D, at)), plus(b, e, pair_at(D, at + 2))
            c, d = plus(c, e, pair_at(D, at + 4)), plus(d, e, pair_at(D, at + 6))
        put_four(D, i * COLUMNS, a, b, c, d)


@jit(**BARE)
def reflect(V, T, back, panels, work):
    """Multiply panels, in place, by Q' or (`back`) by Q, the product of I - V[b]' T[b] V[b] over blocks b."""
    # A block has as many rows as T has columns, and as `work` has rows.
    m, block = V.shape[0], T.shape[1]
    for step in range(0, m, block):
        start = (m - 1) // block * block - step if back else step
        stop = min(start + block, m)
        for panel in range(panels.shape[0]):
            first = panel * m * COLUMNS
            project(V, start, stop, panels, first, work)
            if back:
                times_triangle(T, start, stop, work)
            else:
                times_transpose(T, start, stop, work)
            take_off(V, start, stop, work, panels, first)


@jit(fastmath=MATH, **BARE)
def four_products(row, a, b, c, d, first):
    """Return the products of a row with four others, from an entry on."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for j in range(first, row.shape[0]):
        x = row[j]
        p += x * a[j]
        q += x * b[j]
        r += x * c[j]
        s += x * d[j]
    return p, q, r, s


@jit(fastmath=MATH, **BARE)
def put_triangles(V, weights, out):
    """Put T into `out`, with H_0 H_1 ... = I - V[b]' T[b] V[b] for every block b of rows of V."""
    # Row k of V reflects: H_k = I - weights[k] v v'. What stands before its k-th entry is zero.
    m, block = out.shape
    for start in range(0, m, block):
        T = out[start : start + block]
        n = T.shape[0]
        for i in range(n):
            row = V[start + i]
            # Products with the rows before, in the column that they make.
            for r in range(0, i, ROWS):
                at = start + r
                products = four_products(row, V[at], V[at + 1], V[at + 2], V[at + 3], start + i)
                for c in range(min(ROWS, i - r)):
                    T[r + c, i] = products[c]
            for r in range(i):
                total = 0.0
                for c in range(r, i):
                    total += T[r, c] * T[c, i]
                T[r, i] = -weights[start + i] * total
            T[i, i] = weights[start + i]
