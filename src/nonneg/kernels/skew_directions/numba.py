"""Quasi-Newton directions among skew matrices: one pass over gradient and curvature."""

from __future__ import annotations

import numpy as np

from nonneg.kernels.jit import jit
from nonneg.kernels.rotations.numba import MATH

# Rows and columns of a square that is worked on at once: its transpose stays in the fastest memory.
TILE = 16


@jit(fastmath=MATH, error_model="numpy")
def put_direction(G, products, less, least, E, facts):
    """Put -skew(G) / curvature into E, and slope, squared norm of skew(G) and a bound of E into `facts`."""
    # The curvature is products + products' - less, and not used where it is at most `least`.
    m = G.shape[0]
    slope, squares, squared = 0.0, 0.0, 0.0
    sums = np.zeros(m)
    for top in range(0, m, TILE):
        for left in range(top, m, TILE):
            for i in range(top, min(top + TILE, m)):
                if left == top:
                    E[i, i] = 0.0
                own = 0.0
                for j in range(max(left, i + 1), min(left + TILE, m)):
                    skew = 0.5 * (G[i, j] - G[j, i])
                    curvature = products[i, j] + products[j, i] - less
                    entry = 0.0
                    # Written so that NaN is not used either.
                    if curvature > least:
                        entry = skew / -curvature
                    E[i, j] = entry
                    E[j, i] = -entry
                    squares += skew * skew
                    slope += skew * entry
                    squared += entry * entry
                    size = abs(entry)
                    own += size
                    sums[j] += size
                sums[i] += own
    largest = 0.0
    for i in range(m):
        largest = max(largest, sums[i])
    facts[0], facts[1] = 2.0 * slope, 2.0 * squares
    # Eigenvalues come in pairs.
    facts[2] = min(largest, np.sqrt(squared))
