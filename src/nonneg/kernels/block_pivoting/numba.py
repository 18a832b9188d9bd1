"""Exact nonnegative least squares by block principal pivoting (compiled)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import carray

from nonneg._threads import parallel_for, team_size
from nonneg.kernels.grams import Gram, gram_matrices
from nonneg.kernels.jit import jit
from nonneg.kernels.team import FLOATS, Task, pointer, run

# Up to this many entries of all systems together a batched LAPACK solve is faster than loading the compiled
# kernel from its cache, let alone compiling it.
SMALL_PIVOTING = 2_000_000


@jit(fastmath={"contract", "nsz"}, error_model="numpy")
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


@jit(fastmath={"contract", "nsz"}, error_model="numpy")
def block_pivoting_rows(factor, gram, cross, own_grams, max_pivots, start, stop, unsolved):
    """Replace rows of `factor` by their minimizers; see `kernels.block_pivoting`.

    The entries of `factor` that are above zero on entry are the first guess of the support.
    `gram` has one matrix, or one per row when `own_grams` is true. Rows that were not solved are
    flagged.
    """
    k = cross.shape[1]
    lower = np.empty((k, k), dtype=np.float64)
    inverse = np.empty(k, dtype=np.float64)
    solution = np.empty(k, dtype=np.float64)
    passive = np.empty(k, dtype=np.int64)
    is_passive = np.empty(k, dtype=np.bool_)
    wrong = np.empty(k, dtype=np.bool_)
    target = np.empty(k, dtype=np.float64)
    x = np.empty(k, dtype=np.float64)
    for i in range(start, stop):
        g = gram[i] if own_grams else gram[0]
        scale = 0.0
        for a in range(k):
            target[a] = cross[i, a]
            scale = max(scale, abs(target[a]))
            is_passive[a] = factor[i, a] > 0 and g[a, a] > 0
        tolerance = 1e-14 * scale
        fewest = k + 1
        patience = 3
        solved = False
        for _ in range(max_pivots):
            # A plain 0 would be a type of its own, for which `solve_passive` were compiled once more.
            n_passive = np.int64(0)
            for a in range(k):
                if is_passive[a]:
                    passive[n_passive] = a
                    n_passive += 1
            if not solve_passive(g, target, passive, n_passive, lower, inverse, solution):
                break
            for a in range(k):
                x[a] = 0.0
            for a in range(n_passive):
                x[passive[a]] = solution[a]
            n_wrong = 0
            last = -1
            for a in range(k):
                if is_passive[a]:
                    wrong[a] = x[a] < 0.0
                else:
                    slope = -target[a]
                    for b in range(n_passive):
                        slope += g[a, passive[b]] * solution[b]
                    wrong[a] = slope < -tolerance and g[a, a] > 0
                if wrong[a]:
                    n_wrong += 1
                    last = a
            if n_wrong == 0:
                solved = True
                break
            # Exchange all wrong components while that makes progress, else only the last one,
            # which always ends (Kim & Park 2011, Algorithm 1).
            if n_wrong < fewest:
                fewest = n_wrong
                patience = 3
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
            for a in range(k):
                factor[i, a] = x[a]


@functools.cache
def task_of(dtype: Any) -> Task:
    """Return the solution of a range of rows of arrays of this dtype as a task."""
    kind = np.dtype(dtype).type

    def pivoting_task(address, start, stop):
        given = carray(pointer(address), (9,), np.int64)
        n_rows, k, n_systems = given[0], given[1], given[2]
        factor = carray(pointer(given[5]), (n_rows, k), kind)
        gram = carray(pointer(given[6]), (n_systems, k, k), np.float64)
        cross = carray(pointer(given[7]), (n_rows, k), kind)
        unsolved = carray(pointer(given[8]), (n_rows,), np.bool_)
        block_pivoting_rows(factor, gram, cross, n_systems > 1, given[3], start, stop, unsolved)

    return Task(pivoting_task)


def is_supported(factor: Any) -> bool:
    """Tell whether the rows are NumPy's and enough that loading the kernel pays."""
    if not isinstance(factor, np.ndarray):
        return False
    entries = factor.shape[0] * factor.shape[1] ** 2
    return entries > SMALL_PIVOTING or team_size(float(entries)) > 1


def block_pivoting(factor: Any, gram: Gram, cross: Any, max_pivots: int) -> tuple[Any, Any]:
    """Minimize over each row; see `kernels.block_pivoting.block_pivoting`."""
    n_rows, k = factor.shape
    matrices = gram_matrices(gram)
    own = matrices.ndim == 3
    out = np.array(factor, order="C", copy=True)
    systems = np.ascontiguousarray(matrices if own else matrices[None], dtype=np.float64)
    cross = np.ascontiguousarray(cross)
    unsolved = np.zeros(n_rows, dtype=bool)

    def work(start: int, stop: int) -> None:
        block_pivoting_rows(out, systems, cross, own, max_pivots, start, stop, unsolved)

    operations = float(n_rows) * k * k
    if team_size(operations) > 1 and cross.dtype == out.dtype and out.dtype in FLOATS:
        numbers, arrays = [n_rows, k, len(systems), max_pivots], (out, systems, cross, unsolved)
        # Rows differ in the number of exchanges: chunks enough that no thread waits for another.
        if run(task_of(out.dtype), numbers, arrays, n_rows, chunk_size=8, operations=operations, parts=4):
            return out, unsolved
    parallel_for(work, n_rows, chunk_size=1, operations=operations)
    return out, unsolved
