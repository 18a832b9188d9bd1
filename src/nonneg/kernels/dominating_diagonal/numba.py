"""Projection of rows onto the cone that their diagonal entry spans (compiled)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._threads import parallel_for
from nonneg.kernels.jit import jit

MATH = {"contract", "nsz", "reassoc"}


def is_supported(coefficients: Any) -> bool:
    """Tell whether the compiled loop accepts an array."""
    return isinstance(coefficients, np.ndarray)


def dominating_diagonal(coefficients: Any, weights: Any, max_steps: int, out: Any = None) -> Any:
    """Project all rows; see `kernels.dominating_diagonal`."""
    if out is None:
        out = np.array(coefficients, order="C", copy=True)
    elif out is not coefficients:
        out[...] = coefficients
    weights = np.ascontiguousarray(weights, dtype=out.dtype)
    n = out.shape[0]

    def work(start: int, stop: int) -> None:
        dominating_rows(out, weights, max_steps, start, stop)

    parallel_for(work, n, chunk_size=1, operations=10.0 * n * n)
    return out


@jit(fastmath=MATH, error_model="numpy")
def dominating_rows(out, weights, max_steps, start, stop):
    """Project rows in place; see `kernels.dominating_diagonal`."""
    n = out.shape[1]
    for i in range(start, stop):
        row = out[i]
        own = weights[i]
        if not own > 0:
            for j in range(n):
                row[j] = max(row[j], 0.0)
            row[i] = min(row[i], 1.0)
            continue
        diagonal = row[i]
        level = min(max(diagonal, 0.0), 1.0)
        for _ in range(max_steps):
            # One step of Newton's method on a concave function, from the left: it ends after finitely many.
            cut = level / own
            total, square = 0.0, 0.0
            for j in range(n):
                weight = weights[j]
                over = row[j] > weight * cut
                total += weight * row[j] if over else 0.0
                square += weight * weight if over else 0.0
            if row[i] > own * cut:
                total -= own * row[i]
                square -= own * own
            new = min(max(own * (own * diagonal + total) / (own * own + square), 0.0), 1.0)
            if not new > level:
                break
            level = new
        for j in range(n):
            row[j] = min(max(row[j], 0.0), weights[j] * level / own)
        row[i] = level
