"""Exact least squares over the probability simplex by block principal pivoting (compiled)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg.kernels.jit import jit, part

# Up to this many entries of all systems together a batched solve is faster than loading the kernel.
SMALL_SIMPLEX = 20_000

# "reassoc" lets the dot products run in vector registers; NaN and infinity keep their meaning.
MATH = {"contract", "nsz", "reassoc"}
# Entries are at most one; gradients are compared with the terms they are sums of.
TOLERANCE = 1e-12


@part(fastmath=MATH, error_model="numpy")
def factored(matrix, subset, n, lower, inverse):
    """Factor the part of a matrix that belongs to a subset (Cholesky); False if it is singular."""
    for a in range(n):
        row = subset[a]
        for b in range(a):
            total = matrix[row, subset[b]]
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            lower[a, b] = total * inverse[b]
        pivot = matrix[row, row]
        floor = pivot * 1e-14
        for c in range(a):
            pivot -= lower[a, c] * lower[a, c]
        if not pivot > floor:
            return False
        inverse[a] = 1.0 / np.sqrt(pivot)
    return True


@part(fastmath=MATH, error_model="numpy")
def solve(lower, inverse, n, values):
    """Solve with the factor, in place."""
    for a in range(n):
        total = values[a]
        for c in range(a):
            total -= lower[a, c] * values[c]
        values[a] = total * inverse[a]
    for a in range(n - 1, -1, -1):
        values[a] *= inverse[a]
        value = values[a]
        for c in range(a):
            values[c] -= lower[a, c] * value


@part(fastmath=MATH, error_model="numpy")
def primal(gram, target, passive, n_passive, active, n_active, lower, inverse, first, second, x, slope):
    """Solve the equations of the passive components; False if they are singular."""
    if not factored(gram, passive, n_passive, lower, inverse):
        return False
    for a in range(n_passive):
        first[a] = target[passive[a]]
        second[a] = 1.0
    solve(lower, inverse, n_passive, first)
    solve(lower, inverse, n_passive, second)
    sum_first, sum_second = 0.0, 0.0
    for a in range(n_passive):
        sum_first += first[a]
        sum_second += second[a]
    level = (1.0 - sum_first) / sum_second
    for a in range(n_passive):
        x[passive[a]] = first[a] + level * second[a]
    for b in range(n_active):
        place = active[b]
        x[place] = 0.0
        total = -target[place] - level
        for a in range(n_passive):
            total += gram[place, passive[a]] * x[passive[a]]
        slope[place] = total
    return True


@part(fastmath=MATH, error_model="numpy")
def corrected(projector, passive, n_passive, active, n_active, lower, inverse, multiplier, x):
    """Force the active components of x to zero and keep the multipliers that do so."""
    for b in range(n_active):
        multiplier[b] = -x[active[b]]
    solve(lower, inverse, n_active, multiplier)
    for a in range(n_passive):
        place = passive[a]
        total = x[place]
        for b in range(n_active):
            total += projector[place, active[b]] * multiplier[b]
        x[place] = total
    for b in range(n_active):
        x[active[b]] = 0.0


@part(fastmath=MATH, error_model="numpy")
def dual(projector, full, passive, n_passive, active, n_active, lower, inverse, multiplier, x, slope):
    """Solve the equations of the active components instead, where these are fewer."""
    if not factored(projector, active, n_active, lower, inverse):
        return False
    for a in range(len(x)):
        x[a] = full[a]
    corrected(projector, passive, n_passive, active, n_active, lower, inverse, multiplier, x)
    for b in range(n_active):
        slope[active[b]] = multiplier[b]
    return True


@part(fastmath=MATH, error_model="numpy")
def refined(gram, projector, target, passive, n_passive, active, n_active, lower, inverse, first, second, x):
    """One step of iterative refinement after `dual`, whose inverse may have lost digits."""
    k = len(x)
    for a in range(n_passive):
        total = target[passive[a]]
        for b in range(n_passive):
            total -= gram[passive[a], passive[b]] * x[passive[b]]
        first[a] = total
    step = np.zeros(k)
    for a in range(n_passive):
        for b in range(k):
            step[b] += projector[passive[a], b] * first[a]
    corrected(projector, passive, n_passive, active, n_active, lower, inverse, second, step)
    for a in range(n_passive):
        x[passive[a]] += step[passive[a]]


@jit(fastmath=MATH, error_model="numpy")
def simplex_rows(factor, gram, projector, full, cross, max_pivots, start, stop, unsolved):
    """Replace rows of `factor` by their minimizers; see `kernels.simplex.simplex_pivoting`."""
    # The entries of `factor` that are above zero on entry are the first guess of the support. `full` has the
    # minimizers with free signs, `projector` their change with the gradients.
    k = cross.shape[1]
    lower, inverse = np.empty((k, k)), np.empty(k)
    first, second = np.empty(k), np.empty(k)
    x, slope, target = np.empty(k), np.empty(k), np.empty(k)
    passive, active = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    is_passive, wrong = np.empty(k, dtype=np.bool_), np.empty(k, dtype=np.bool_)
    largest = 0.0
    for a in range(k):
        largest = max(largest, gram[a, a])
    for i in range(start, stop):
        scale = largest
        for a in range(k):
            target[a] = cross[i, a]
            scale = max(scale, abs(target[a]))
            is_passive[a] = factor[i, a] > 0
        fewest, patience = k + 1, 3
        solved = False
        for _ in range(max_pivots):
            # Plain zeros would be a type of their own, for which all functions above were compiled once more.
            n_passive, n_active = np.int64(0), np.int64(0)
            for a in range(k):
                if is_passive[a]:
                    passive[n_passive] = a
                    n_passive += 1
                else:
                    active[n_active] = a
                    n_active += 1
            if n_passive == 0:
                for a in range(k):
                    is_passive[a] = True
                continue
            by_dual = n_active < n_passive
            if by_dual:
                good = dual(
                    projector, full[i], passive, n_passive, active, n_active, lower, inverse, second, x, slope
                )
            else:
                good = primal(
                    gram,
                    target,
                    passive,
                    n_passive,
                    active,
                    n_active,
                    lower,
                    inverse,
                    first,
                    second,
                    x,
                    slope,
                )
            if not good:
                break
            n_wrong, last = 0, -1
            for a in range(k):
                wrong[a] = x[a] < -TOLERANCE if is_passive[a] else slope[a] < -TOLERANCE * scale
                if wrong[a]:
                    n_wrong += 1
                    last = a
            if n_wrong == 0:
                if by_dual:
                    refined(
                        gram, projector, target, passive, n_passive, active, n_active, lower, inverse,
                        first, second, x,
                    )  # fmt: skip
                solved = True
                break
            # Exchange all wrong components while that makes progress, else only the last one, which always
            # ends (Kim & Park 2011, Algorithm 1).
            if n_wrong < fewest:
                fewest, patience = n_wrong, 3
            elif patience > 0:
                patience -= 1
            else:
                for a in range(k):
                    wrong[a] = a == last
            for a in range(k):
                if wrong[a]:
                    is_passive[a] = not is_passive[a]
        unsolved[i] = not solved
        if solved:
            total = 0.0
            for a in range(k):
                x[a] = max(x[a], 0.0)
                total += x[a]
            for a in range(k):
                factor[i, a] = x[a] / total


def is_supported(cross: Any) -> bool:
    """Tell whether the rows are NumPy's and enough that loading the kernel pays."""
    return isinstance(cross, np.ndarray) and cross.shape[0] * cross.shape[1] ** 2 > SMALL_SIMPLEX


def simplex_pivoting(start: Any, gram: Any, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.simplex.simplex_pivoting`."""
    n_rows, k = cross.shape
    gram = np.ascontiguousarray(gram, dtype=np.float64)
    inverse = np.linalg.inv(gram)
    sums = inverse.sum(axis=1)
    projector = np.ascontiguousarray(inverse - np.outer(sums, sums) / sums.sum())
    full = cross.astype(np.float64) @ projector + sums / sums.sum()
    out = np.array(full if start is None else start, dtype=cross.dtype, order="C", copy=True)
    cross = np.ascontiguousarray(cross)
    unsolved = np.zeros(n_rows, dtype=bool)

    def work(begin: int, end: int) -> None:
        simplex_rows(out, gram, projector, full, cross, max_pivots, begin, end, unsolved)

    parallel_for(work, n_rows, chunk_size=1, operations=float(n_rows) * k * k * k / 8)
    return out, unsolved
