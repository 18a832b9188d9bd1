"""Coordinate descent on rows under the Kullback-Leibler divergence, over their nonzeros (compiled).

The subproblem of a row is to minimize c w' - sum_p x_p log(sum_a w_a h_pa) + l1 |w| + l2 / 2 |w|^2 over
w >= 0, where h holds the rows of the other factor at the nonzeros x of the row. A round computes the full
gradient, keeps the components that are positive or have a negative gradient, gathers their columns of h once,
and sweeps over them: in cache, with loops that vectorize. Where a row is to be solved, a Newton step on the
positive components ends the round: the sweeps find them, Newton's method finds their values. Every row stops
on its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg.kernels.jit import jit, part


@part(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
def pull_at_zero(x, wh, h, t, n, lower_bound):
    """Return sum x h / (wh - t h), the negative part of the derivative of a component at zero."""
    total = x.dtype.type(0)
    for p in range(n):
        total += x[p] * h[p] / max(wh[p] - t * h[p], lower_bound)
    return total


@part(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
def sweep_row(x, wh, inverse, h, active, n_active, cost, l2, w, n, lower_bound):
    """Update the active components of a row once, in place; return the weighted sum of the changes."""
    # A component t takes a Newton step for its derivative g if g < 0, and for t g(t) if g > 0: g is concave
    # and t g(t) convex, so that neither overshoots and no step increases the loss.
    kind = wh.dtype.type
    change = 0.0
    for b in range(n_active):
        a = active[b]
        hb = h[b]
        pull = kind(0)
        curvature = l2
        for p in range(n):
            q = x[p] * inverse[p] * hb[p]
            pull += q
            curvature += q * (hb[p] * inverse[p])
        t = w[a]
        g = cost[a] + l2 * t - pull
        if g < 0:
            new = t - g / curvature if curvature > 0 else t
        elif t > 0:
            new = t * t * curvature / (g + t * curvature)
            if t * curvature <= g and cost[a] >= pull_at_zero(x, wh, hb, t, n, lower_bound):
                new = kind(0)
        else:
            continue
        step = new - t
        if step == 0:
            continue
        w[a] = new
        change += abs(step) * cost[a]
        for p in range(n):
            value = max(wh[p] + step * hb[p], lower_bound)
            wh[p] = value
            inverse[p] = kind(1) / value
    return change


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def solve_passive(gram, target, passive, n_passive, lower, inverse, solution):
    """Solve the equations of the passive components by Cholesky; False if they are singular."""
    for a in range(n_passive):
        pa = passive[a]
        for b in range(a):
            pb = passive[b]
            total = gram[pa, pb]
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            lower[a, b] = total * inverse[b]
        pivot = gram[pa, pa]
        floor = pivot * 1e-13
        for c in range(a):
            pivot -= lower[a, c] * lower[a, c]
        if not pivot > floor:
            return False
        inverse[a] = 1.0 / np.sqrt(pivot)
    for a in range(n_passive):
        total = target[passive[a]]
        for c in range(a):
            total -= lower[a, c] * solution[c]
        solution[a] = total * inverse[a]
    for a in range(n_passive - 1, -1, -1):
        total = solution[a]
        for c in range(a + 1, n_passive):
            total -= lower[c, a] * solution[c]
        solution[a] = total * inverse[a]
    return True


# Added to the diagonal of a Hessian, relative to its largest entry; and the part of itself below which a
# component is zero.
RIDGE, SMALL = 1e-11, 1e-14


@part(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
def newton_row(
    x, wh, inverse, h, active, n_active, cost, l2, w, n, lower_bound, hessian, slope, passive, work
):
    """Move the positive active components of a row by one Newton step, in place."""
    # The step is to the minimizer of the quadratic model over nonnegative components, and ends where the
    # derivative along it vanishes. Components that the model makes zero leave one after another, as in Lawson
    # and Hanson's least squares: ending the step at the first of them took hundreds of rounds where
    # components nearly repeat. `step` holds the whole step, `work[2, 0]` that of the passive components.
    kind = wh.dtype.type
    # A plain 0 would be a type of its own, for which `solve_passive` were compiled once more.
    n_passive = np.int64(0)
    largest = 0.0
    step = work[1, 1]
    for b in range(n_active):
        step[b] = 0.0
        if w[active[b]] > 0:
            passive[n_passive] = b
            n_passive += 1
    n_positive = n_passive
    for q in range(n_passive):
        b = passive[q]
        hb = h[b]
        pull = kind(0)
        for p in range(n):
            pull += x[p] * inverse[p] * hb[p]
        slope[b] = pull - cost[active[b]] - l2 * w[active[b]]
        for r in range(q + 1):
            hc = h[passive[r]]
            total = kind(0)
            for p in range(n):
                total += (x[p] * inverse[p] * hb[p]) * (inverse[p] * hc[p])
            hessian[b, passive[r]] = total
            hessian[passive[r], b] = total
        hessian[b, b] += l2
        largest = max(largest, hessian[b, b])
    for q in range(n_passive):
        # Components that repeat make the equations singular.
        hessian[passive[q], passive[q]] += RIDGE * largest
    rest = work[2, 1]
    for q in range(n_positive):
        rest[passive[q]] = slope[passive[q]]
    while n_passive > 0:
        if not solve_passive(hessian, rest, passive, n_passive, work[0], work[1, 0], work[2, 0]):
            return
        longest = 1.0
        for q in range(n_passive):
            b = passive[q]
            if work[2, 0, q] < 0:
                longest = min(longest, -(w[active[b]] + step[b]) / work[2, 0, q])
        for q in range(n_passive):
            step[passive[q]] += longest * work[2, 0, q]
        if longest >= 1.0:
            break
        kept = np.int64(0)
        for q in range(n_passive):
            b = passive[q]
            if w[active[b]] + step[b] > SMALL * w[active[b]]:
                passive[kept] = b
                kept += 1
            else:
                step[b] = -w[active[b]]
        if kept == n_passive:
            break
        n_passive = kept
        # The gradient of the model at the point reached.
        for q in range(n_passive):
            b = passive[q]
            total = slope[b]
            for c in range(n_active):
                if step[c] != 0.0:
                    total -= hessian[b, c] * step[c]
            rest[b] = total
    down = 0.0
    n_passive = np.int64(0)
    for b in range(n_active):
        if step[b] != 0.0:
            passive[n_passive] = b
            work[2, 0, n_passive] = step[b]
            down += slope[b] * step[b]
            n_passive += 1
    if not down > 0:
        return
    step = work[2, 0]
    longest = 1.0
    for p in range(n):
        wh_step = 0.0
        for q in range(n_passive):
            wh_step += step[q] * h[passive[q], p]
        inverse[p] = kind(wh_step)
    linear = 0.0
    quadratic = 0.0
    for q in range(n_passive):
        a = active[passive[q]]
        linear += step[q] * (cost[a] + l2 * w[a])
        quadratic += l2 * step[q] * step[q]
    t = longest
    for _ in range(4):
        up = linear + t * quadratic
        for p in range(n):
            up -= x[p] * inverse[p] / max(wh[p] + kind(t) * inverse[p], lower_bound)
        if up <= 0:
            break
        t *= down / (down + up)
        if up <= 2 * down:
            break
    for p in range(n):
        wh[p] = max(wh[p] + kind(t) * inverse[p], lower_bound)
        inverse[p] = kind(1) / wh[p]
    for q in range(n_passive):
        a = active[passive[q]]
        w[a] = max(w[a] + kind(t * step[q]), kind(0))


@part(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
def row_model(other, columns, w, wh, n):
    """Write w h' at the nonzeros of a row; return the smallest of them."""
    k = len(w)
    lowest = np.inf
    for p in range(n):
        h = other[columns[p]]
        total = w.dtype.type(0)
        for a in range(k):
            total += w[a] * h[a]
        wh[p] = total
        lowest = min(lowest, total)
    return lowest


