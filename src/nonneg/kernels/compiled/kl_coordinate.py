"""Coordinate descent on rows under the Kullback-Leibler divergence, over their nonzeros (compiled).

A row's problem is: minimise c w' - sum_p x_p log(sum_a w_a h_ap) + l1 |w| + l2 / 2 |w|^2 over w >= 0, where
h holds the rows of the other factor at the nonzeros x of the row. They are gathered once, as (component,
nonzero), so that several sweeps run over memory in cache and vectorise. Every row stops on its own.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
def slope_at_zero(x, wh, h, t, n, floor):
    """Return sum x h / (wh - t h): the pull of the data on a component once it is zero."""
    total = 0.0
    for p in range(n):
        rest = wh[p] - t * h[p]
        total += x[p] * h[p] / max(rest, floor)
    return total


@numba.njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
def kl_rows(
    indptr,
    indices,
    data,
    other,
    sums,
    factor,
    order,
    l1,
    l2,
    max_sweeps,
    shrink,
    tol,
    floor,
    start,
    stop,
    logs,
):
    """Reduce the loss over rows `start` to `stop` of `factor`, in place; see `kernels.beta.kl_passes`.

    A component moves by Newton's rule for g, its slope, from the left of the root, and for t g(t) from
    the right: g is concave and t g(t) convex, so that neither passes the root and no step raises the loss.
    """
    k = other.shape[1]
    longest = 1
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    kind = factor.dtype.type
    h = np.empty((k, longest), dtype=factor.dtype)
    x = np.empty(longest, dtype=factor.dtype)
    wh = np.empty(longest, dtype=factor.dtype)
    inverse = np.empty(longest, dtype=factor.dtype)
    ratio = np.empty(longest, dtype=factor.dtype)
    for i in range(start, stop):
        begin = indptr[i]
        n = indptr[i + 1] - begin
        w = factor[i]
        total = 0.0
        for p in range(n):
            x[p] = data[begin + p]
            total += x[p]
            row = other[indices[begin + p]]
            for a in range(k):
                h[a, p] = row[a]
        for p in range(n):
            wh[p] = 0
        for a in range(k):
            t = w[a]
            if t > 0:
                ha = h[a]
                for p in range(n):
                    wh[p] += t * ha[p]
        lowest = np.inf
        for p in range(n):
            if x[p] > 0 and wh[p] <= floor:
                reach = kind(0)
                for a in order:
                    reach = max(reach, h[a, p])
                if reach > 0:
                    lowest = 0.0
        if lowest == 0.0:
            # Where the model is zero and the data are not, the loss is infinite: begin the row anew.
            scale = 0.0
            for a in order:
                scale += sums[i if sums.shape[0] > 1 else 0, a]
            fresh = kind(total / max(scale, floor))
            for a in order:
                ha = h[a]
                for p in range(n):
                    wh[p] += fresh * ha[p]
                w[a] += fresh
        for p in range(n):
            inverse[p] = 1 / max(wh[p], floor)
            ratio[p] = x[p] * inverse[p]
        first = 0.0
        for sweep in range(max_sweeps):
            change = 0.0
            violation = 0.0
            for a in order:
                ha = h[a]
                pull = kind(0)
                curvature = kind(0)
                for p in range(n):
                    q = ratio[p] * ha[p]
                    pull += q
                    curvature += q * ha[p] * inverse[p]
                t = w[a]
                cost = sums[i if sums.shape[0] > 1 else 0, a] + l1
                g = cost + l2 * t - pull
                curvature += l2
                if t == 0 and g >= 0:
                    continue
                if g < 0:
                    new = t - g / curvature if curvature > 0 else t
                    violation = max(violation, -g / max(cost + l2 * new, pull))
                else:
                    new = t * t * curvature / (g + t * curvature)
                    if t * curvature <= g and cost >= slope_at_zero(x, wh, ha, t, n, floor):
                        new = kind(0)
                        violation = max(violation, min(t * cost / max(total, floor), g / cost))
                    else:
                        violation = max(violation, g / (cost + l2 * t))
                step = new - t
                if step == 0:
                    continue
                w[a] = new
                change += abs(step) * cost
                for p in range(n):
                    value = max(wh[p] + step * ha[p], floor)
                    wh[p] = value
                    inverse[p] = 1 / value
                    ratio[p] = x[p] * inverse[p]
            if sweep == 0:
                first = change * shrink
            if change <= first or violation <= tol:
                break
        logged = 0.0
        for p in range(n):
            logged += x[p] * np.log(wh[p])
        logs[i] = logged
