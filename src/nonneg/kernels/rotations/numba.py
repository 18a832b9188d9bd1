"""Small rotations: products of small matrices, exponential and polar factor of skew ones, in place.

As `nonneg.transforms.rotations.group` makes them, for one matrix at a time.
"""

from __future__ import annotations

from math import ceil, log2, sqrt

from nonneg.kernels.jit import jit, part

MATH = {"contract", "nsz", "reassoc"}
# Nothing is allocated here. Counting the references to rows, which are atomic operations, took a third of the
# time of small products.
BARE = {"error_model": "numpy", "_nrt": False}

# As in `nonneg.transforms.rotations.group`.
TAYLOR_NORM = 0.35
ENOUGH = 1e-8
# Below this norm five terms of the exponential are all that is seen.
SMALL_NORM = 5e-3
# 1 / j! of the Taylor polynomial: a division takes as long as ten multiplications.
T2, T3, T4, T5 = 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0
T8, T9, T10 = 1.0 / 40320.0, 1.0 / 362880.0, 1.0 / 3628800.0
T11, T12, T13 = 1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0


@part(fastmath=MATH, **BARE)
def multiply(A, B, out):
    """Put A B into `out`, which is neither of them; five rows of B at once spare loads and stores."""
    m, k = A.shape
    n = B.shape[1]
    for i in range(m):
        row = out[i]
        if k >= 5:
            a, b, c, d, e = A[i, 0], A[i, 1], A[i, 2], A[i, 3], A[i, 4]
            first, second, third, fourth, fifth = B[0], B[1], B[2], B[3], B[4]
            for j in range(n):
                row[j] = (a * first[j] + b * second[j]) + (c * third[j] + d * fourth[j]) + e * fifth[j]
            p = 5
        elif k >= 2:
            a, b = A[i, 0], A[i, 1]
            first, second = B[0], B[1]
            for j in range(n):
                row[j] = a * first[j] + b * second[j]
            p = 2
        else:
            a, first = A[i, 0], B[0]
            for j in range(n):
                row[j] = a * first[j]
            p = 1
        while p + 5 <= k:
            a, b, c, d, e = A[i, p], A[i, p + 1], A[i, p + 2], A[i, p + 3], A[i, p + 4]
            first, second, third, fourth, fifth = B[p], B[p + 1], B[p + 2], B[p + 3], B[p + 4]
            for j in range(n):
                row[j] += (a * first[j] + b * second[j]) + (c * third[j] + d * fourth[j]) + e * fifth[j]
            p += 5
        while p + 2 <= k:
            a, b = A[i, p], A[i, p + 1]
            first, second = B[p], B[p + 1]
            for j in range(n):
                row[j] += a * first[j] + b * second[j]
            p += 2
        if p < k:
            a, first = A[i, p], B[p]
            for j in range(n):
                row[j] += a * first[j]


@part(**BARE)
def copy(A, out):
    """Put A into `out`: numba takes seconds to compile the first assignment of a whole array."""
    m, n = A.shape
    for i in range(m):
        for j in range(n):
            out[i, j] = A[i, j]


@part(fastmath=MATH, **BARE)
def skew_norm(E):
    """Return a bound on the spectral norm of a skew matrix."""
    m = E.shape[0]
    rows, squares = 0.0, 0.0
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += abs(E[i, j])
            squares += E[i, j] * E[i, j]
        rows = max(rows, total)
    return min(rows, sqrt(0.5 * squares))


@jit(fastmath=MATH, **BARE)
def exponential(E, step, work, out):
    """Put exp(step E) into `out`; `work` holds seven matrices."""
    m = E.shape[0]
    norm = abs(step) * skew_norm(E)
    squarings = 0
    if norm > TAYLOR_NORM:
        squarings = max(0, ceil(log2(norm / TAYLOR_NORM)))
    scale = step * 0.5**squarings
    A, S, S2, S3, low, odd = work[0], work[1], work[2], work[3], work[4], work[5]
    for i in range(m):
        for j in range(m):
            A[i, j] = scale * E[i, j]
    small = norm < SMALL_NORM
    # S = A A, S2 = S S, S3 = S S2: one call, which is compiled into this function once.
    for power in range(2 if small else 3):
        multiply(work[min(power, 1)], work[power], work[power + 1])
    # The even and the odd part of the Taylor polynomial beyond S3, the latter less its first factor A.
    for i in range(m):
        for j in range(m):
            low[i, j], odd[i, j] = 0.0, 0.0
    if not small:
        for i in range(m):
            for j in range(m):
                low[i, j] = T8 * S[i, j] + T10 * S2[i, j] + T12 * S3[i, j]
                odd[i, j] = T9 * S[i, j] + T11 * S2[i, j] + T13 * S3[i, j]
            low[i, i] += 1.0 / 720.0
            odd[i, i] += 1.0 / 5040.0
        for part in range(2):
            multiply(S3, work[4 + part], work[6])
            copy(work[6], work[4 + part])
    for i in range(m):
        for j in range(m):
            odd[i, j] += T3 * S[i, j] + T5 * S2[i, j]
            low[i, j] += T2 * S[i, j] + T4 * S2[i, j]
        odd[i, i] += 1.0
        low[i, i] += 1.0
    multiply(A, odd, out)
    for i in range(m):
        for j in range(m):
            out[i, j] += low[i, j]
    for _ in range(squarings):
        multiply(out, out, low)
        copy(low, out)


@part(fastmath=MATH, **BARE)
def polar(E, step, work, out):
    """Put the orthogonal matrix closest to I + step E into `out`; `work` holds three matrices."""
    m = E.shape[0]
    A, S, B = work[0], work[1], work[2]
    size = (abs(step) * skew_norm(E)) ** 2
    for i in range(m):
        for j in range(m):
            A[i, j] = step * E[i, j]
    multiply(A, A, S)
    for i in range(m):
        A[i, i] += 1.0
    if size < 0.3:
        # The beginning of the binomial series of (I - E^2)^(-1/2) saves some steps.
        multiply(S, S, B)
        for i in range(m):
            for j in range(m):
                B[i, j] = 0.5 * S[i, j] + 0.375 * B[i, j]
            B[i, i] += 1.0
        multiply(A, B, out)
    else:
        largest = 0.0
        for i in range(m):
            total = 0.0
            for j in range(m):
                total += abs(S[i, j])
            largest = max(largest, total)
        for i in range(m):
            for j in range(m):
                out[i, j] = A[i, j] / sqrt(1.0 + largest)
    for _ in range(200):
        for i in range(m):
            for j in range(m):
                A[i, j] = out[j, i]
        multiply(A, out, S)
        error = 0.0
        for i in range(m):
            for j in range(m):
                error = max(error, abs(S[i, j] - (1.0 if i == j else 0.0)))
                S[i, j] = (1.5 if i == j else 0.0) - 0.5 * S[i, j]
        multiply(out, S, B)
        copy(B, out)
        # The error is squared by the step just made.
        if not error > ENOUGH:
            break
