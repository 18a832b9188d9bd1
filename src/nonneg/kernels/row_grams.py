"""Coordinate descent on rows that have a Gram matrix each: data with missing entries (compiled).

The Gram matrix of row i is `base + sign * sum of other[j] other[j]'` over the listed j. The list
holds the observed entries (base zero, sign +1) or the missing ones (base B'B, sign -1), whichever is
shorter. It is formed in float64 whatever the data: a difference of float32 sums would leave noise where
little is observed.
"""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit, part

# Rounding leaves less than this fraction of the base in a difference of equal sums.
NOISE = 1e-12


@part(fastmath={"contract", "nsz"}, error_model="numpy")
def gram_of_row(i, base, ridge, sign, other, indptr, indices, gram):
    """Write the Gram matrix of row `i` into `gram`."""
    k = other.shape[1]
    for a in range(k):
        for b in range(k):
            gram[a, b] = base[a, b]
        gram[a, a] += ridge
    for position in range(indptr[i], indptr[i + 1]):
        j = indices[position]
        for a in range(k):
            scaled = sign * other[j, a]
            if scaled != 0:
                for b in range(k):
                    gram[a, b] += scaled * other[j, b]


@jit(fastmath={"contract", "nsz"}, error_model="numpy")
def hals_own_block(
    factor,
    base,
    ridge,
    sign,
    other,
    indptr,
    indices,
    cross,
    order,
    max_passes,
    shrink,
    start,
    stop,
    violations,
):
    """Update rows in place and write the violation of each; see `kernels.hals.hals_passes`."""
    k = factor.shape[1]
    zero = factor.dtype.type(0.0)
    gram = np.empty((k, k), dtype=np.float64)
    for i in range(start, stop):
        gram_of_row(i, base, ridge, sign, other, indptr, indices, gram)
        first = 0.0
        violation = 0.0
        for sweep in range(max_passes):
            change = 0.0
            for a in order:
                if gram[a, a] <= NOISE * base[a, a]:
                    continue
                slope = -cross[i, a]
                for b in range(k):
                    slope += gram[a, b] * factor[i, b]
                old = factor[i, a]
                new = max(old - slope / gram[a, a], zero)
                factor[i, a] = new
                change += (new - old) * (new - old)
                if sweep == 0:
                    violation += abs(slope) if old > zero else max(-slope, zero)
            if sweep == 0:
                first = shrink * shrink * change
            if change <= first:
                break
        violations[i] = violation


@jit(error_model="numpy")
def grams_block(base, sign, other, indptr, indices, out, start, stop):
    """Write the Gram matrices of rows `start` to `stop` into `out`; rounding noise becomes zero."""
    k = other.shape[1]
    gram = np.empty((k, k), dtype=np.float64)
    for i in range(start, stop):
        gram_of_row(i, base, 0.0, sign, other, indptr, indices, gram)
        for a in range(k):
            if gram[a, a] <= NOISE * base[a, a]:
                for b in range(k):
                    gram[a, b] = gram[b, a] = 0.0
        # Entry by entry: an assignment of whole arrays would take six times as long to compile.
        for a in range(k):
            for b in range(k):
                out[i, a, b] = gram[a, b]