@jit(fastmath={"contract", "nsz", "reassoc", "arcp"}, error_model="numpy")
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
    max_rounds,
    max_sweeps,
    shrink,
    tol,
    newton,
    lower_bound,
    inverse_unit,
    start,
    stop,
    logs,
    residuals,
):
    """Decrease the loss over rows `start` to `stop` of `factor`, in place; see `kl_passes`."""
    k = other.shape[1]
    longest = 1
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    kind = factor.dtype.type
    store = np.empty(k * longest, dtype=factor.dtype)
    wh = np.empty(longest, dtype=factor.dtype)
    inverse = np.empty(longest, dtype=factor.dtype)
    pull = np.empty(k, dtype=factor.dtype)
    cost = np.empty(k, dtype=factor.dtype)
    active = np.empty(k, dtype=np.int64)
    passive = np.empty(k, dtype=np.int64)
    hessian = np.empty((k, k), dtype=np.float64)
    slope = np.empty(k, dtype=np.float64)
    work = np.empty((3, k + 1, k), dtype=np.float64)
    own_sums = sums.shape[0] > 1
    for i in range(start, stop):
        n = indptr[i + 1] - indptr[i]
        columns = indices[indptr[i] : indptr[i + 1]]
        x = data[indptr[i] : indptr[i + 1]]
        w = factor[i]
        total = 0.0
        for p in range(n):
            total += x[p]
        for a in range(k):
            cost[a] = sums[i if own_sums else 0, a] + l1
        if row_model(other, columns, w, wh, n) <= lower_bound and total > 0:
            # Where the model is zero and the data are not, the loss is infinite: reset the row.
            dead = False
            for p in range(n):
                if x[p] > 0 and wh[p] <= lower_bound:
                    for a in order:
                        dead = dead or other[columns[p], a] > 0
            if dead:
                scale = 0.0
                for a in order:
                    scale += cost[a]
                for a in order:
                    w[a] += kind(total / max(scale, lower_bound))
                row_model(other, columns, w, wh, n)
        residual = 0.0
        for rounds in range(max_rounds + 1):
            if rounds > 0:
                if rounds == max_rounds and tol == 0.0:
                    break
                row_model(other, columns, w, wh, n)
            for a in range(k):
                pull[a] = 0
            for p in range(n):
                wh[p] = max(wh[p], lower_bound)
                inverse[p] = kind(1) / wh[p]
                ratio = x[p] * inverse[p]
                h = other[columns[p]]
                for a in range(k):
                    pull[a] += ratio * h[a]
            # KKT residual: negative gradients, and gradients of positive components times their weights.
            # A plain 0 would be a type of its own, for which both functions below were compiled once more.
            n_active = np.int64(0)
            residual = 0.0
            slack = 0.0
            for a in order:
                g = cost[a] + l2 * w[a] - pull[a]
                if w[a] > 0 or g < 0:
                    active[n_active] = a
                    n_active += 1
                    slack += w[a] * abs(g)
                    residual = max(residual, -g / max(cost[a] + l2 * w[a], lower_bound))
            residual = max(residual, slack / max(total, lower_bound))
            if n_active == 0 or residual <= tol or rounds == max_rounds:
                break
            # As narrow as the row: short rows stay in the first-level cache.
            h_active = store[: n_active * n].reshape((n_active, n))
            for p in range(n):
                h = other[columns[p]]
                for b in range(n_active):
                    h_active[b, p] = h[active[b]]
            first = 0.0
            for sweep in range(max_sweeps):
                change = sweep_row(x, wh, inverse, h_active, active, n_active, cost, l2, w, n, lower_bound)
                if sweep == 0:
                    first = change * shrink
                if change <= first:
                    break
            if newton:
                newton_row(
                    x,
                    wh,
                    inverse,
                    h_active,
                    active,
                    n_active,
                    cost,
                    l2,
                    w,
                    n,
                    lower_bound,
                    hessian,
                    slope,
                    passive,
                    work,
                )
        residuals[i] = residual
        logged = 0.0
        for p in range(n):
            logged += x[p] * np.log(max(wh[p], lower_bound) * inverse_unit)
        logs[i] = logged


