"""Projection of rows onto the cone that their diagonal entry spans (compiled)."""

from __future__ import annotations

from nonneg.kernels.jit import jit

MATH = {"contract", "nsz", "reassoc"}


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
