"""Caps of rows, compiled: every row is read while it is in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.kernels.jit import jit

MATH = {"contract", "nsz", "reassoc"}
# Newton's method ends after a finite number of steps; more than this has not been seen.
MOST_STEPS = 60


def is_supported(product: Any) -> bool:
    """Tell whether the arrays are NumPy arrays."""
    return isinstance(product, np.ndarray)


@jit(error_model="numpy", fastmath=MATH)
def _beyond(row, level):
    # Sum and number of the parts of the entries above a level.
    total, count = row[0] * 0, row[0] * 0
    for value in row:
        above = value > level
        total += value - level if above else 0 * value
        count += 1 if above else 0
    return total, count


@jit(error_model="numpy")
def _cap(row, cap, tau, unit):
    total, count = _beyond(row, cap)
    if count == 0 and cap > 0:
        cap = 0 * cap
        total, count = _beyond(row, cap)
    for _ in range(MOST_STEPS):
        if count == 0:
            return cap
        step = (total - tau) / count
        # To the right of the solution one step leads to its left; from there the steps are monotone.
        new = cap + step
        if new <= 0:
            new = 0 * cap
        if new == cap or (step >= 0 and step <= unit * cap):
            return new
        cap = new
        total, count = _beyond(row, cap)
        if cap == 0 and total <= tau:
            return cap
    return cap


@jit(error_model="numpy", fastmath=MATH)
def _relaxed(offset, product, split, dual, relax):
    for j in range(len(product)):
        product[j] = relax * (offset[j] + product[j]) + (1 - relax) * split[j] + dual[j]


@jit(error_model="numpy", fastmath=MATH)
def _clip(product, split, dual, cap, relax):
    # Float sums of one row; the rows are added in float64.
    primal, change, size, dual_size = 0.0, 0.0, 0.0, 0.0
    inverse = 1 / relax
    for j in range(len(product)):
        value, old, before = product[j], split[j], dual[j]
        new = min(max(value, 0 * value), cap)
        rest = value - new
        first = (value - before - (1 - relax) * old) * inverse
        primal += (first - new) * (first - new)
        change += (new - old) * (new - old)
        size += new * new
        dual_size += rest * rest
        split[j], dual[j], product[j] = new, rest, new - rest
    return primal, change, size, dual_size


@jit(error_model="numpy")
def cap_rows(offset, product, split, dual, caps, relax, tau, unit, start, stop):
    """Update the rows of a range; see `kernels.row_caps.cap_rows`."""
    primal, change, size, dual_size = 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        _relaxed(offset[i], product[i], split[i], dual[i], relax)
        caps[i] = _cap(product[i], caps[i], tau, unit)
        sums = _clip(product[i], split[i], dual[i], caps[i], relax)
        primal += sums[0]
        change += sums[1]
        size += sums[2]
        dual_size += sums[3]
    return primal, change, size, dual_size
