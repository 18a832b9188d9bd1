"""Newton steps for the Kullback-Leibler divergence on small dense tables (compiled): rows and columns."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.beta_products.logarithms import brought_near, log_ratio, ratio_exponent
from nonneg.kernels.hals.native import UNROLL
from nonneg.kernels.jit import jit, part
from nonneg.kernels.newton_targets.numba import SLOPE, targets_rows

# A mean of the model is at least this part of the largest (`solvers.row_newton.shared_correlations`).
LEAST_MEAN = 1e-6
FAST = {"contract", "nsz", "arcp", "reassoc"}


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
def times_pair(rows, i, H, out, o):
    """Write rows `i` and `i + 1` of rows H to rows `o` and `o + 1` of `out`."""
    # Each row of H that is loaded serves both.
    k, n = H.shape
    whole = k - k % 4
    for j in range(n):
        out[o, j] = 0
        out[o + 1, j] = 0
    for a in range(0, whole, 4):
        w0, w1, w2, w3 = rows[i, a], rows[i, a + 1], rows[i, a + 2], rows[i, a + 3]
        u0, u1, u2, u3 = rows[i + 1, a], rows[i + 1, a + 1], rows[i + 1, a + 2], rows[i + 1, a + 3]
        for j in range(n):
            h0, h1, h2, h3 = H[a, j], H[a + 1, j], H[a + 2, j], H[a + 3, j]
            out[o, j] += (w0 * h0 + w1 * h1) + (w2 * h2 + w3 * h3)
            out[o + 1, j] += (u0 * h0 + u1 * h1) + (u2 * h2 + u3 * h3)
    for a in range(whole, k):
        w0, u0 = rows[i, a], rows[i + 1, a]
        for j in range(n):
            out[o, j] += w0 * H[a, j]
            out[o + 1, j] += u0 * H[a, j]


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


@part(fastmath={"contract", "nsz", "arcp"}, error_model="numpy")
def add_four_losses(x, i, v, o, lower_bound, weights, losses):
    """Do what `add_losses` does for four rows of float32; sums of so few lose nothing in float32."""
    w0, w1 = np.float32(weights[i]), np.float32(weights[i + 1])
    w2, w3 = np.float32(weights[i + 2]), np.float32(weights[i + 3])
    low = np.float32(lower_bound)
    for j in range(x.shape[1]):
        first = w0 * single_divergence(np.float32(x[i, j]), max(np.float32(v[o, j]), low))
        first += w1 * single_divergence(np.float32(x[i + 1, j]), max(np.float32(v[o + 1, j]), low))
        second = w2 * single_divergence(np.float32(x[i + 2, j]), max(np.float32(v[o + 2, j]), low))
        second += w3 * single_divergence(np.float32(x[i + 3, j]), max(np.float32(v[o + 3, j]), low))
        losses[j] += np.float64(first + second)


@part(fastmath=FAST, error_model="numpy")
def products(slope, curvature, H, squares, gradient, diagonal, i, count, l1, l2, row):
    """Write gradients and diagonals of the Hessians of row `i` and, if `count` is 2, of the next one."""
    k, n = H.shape
    zero = H.dtype.type(0)
    paired = k - k % 2 if count == 2 else 0
    for a in range(0, paired, 2):
        # Two components at a time: what is loaded of slope and curvature serves both.
        b = a + 1
        g0, g1, d0, d1, g2, g3, d2, d3 = zero, zero, zero, zero, zero, zero, zero, zero
        for j in range(n):
            s0, s1, c0, c1 = slope[0, j], slope[1, j], curvature[0, j], curvature[1, j]
            g0 += s0 * H[a, j]
            g1 += s1 * H[a, j]
            g2 += s0 * H[b, j]
            g3 += s1 * H[b, j]
            d0 += c0 * squares[a, j]
            d1 += c1 * squares[a, j]
            d2 += c0 * squares[b, j]
            d3 += c1 * squares[b, j]
        gradient[i, a], gradient[i + 1, a] = g0 + (l1 + l2 * row[i, a]), g1 + (l1 + l2 * row[i + 1, a])
        gradient[i, b], gradient[i + 1, b] = g2 + (l1 + l2 * row[i, b]), g3 + (l1 + l2 * row[i + 1, b])
        diagonal[i, a], diagonal[i + 1, a] = d0 + l2, d1 + l2
        diagonal[i, b], diagonal[i + 1, b] = d2 + l2, d3 + l2
    for a in range(paired, k):
        g0, g1, d0, d1 = zero, zero, zero, zero
        if count == 2:
            for j in range(n):
                h, q = H[a, j], squares[a, j]
                g0 += slope[0, j] * h
                g1 += slope[1, j] * h
                d0 += curvature[0, j] * q
                d1 += curvature[1, j] * q
            gradient[i + 1, a] = g1 + (l1 + l2 * row[i + 1, a])
            diagonal[i + 1, a] = d1 + l2
        else:
            for j in range(n):
                g0 += slope[0, j] * H[a, j]
                d0 += curvature[0, j] * squares[a, j]
        gradient[i, a] = g0 + (l1 + l2 * row[i, a])
        diagonal[i, a] = d0 + l2


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


@part(fastmath=FAST, error_model="numpy")
def add_sums(slope, curvature, new, weights, first, count, sums, curvatures):
    """Add slope and curvature of up to four rows, times the rows and their squares, to the sums for H."""
    k, n = sums.shape
    zero = sums.dtype.type(0)
    for a in range(k + 1):
        p0, p1, p2, p3 = zero, zero, zero, zero
        q0, q1, q2, q3 = weights[first], zero, zero, zero
        if count > 1:
            q1 = weights[first + 1]
        if count > 2:
            q2 = weights[first + 2]
        if count > 3:
            q3 = weights[first + 3]
        if a < k:
            p0 = q0 * new[first, a]
            q0 = p0 * new[first, a]
            if count > 1:
                p1 = q1 * new[first + 1, a]
                q1 = p1 * new[first + 1, a]
            if count > 2:
                p2 = q2 * new[first + 2, a]
                q2 = p2 * new[first + 2, a]
            if count > 3:
                p3 = q3 * new[first + 3, a]
                q3 = p3 * new[first + 3, a]
            for j in range(n):
                sums[a, j] += (p0 * slope[0, j] + p1 * slope[1, j]) + (p2 * slope[2, j] + p3 * slope[3, j])
        for j in range(n):
            curvatures[a, j] += (q0 * curvature[0, j] + q1 * curvature[1, j]) + (
                q2 * curvature[2, j] + q3 * curvature[3, j]
            )


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def correlate(gram, padded):
    """Write a Gram matrix, scaled to a unit diagonal, to `padded`."""
    k = gram.shape[0]
    zero, one = gram.dtype.type(0), gram.dtype.type(1)
    for a in range(k):
        of_a = np.sqrt(gram[a, a]) if gram[a, a] > zero else one
        for b in range(k):
            of_b = np.sqrt(gram[b, b]) if gram[b, b] > zero else one
            padded[a, b] = gram[a, b] / of_a / of_b
        padded[a, a] = one
        for b in range(k, padded.shape[1]):
            padded[a, b] = zero


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def shared_model(Ht, means, gram, padded):
    """Write the correlations of H diag(1 / means) H' to `padded`."""
    n, k = Ht.shape
    top = means[0]
    for j in range(n):
        top = max(top, means[j])
    if not top > 0:
        top = means.dtype.type(1)
    least = means.dtype.type(LEAST_MEAN)
    lowest = means.dtype.type(1)
    for j in range(n):
        lowest = min(lowest, max(means[j] / top, least))
    for a in range(k):
        for b in range(k):
            gram[a, b] = 0
    for j in range(n):
        scale = lowest / max(means[j] / top, least)  # at most one
        for a in range(k):
            value = scale * Ht[j, a]
            for b in range(k):
                gram[a, b] += value * Ht[j, b]
    correlate(gram, padded)


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def direct(update, Ht, sums, curvatures, gram, means, damping, order, l1, l2, least, direction, slopes):
    """Write the steps of the columns of H, zero where the model misleads, and the slopes along them."""
    n, k = Ht.shape
    zero = Ht.dtype.type(0)
    model = np.empty((k, (k + UNROLL - 1) // UNROLL * UNROLL), dtype=Ht.dtype)
    correlate(gram, model)
    slope, curvature = np.empty((n, k), dtype=Ht.dtype), np.empty((n, k), dtype=Ht.dtype)
    cross, notes = np.empty((n, k), dtype=Ht.dtype), np.empty((4, n), dtype=Ht.dtype)
    for j in range(n):
        for a in range(k):
            slope[j, a] = sums[a, j] + (l1 + l2 * Ht[j, a])
            curvature[j, a] = curvatures[a, j] + (curvatures[k, j] * damping * means[a] * means[a] + l2)
    # Numba would compile a version of its own for a zero that is written down.
    begin = np.int64(0)
    targets_rows(update, Ht, slope, curvature, model, order, l1, l2, least, direction, cross, notes, begin, n)
    for j in range(n):
        slopes[j] = min(notes[SLOPE, j], zero)
        if not notes[SLOPE, j] < zero:
            # A column whose model misleads stays.
            slopes[j] = zero
            for a in range(k):
                direction[j, a] = zero
