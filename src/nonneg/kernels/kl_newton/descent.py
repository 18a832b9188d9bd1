"""Iterations of Newton steps on small dense tables (compiled); `solvers.newton` without Python in between.

A few rows at a time go through the whole pass while they are in the cache.
"""

from __future__ import annotations

import numpy as np

from nonneg.kernels.hals.native import UNROLL
from nonneg.kernels.jit import jit, part
from nonneg.kernels.kl_newton.numba import (
    LEAST_MEAN,
    add_four_losses,
    add_losses,
    add_sums,
    direct,
    multiplicative,
    products,
    shared_model,
    step_along,
    terms,
    times,
    times_pair,
)
from nonneg.kernels.newton_targets.numba import LINEAR, QUADRATIC, RESIDUAL, SLOPE, targets_rows

# Rows that go through a pass together: data and model of 96 columns stay in the first-level cache.
ROWS = 32
# Entries of the numbers that change from iteration to iteration.
LOSS, MOMENTUM, CEILING, KNOWN = 0, 1, 2, 3  # KNOWN: whether there is an earlier pair to extrapolate from
# Entries of the rules.
INITIAL, GROWTH, CEILING_GROWTH, DECAY, EXTRAPOLATE = 0, 1, 2, 3, 4
SHORTEST, NOTHING, FRACTION, SHORTEST_STEP, DAMPING = 5, 6, 7, 8, 9


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def pass_over_rows(
    update, x, weights, W, before, momentum, fraction, Ht, means, damping, numbers, shortest, tries, order,
    new, at_start, at_end, sums, curvatures, gram, total, single,
):  # fmt: skip
    """Move all rows and sum up what the update of H needs; see `solvers.newton_pass`."""
    n_rows, n = x.shape
    k = Ht.shape[1]
    kind = Ht.dtype.type
    l1, l2, lower_bound, least, tiny, most, unit = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]
    )  # fmt: skip
    H, squares = np.empty((k, n), dtype=Ht.dtype), np.empty((k, n), dtype=Ht.dtype)
    columns = np.zeros((2, k), dtype=Ht.dtype)  # sums of the components, and their damping
    for j in range(n):
        for a in range(k):
            H[a, j] = Ht[j, a]
            columns[0, a] += Ht[j, a]
    for a in range(k):
        mean = columns[0, a] / kind(n)
        columns[1, a] = kind(damping) * mean * mean
        columns[0, a] /= unit
        for j in range(n):
            squares[a, j] = H[a, j] * H[a, j] + columns[1, a]
    model = np.empty((k, (k + UNROLL - 1) // UNROLL * UNROLL), dtype=Ht.dtype)
    shared_model(Ht, means, gram, model)
    for a in range(k):
        for b in range(k):
            gram[a, b] = 0
    start, gradient = np.empty((n_rows, k), dtype=Ht.dtype), np.empty((n_rows, k), dtype=Ht.dtype)
    diagonal, direction = np.empty((n_rows, k), dtype=Ht.dtype), np.empty((n_rows, k), dtype=Ht.dtype)
    cross, notes = np.empty((n_rows, k), dtype=Ht.dtype), np.empty((4, n_rows), dtype=Ht.dtype)
    v = np.empty((ROWS, n), dtype=Ht.dtype)
    slope, curvature = np.zeros((4, n), dtype=Ht.dtype), np.zeros((4, n), dtype=Ht.dtype)
    for begin in range(0, n_rows, ROWS):
        end = min(begin + ROWS, n_rows)
        for i in range(begin, end):
            for a in range(k):
                w = W[i, a]
                if momentum > 0:
                    w = max(w + kind(momentum) * (w - before[i, a]), kind(fraction) * w)
                start[i, a] = w
        for i in range(begin, end, 2):
            count = min(2, end - i)
            if count == 2:
                times_pair(start, i, H, v, i - begin)
            else:
                times(start, i, H, v, i - begin)
            for r in range(count):
                if momentum == 0:
                    add_losses(x, i + r, v, i + r - begin, lower_bound, weights, at_start, single)
                terms(x, i + r, v, i + r - begin, lower_bound, slope, curvature, r)
            products(slope, curvature, H, squares, gradient, diagonal, i, count, l1, l2, start)
        targets_rows(
            update, start, gradient, diagonal, model, order, l1, l2, least, direction, cross, notes,
            begin, end,
        )  # fmt: skip
        for i in range(begin, end):
            o = i - begin
            r = o % 2
            if r == 0 and i + 1 < end:
                times_pair(direction, i, H, slope, r)
            elif r == 0:
                times(direction, i, H, slope, r)
            t = step_along(
                x, i, v, o, slope, r, np.float64(notes[LINEAR, i]), np.float64(notes[QUADRATIC, i]),
                -np.float64(notes[SLOPE, i]), tries, lower_bound,
            )  # fmt: skip
            if t < shortest and notes[RESIDUAL, i] > 0:
                multiplicative(x, i, v, o, H, start, l1, l2, lower_bound, tiny, most, new)
                continue
            for a in range(k):
                new[i, a] = max(start[i, a] + kind(t) * direction[i, a], kind(0))
            for j in range(n):
                v[o, j] += kind(t) * slope[r, j]
        for first in range(begin, end, 4):
            count = min(4, end - first)
            if single is not None and count == 4:
                add_four_losses(x, first, v, first - begin, lower_bound, weights, at_end)
            for r in range(count):
                i = first + r
                if single is None or count < 4:
                    add_losses(x, i, v, i - begin, lower_bound, weights, at_end, single)
                terms(x, i, v, i - begin, lower_bound, slope, curvature, r)
                mean = kind(0)
                for a in range(k):
                    mean += new[i, a] * columns[0, a]
                    total[a] += np.float64(weights[i] * new[i, a])
                scale = weights[i] / max(mean, kind(LEAST_MEAN))
                for a in range(k):
                    value = scale * new[i, a]
                    for b in range(k):
                        gram[a, b] += value * new[i, b]
            add_sums(slope, curvature, new, weights, first, count, sums, curvatures)


@part(error_model="numpy")
def penalty_of(factor, i, weight, l1, l2):
    """Return the penalty on a row of a factor."""
    total = 0.0
    if l1 == 0.0 and l2 == 0.0:
        return total
    for a in range(factor.shape[1]):
        value = np.float64(factor[i, a])
        total += value * (l1 + 0.5 * l2 * value)
    return np.float64(weight) * total


@part(error_model="numpy")
def factor_of(slope, change, most):
    """Return about where a parabola with this slope at 0 and this change at 1 is lowest: a power of two."""
    factor, power = 0.125, 0.25
    while power <= most:
        if -slope >= 2.0 * (0.7 * power) * (change - slope):
            factor = power
        power *= 2.0
    return factor


@part(error_model="numpy")
def copy_to(target, source):
    """Copy a matrix."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@jit(fastmath={"contract", "nsz"}, error_model="numpy")
def descend(
    update, x, weights, weight, turns, free, begun, rules, numbers, of_H, tries, row_tries,
    W, before, Ht, plain, sums, curvatures, gram, total, columns, steps, now, losses, single,
):  # fmt: skip
    """Do as many iterations as `losses` has entries; the state is updated in place.

    `update` is the address of `kernels.hals.native.row_updates`, and `single` is None unless x is float32.
    """
    # The names are those of `NewtonState`; decisions are those of `NewtonProblem.candidates`.
    n_rows, k = W.shape
    n, kind = len(Ht), Ht.dtype.type
    l1, l2 = kind(of_H[0]), kind(of_H[1])
    new, chosen, moved = (
        np.empty((n_rows, k), Ht.dtype),
        np.empty((n, k), Ht.dtype),
        np.empty((n, k), Ht.dtype),
    )
    new_sums, new_curvatures = np.empty((k, n), Ht.dtype), np.empty((k + 1, n), Ht.dtype)
    new_gram, direction = np.empty((k, k), Ht.dtype), np.empty((n, k), Ht.dtype)
    means, of_W = np.empty(n, Ht.dtype), np.empty(k, Ht.dtype)
    new_total, slopes, base, change = np.empty(k), np.empty(n), np.empty(n), np.empty(n)
    tried, at_start, at_end = np.empty(n), np.empty(n), np.empty(n)
    momentum, ceiling = 0.0, 1.0
    # Before the first iteration the rows of W alone move: nothing is known of the columns yet.
    number, attempt = 0 if begun else -1, 0
    while number < len(losses):
        if number < 0:
            copy_to(chosen, Ht)
            for a in range(k):
                total[a] = 1.0
        elif attempt == 0:
            for a in range(k):
                of_W[a] = kind(total[a]) / kind(weight)
            direct(
                update, Ht, sums, curvatures, gram, of_W, kind(rules[DAMPING]), free, l1, l2, numbers[3],
                direction, slopes,
            )  # fmt: skip
            momentum, ceiling = now[MOMENTUM], now[CEILING]
            for j in range(n):
                base[j] = columns[j] + penalty_of(Ht, j, 1.0, of_H[0], of_H[1])
                tried[j] = steps[j]
        if number >= 0:
            for j in range(n):
                for a in range(k):
                    value = Ht[j, a] + kind(tried[j]) * direction[j, a]
                    moved[j, a] = value
                    if momentum > 0.0 and now[KNOWN] > 0.0:
                        # As `extrapolation.extrapolate_bounded`.
                        ahead = value + kind(momentum) * (value - plain[j, a])
                        value = max(ahead, kind(rules[FRACTION]) * value)
                    chosen[j, a] = value
        for j in range(n):
            at_start[j], at_end[j], means[j] = 0.0, 0.0, kind(0)
            for a in range(k):
                means[j] += chosen[j, a] * kind(total[a])
                new_sums[a, j], new_curvatures[a, j] = kind(0), kind(0)
            new_curvatures[k, j] = kind(0)
        for a in range(k):
            new_total[a] = 0.0
        pass_over_rows(
            update, x, weights, W, before if now[KNOWN] > 0.0 else W, momentum, rules[FRACTION], chosen,
            means, rules[DAMPING], numbers, rules[SHORTEST_STEP], row_tries, turns,
            new, at_start, at_end, new_sums, new_curvatures, new_gram, new_total, single,
        )  # fmt: skip
        loss = 0.0
        for j in range(n):
            own = penalty_of(chosen, j, 1.0, of_H[0], of_H[1])
            loss += at_end[j] + own
            change[j] = at_start[j] + own - base[j]
        for i in range(n_rows):
            loss += penalty_of(new, i, weights[i], np.float64(numbers[0]), np.float64(numbers[1]))
        attempt += 1
        if number >= 0 and not loss <= now[LOSS]:
            gained = 0.0
            if momentum > 0.0:
                gained, momentum, ceiling = -np.inf, 0.0, momentum
            else:
                for j in range(n):
                    gained += tried[j] * slopes[j]
                    if change[j] > 0.0:
                        tried[j] *= factor_of(tried[j] * slopes[j], change[j], 0.5)
            if attempt == tries or gained > -rules[NOTHING] * abs(now[LOSS]):
                # Rounding only: keep the better pair and let the stopping rule end the run.
                now[MOMENTUM], now[CEILING], now[KNOWN] = 0.0, 1.0, 0.0
                losses[number] = now[LOSS]
                number, attempt = number + 1, 0
            continue
        if number >= 0:
            for j in range(n):
                own = tried[j] * slopes[j]
                # What the columns gained by their own steps is not known after an extrapolation.
                unclear = momentum > 0.0 or -own < 1e-12 * at_end[j]
                factor = 2.0 if unclear else factor_of(own, change[j], 2.0)
                steps[j] = min(max(tried[j] * factor, rules[SHORTEST]), 1.0)
            if rules[EXTRAPOLATE] > 0.0 and momentum == 0.0 and ceiling < 1.0:
                # The schedule goes on below a momentum that was rejected.
                now[MOMENTUM], now[CEILING] = ceiling / rules[DECAY], ceiling
            elif rules[EXTRAPOLATE] > 0.0:
                now[CEILING] = min(1.0, rules[CEILING_GROWTH] * ceiling)
                now[MOMENTUM] = (
                    min(now[CEILING], rules[GROWTH] * momentum) if momentum > 0.0 else rules[INITIAL]
                )
            copy_to(before, W)
            copy_to(plain, moved)
            copy_to(Ht, chosen)
            now[KNOWN] = 1.0
            losses[number] = loss
        copy_to(W, new)
        copy_to(sums, new_sums)
        copy_to(curvatures, new_curvatures)
        copy_to(gram, new_gram)
        for a in range(k):
            total[a] = new_total[a]
        for j in range(n):
            columns[j] = at_end[j]
        now[LOSS] = loss
        number, attempt = number + 1, 0
