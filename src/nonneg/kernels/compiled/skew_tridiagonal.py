"""Skew matrices by reflections to tridiagonal form, and the inverse root of I - T^2 for such a form T."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.compiled.jit import jit
from nonneg.kernels.compiled.rotations import MATH


@jit(fastmath=MATH, error_model="numpy")
def turn_two(first, second, v, y, vi, yi, vk, yk):
    """Add parts of v y' - y v' to two rows."""
    for j in range(first.shape[0]):
        p, q = v[j], y[j]
        first[j] += vi * q - yi * p
        second[j] += vk * q - yk * p


@jit(fastmath=MATH, error_model="numpy")
def times_two(first, second, u, z, ui, uk):
    """Return the products of two rows with u, and take what they add to the columns' products off z."""
    one, two = 0.0, 0.0
    for j in range(first.shape[0]):
        a, b, x = first[j], second[j], u[j]
        one += a * x
        two += b * x
        z[j] -= a * ui + b * uk
    return one, two


@jit(fastmath=MATH, error_model="numpy")
def reflector(u, k):
    """Make a reflector of the row u[k + 1 :], in place; return what is left of the row, and its weight."""
    m = u.shape[0]
    squares = 0.0
    for j in range(k + 1, m):
        squares += u[j] * u[j]
    x = u[k + 1]
    if k == m - 2 or squares == 0.0:
        u[k + 1 :] = 0.0
        return x, 0.0
    beta = -np.sqrt(squares) if x >= 0.0 else np.sqrt(squares)
    scale = 1.0 / (x - beta)
    for j in range(k + 2, m):
        u[j] *= scale
    u[k + 1] = 1.0
    return beta, (beta - x) / beta


@jit(fastmath=MATH, error_model="numpy")
def tridiagonalize(A, U, weights, beside):
    """Bring a skew matrix, of which only the upper triangle is used and overwritten, to tridiagonal form.

    A = Q T Q' with Q = H_0 H_1 ..., H_k = I - weights[k] u u' and u = U[k]; `beside` gets T[k, k + 1]. The
    reflection of one step is applied to the matrix together with the product that the next one needs.
    """
    m = A.shape[0]
    v, y, z = np.zeros(m), np.zeros(m), np.zeros(m)
    for k in range(m - 1):
        u, row = U[k], A[k]
        for j in range(k + 1, m):
            u[j] = row[j] + v[k] * y[j] - y[k] * v[j]
        beside[k], weights[k] = reflector(u, k)
        for j in range(k + 1, m):
            z[j] = 0.0
        i = k + 1
        while i + 2 <= m:
            a = A[i, i + 1] + v[i] * y[i + 1] - y[i] * v[i + 1]
            A[i, i + 1] = a
            e = i + 2
            turn_two(A[i, e:], A[i + 1, e:], v[e:], y[e:], v[i], y[i], v[i + 1], y[i + 1])
            one, two = times_two(A[i, e:], A[i + 1, e:], u[e:], z[e:], u[i], u[i + 1])
            z[i] += one + a * u[i + 1]
            z[i + 1] += two - a * u[i]
            i += 2
        for j in range(k + 1, m):
            v[j] = u[j]
            y[j] = weights[k] * z[j]


@jit(fastmath=MATH, error_model="numpy")
def triangular_factor(gram, weights, out):
    """Put the upper triangle of a block of reflections I - V' out V into `out`, given V V'."""
    n = gram.shape[0]
    for i in range(n):
        out[i, i] = weights[i]
        for r in range(i):
            total = 0.0
            for c in range(r, i):
                total += out[r, c] * gram[i, c]
            out[r, i] = -weights[i] * total


@jit(fastmath=MATH, error_model="numpy")
def solve_shifted(Y, first, inverses, factors, scale, work, total):
    """Add scale (shift - T^2)^-1 Y to `total` for eight columns of Y and the rows first, first + 2, ..."""
    m = Y.shape[0]
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x = 0.0
    for i in range(first, m, 2):
        row, into = Y[i], work[i]
        a, b, c, d = row[0] + x * a, row[1] + x * b, row[2] + x * c, row[3] + x * d
        e, f, g, h = row[4] + x * e, row[5] + x * f, row[6] + x * g, row[7] + x * h
        into[0], into[1], into[2], into[3] = a, b, c, d
        into[4], into[5], into[6], into[7] = e, f, g, h
        x = factors[i]
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(m - 1 - (m - 1 - first) % 2, -1, -2):
        row, into = work[i], total[i]
        x, q = factors[i], inverses[i]
        a, b, c, d = q * row[0] + x * a, q * row[1] + x * b, q * row[2] + x * c, q * row[3] + x * d
        e, f, g, h = q * row[4] + x * e, q * row[5] + x * f, q * row[6] + x * g, q * row[7] + x * h
        s, t, u, v = into[0] + scale * a, into[1] + scale * b, into[2] + scale * c, into[3] + scale * d
        into[0], into[1], into[2], into[3] = s, t, u, v
        s, t, u, v = into[4] + scale * e, into[5] + scale * f, into[6] + scale * g, into[7] + scale * h
        into[4], into[5], into[6], into[7] = s, t, u, v


@jit(fastmath=MATH, error_model="numpy")
def sum_of_solutions(beside, Y, shifts, scales, out):
    """Put the sum of scales (shifts - T^2)^-1 Y into `out`; T is skew, with `beside` over its diagonal."""
    m, p = Y.shape
    n = shifts.shape[0]
    inverses, factors = np.empty((n, m)), np.empty((n, m))
    squares, rests = np.zeros(m), np.empty(m)
    for i in range(m - 1):
        squares[i] = beside[i] * beside[i]
    for s in range(n):
        # Pivots of even and odd rows, which do not meet, as sums of positive numbers: no digits are lost.
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
    tile, work, total = np.zeros((m, 8)), np.empty((m, 8)), np.empty((m, 8))
    for start in range(0, p, 8):
        width = min(8, p - start)
        for i in range(m):
            for c in range(width):
                tile[i, c] = Y[i, start + c]
            for c in range(8):
                total[i, c] = 0.0
        for s in range(n):
            solve_shifted(tile, 0, inverses[s], factors[s], scales[s], work, total)
            solve_shifted(tile, 1, inverses[s], factors[s], scales[s], work, total)
        for i in range(m):
            for c in range(width):
                out[i, start + c] = total[i, c]
