"""Whole iterations of transform learning and joint diagonalization for one small problem, in place.

Arrays are as in `transform_objectives`, the data v as (R, M, N), but transformed frames that come in and go
out as (M, R N). The searches are those of `nonneg.transforms.rotations.line_search`, for one line at a time.
"""

from __future__ import annotations

from math import inf, isfinite, sqrt

import numpy as np

from nonneg.kernels.jit import jit, part
from nonneg.kernels.rotations.numba import BARE, copy, exponential, multiply, polar
from nonneg.kernels.transforms.objectives_numba import (
    cross_power_of,
    curvature_of,
    inner,
    measured,
    power_of,
    skew_gradient,
    sum_of_logs,
)

C1, C2 = 1e-4, 0.9
# As in `rotations.line_search`: a predicted decrease below this, in units of the value, is rounding.
NOISE = 8.0 * 2.220446049250313e-16
# A curvature below this, in units of N, is rounding.
ROUNDING = 2.0 * 8.0 * 2.220446049250313e-16


@part(**BARE)
def next_step(low, low_value, low_slope, high, high_value, last, last_value, first):
    """Return where a bracket is cut: by a cubic, a quadratic, or in half."""
    width = high - low
    left, right = (high, low) if width < 0.0 else (low, high)
    b = width
    yb = high_value - low_value - low_slope * b
    if not first:
        c = last - low
        yc = last_value - low_value - low_slope * c
        denominator = (b * c) ** 2 * (b - c)
        cubed = (c**2 * yb - b**2 * yc) / denominator
        squared = (b**3 * yc - c**3 * yb) / denominator
        root = squared * squared - 3.0 * cubed * low_slope
        if root >= 0.0:
            found = low + (-squared + sqrt(root)) / (3.0 * cubed)
            margin = 0.2 * width
            if isfinite(found) and left + margin <= found <= right - margin:
                return found
    found = low - low_slope * b**2 / (2.0 * yb)
    margin = 0.1 * width
    if isfinite(found) and left + margin <= found <= right - margin:
        return found
    return low + 0.5 * width


@part(**BARE)
def free_slot(current, best):
    """Return which of three places neither holds the current point nor the best one."""
    for slot in range(3):
        if slot != current and slot != best:
            return slot
    return -1


@part(**BARE)
def search(
    v,
    E,
    inverse,
    eps0,
    learning,
    value,
    slope,
    max_trials,
    current,
    phis,
    xs,
    powers,
    crosses,
    work,
    gradient,
):
    """Look for a step that will do; return the slot of the best point, its step and value, and success."""
    # Learning, the value is the sum of the power times `inverse`, and the step meets the strong Wolfe
    # conditions; else the value is the sum of log(power + eps0), and the step is halved until it decreases.
    # Points lie in three slots of `phis`, `xs`, `powers` and, learning, `crosses`.
    best, step, taken = current, 1.0, 0.0
    low, low_value, low_slope = 0.0, value, slope
    high, high_value = inf, inf
    last, last_value = 0.0, value
    bracketed = False
    if not slope < 0.0:
        return best, taken, value, True
    for _ in range(max_trials):
        slot = free_slot(current, best)
        if learning:
            exponential(E, step, work, work[7])
        else:
            polar(E, step, work, work[7])
        multiply(work[7], phis[current], phis[slot])
        for r in range(v.shape[0]):
            multiply(phis[slot], v[r], xs[slot, r])
        power_of(xs[slot], powers[slot])
        if not learning:
            found = sum_of_logs(powers[slot], eps0)
            if found < value:
                return slot, step, found, True
            if -step * slope <= NOISE * abs(value):
                return best, taken, value, True  # smaller steps promise even less
            step *= 0.5
            continue
        found = inner(powers[slot], inverse)
        # Written so that NaN counts as too high.
        lower = found <= value + C1 * step * slope and found < low_value
        found_slope, first = 0.0, False
        turned = False
        if lower:
            cross_power_of(xs[slot], crosses[slot])
            skew_gradient(crosses[slot], inverse, gradient)
            found_slope = inner(gradient, E)
            best, taken = slot, step
            if abs(found_slope) <= -C2 * slope:
                return best, taken, found, True
            turned = found_slope * ((high - low) if bracketed else 1.0) >= 0.0
        elif -step * slope <= NOISE * abs(value):
            return best, taken, low_value, True  # smaller steps promise even less
        if not bracketed:
            last, last_value = 0.0, value
            first = turned or not lower
        elif turned or not lower:
            last, last_value = high, high_value
        else:
            last, last_value = low, low_value
        if not lower:
            high, high_value = step, found
        else:
            if turned:
                high, high_value = low, low_value
            low, low_value, low_slope = step, found, found_slope
        bracketed = bracketed or first
        if bracketed:
            step = next_step(low, low_value, low_slope, high, high_value, last, last_value, first)
        else:
            step = 2.0 * step
    return best, taken, low_value, False