def kl_passes(
    csr: Any, factor: Any, other: Any, sums: Any, order: Any, l1: float, l2: float,
    max_rounds: int, max_sweeps: int, shrink: float, tol: float, unit: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Update all rows; see `kernels.beta_products.kl_passes`."""
    indptr, indices, data = csr
    out = np.array(factor, order="C", copy=True)
    n_rows, k = out.shape
    kind = out.dtype.type
    other = np.ascontiguousarray(other)
    sums = np.ascontiguousarray(np.atleast_2d(sums), dtype=out.dtype)
    order = np.arange(k) if order is None else np.asarray(order, dtype=np.int64)
    logs, residuals = np.empty(n_rows), np.empty(n_rows)
    # Ranges of about the same number of nonzeros: columns of text data have very unequal lengths.
    n_parts = max(1, min(64, n_rows))
    edges = np.searchsorted(indptr, np.linspace(0, indptr[-1], n_parts + 1)[1:-1])
    edges = np.concatenate([[0], np.clip(edges, 0, n_rows), [n_rows]]).astype(np.int64)
    edges = np.maximum.accumulate(edges)
    lower_bound = kind(np.finfo(out.dtype).tiny * 1e10)

    def work(start: int, stop: int) -> None:
        kl_rows(
            indptr, indices, data, other, sums, out, order, kind(l1), kind(l2), max_rounds, max_sweeps,
            shrink, tol, tol > 0, lower_bound, kind(1.0 / unit), edges[start], edges[stop], logs, residuals,
        )  # fmt: skip

    parallel_for(work, n_parts, chunk_size=1, operations=8.0 * len(data) * k)
    return out, logs, residuals
