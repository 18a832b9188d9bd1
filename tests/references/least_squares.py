"""Slow versions of the inner loops, one row and one component at a time."""

from __future__ import annotations

import numpy as np
import scipy.optimize


def coordinate_passes(factor, grams, cross, order, max_passes, shrink):
    """Update every row on its own; `grams` has one matrix a row. Returns rows and violation."""
    factor = np.array(factor, dtype=np.float64)
    violation = 0.0
    for i, row in enumerate(factor):
        limit = 0.0
        for sweep in range(max_passes):
            change = 0.0
            for a in order:
                if grams[i][a, a] <= 0:
                    continue
                slope = float(grams[i][a] @ row - cross[i, a])
                if sweep == 0:
                    violation += abs(slope) if row[a] > 0 else max(-slope, 0.0)
                new = max(row[a] - slope / grams[i][a, a], 0.0)
                change += (new - row[a]) ** 2
                row[a] = new
            if sweep == 0:
                limit = shrink**2 * change
            if change <= limit:
                break
    return factor, violation


def nonnegative_rows(A, X):
    """Solve min ||A w - x|| over w >= 0 for every row x of X, by SciPy."""
    return np.array([scipy.optimize.nnls(A, x)[0] for x in X])


def row_objective(factor, gram, cross):
    """Return 0.5 f G f' - c f' of every row."""
    grams = np.broadcast_to(gram, (len(factor), *np.shape(gram)[-2:]))
    return 0.5 * np.einsum("ia,iab,ib->i", factor, grams, factor) - np.sum(cross * factor, axis=1)


def kkt_violation(factor, gram, cross):
    """Return the largest violation of f >= 0, slope >= 0, f slope = 0, relative to the terms of the slope."""
    grams = np.broadcast_to(gram, (len(factor), *np.shape(gram)[-2:]))
    slope = np.einsum("iab,ib->ia", grams, factor) - cross
    terms = np.einsum("iab,ib->ia", np.abs(grams), np.abs(factor)) + np.abs(cross)
    scale = np.maximum(terms.max(axis=1, keepdims=True), np.finfo(float).tiny)
    wrong = np.where(factor > 0, np.abs(slope), np.maximum(-slope, 0))
    return float(np.max(wrong / scale)) if factor.min() >= 0 else np.inf
