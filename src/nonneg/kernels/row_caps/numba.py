"""Caps of rows, compiled: every row is read while it is in the cache.

Constants come as arguments in the dtype of the arrays: with literals, numba would compute in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.kernels.jit import jit, part

# No NaN can occur, and without them comparisons become vector instructions.
MATH = {"contract", "nsz", "reassoc", "nnan"}
# Newton's method ends after a finite number of steps; more than this has not been seen.
MOST_STEPS = 60


def is_supported(product: Any) -> bool:
    """Tell whether the arrays are NumPy arrays."""
    return isinstance(product, np.ndarray)


@part(error_model="numpy", fastmath=MATH)
def _beyond(row, level, zero, one):
    # Sum and number of the parts of the entries above a level.
    total, count = zero, zero
    for j in range(len(row)):
        part = row[j] - level
        total += max(zero, part)
        count += one if part > zero else zero
    return total, count


@part(error_model="numpy")
def _cap(row, cap, tau, unit, zero, one):
    total, count = _beyond(row, cap, zero, one)
    if count == zero and cap > zero:
        cap = zero
        total, count = _beyond(row, cap, zero, one)
    for _ in range(MOST_STEPS):
        if count == zero:
            return cap
        step = (total - tau) / count
        # To the right of the solution one step leads to its left; from there the steps are monotone.
        new = cap + step
        if new <= zero:
            new = zero
        if new == cap or (step >= zero and step <= unit * cap):
            return new
        cap = new
        total, count = _beyond(row, cap, zero, one)
        if cap == zero and total <= tau:
            return cap
    return cap


@part(error_model="numpy", fastmath=MATH)
def _relaxed(offset, product, split, dual, relax, rest):
    for j in range(len(product)):
        product[j] = relax * (offset[j] + product[j]) + rest * split[j] + dual[j]


@part(error_model="numpy", fastmath=MATH)
def _clip(product, split, dual, cap, inverse, rest, zero):
    # Sums of one row in its dtype; the rows are added in float64.
    primal, change, size, dual_size = zero, zero, zero, zero
    for j in range(len(product)):
        value, old, before = product[j], split[j], dual[j]
        new = max(zero, value)
        new = min(cap, new)
        left = value - new
        first = (value - before - rest * old) * inverse - new
        moved = new - old
        primal += first * first
        change += moved * moved
        size += new * new
        dual_size += left * left
        split[j] = new
        dual[j] = left
        product[j] = new - left
    return primal, change, size, dual_size


@jit(error_model="numpy")
def cap_rows(offset, product, split, dual, caps, numbers, start, stop):
    """Update the rows of a range; see `kernels.row_caps.cap_rows`. `numbers` are those of `constants`."""
    relax, rest, inverse, tau = numbers[0], numbers[1], numbers[2], numbers[3]
    unit, zero, one = numbers[4], numbers[5], numbers[6]
    primal, change, size, dual_size = 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        _relaxed(offset[i], product[i], split[i], dual[i], relax, rest)
        caps[i] = _cap(product[i], caps[i], tau, unit, zero, one)
        sums = _clip(product[i], split[i], dual[i], caps[i], inverse, rest, zero)
        primal += sums[0]
        change += sums[1]
        size += sums[2]
        dual_size += sums[3]
    return primal, change, size, dual_size


def constants(dtype: Any, relax: float, tau: float, unit: float) -> Any:
    """Return the numbers of an update in the dtype of the arrays."""
    return np.array([relax, 1.0 - relax, 1.0 / relax, tau, unit, 0.0, 1.0], dtype=dtype)