@jit(**BARE)
def rotate_range(
    v,
    eps0,
    learning,
    transforms,
    frames,
    moments,
    inverse,
    n_rotations,
    max_trials,
    facts,
    workspace,
    start,
    stop,
):
    """Rotate the transforms of some of the restarts, in place; see `kernels.transforms`."""
    # `frames` are the transformed ones before and after, and `moments` their power before and after and their
    # cross power before and after, which without learning is not brought up to date. `inverse` is that of the
    # model; without learning it is workspace. More of it is in `workspace`: numba would take seconds to
    # compile its allocation.
    before, after = frames
    V, new_V, cross, new_cross = moments
    phis, work, xs, powers, crosses = workspace
    m, n = V.shape[1], V.shape[2]
    E, gradient, raised = work[8], work[9], powers[3]
    for p in range(start, stop):
        # A plain 0 would be a type of its own, for which `search` were compiled once more.
        current, norm, taken, good, moved = np.int64(0), 0.0, 0.0, True, False
        copy(transforms[p], phis[0])
        copy(V[p], powers[0])
        copy(cross[p], crosses[0])
        for _ in range(n_rotations):
            offset, least, constant = 0.0, 0.0, 0.0
            if not learning:
                offset, least, constant = eps0, ROUNDING * n, 2.0 * n
                if moved:
                    cross_power_of(xs[current], crosses[current])
            for a in range(m):
                for i in range(n):
                    raised[a, i] = powers[current, a, i] + offset
                    if not learning:
                        inverse[p, a, i] = 1.0 / raised[a, i]
            skew_gradient(crosses[current], inverse[p], gradient)
            curvature_of(raised, inverse[p], work[0])
            for a in range(m):
                for b in range(m):
                    bend = work[0, a, b] - constant
                    E[a, b] = -gradient[a, b] / bend if bend > least else 0.0
            norm, slope = sqrt(inner(gradient, gradient)) / (2.0 * n), inner(gradient, E)
            value = inner(raised, inverse[p]) if learning else sum_of_logs(raised, 0.0)
            current, taken, value, good = search(
                v,
                E,
                inverse[p],
                eps0,
                learning,
                value,
                slope,
                max_trials,
                current,
                phis,
                xs,
                powers,
                crosses,
                work,
                gradient,
            )
            moved = moved or taken > 0.0
            if not good and taken == 0.0:
                break  # the same search would fail again
        copy(phis[current], transforms[p])
        copy(powers[current], new_V[p])
        if learning:
            copy(crosses[current], new_cross[p])
        if moved:
            exchange(after[p], xs[current], False)
        else:
            copy(before[p], after[p])
        facts[0, p], facts[1, p], facts[2, p] = norm, taken, 1.0 if good else 0.0


@part(**BARE)
def exchange(frames, X, inwards):
    """Put `frames` (M, R N) into `X` (R, M, N), or the other way."""
    n_realizations, m, n = X.shape
    for a in range(m):
        for r in range(n_realizations):
            row, x = frames[a, r * n : (r + 1) * n], X[r, a]
            if inwards:
                for i in range(n):
                    x[i] = row[i]
            else:
                for i in range(n):
                    row[i] = x[i]


@jit(**BARE)
def moment_range(frames, X, V, cross, start, stop):
    """Put power and cross power of the transformed frames of some of the restarts into `V` and `cross`."""
    for p in range(start, stop):
        exchange(frames[p], X, True)
        power_of(X, V[p])
        cross_power_of(X, cross[p])


@jit(error_model="numpy")
def measure_range(V, eps0, inverse, facts, start, stop):
    """Put C, L and I of some of the restarts into `facts`."""
    ratio = np.empty((V.shape[1], V.shape[2]))
    for p in range(start, stop):
        facts[0, p], facts[1, p], facts[2, p] = measured(V[p % V.shape[0]], eps0, inverse[p], ratio)


@jit(**BARE)
def likelihood_range(V, eps0, facts, start, stop):
    """Put L of some of the restarts into `facts`."""
    for p in range(start, stop):
        facts[p] = V.shape[1] * V.shape[2] + sum_of_logs(V[p], eps0)
